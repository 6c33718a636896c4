"""People, with one uid and gid on every node of every site."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Secret, SpecModel, updates

UserName: TypeAlias = Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_-]{0,31}$(?!\n)")]
"""A login or group name."""


class User(SpecModel, frozen=True):
    """An account that exists on every node."""

    UPDATES: ClassVar = updates(in_place="name uid gid groups keys shell sudo login")

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z_][a-z0-9_-]{0,31}$(?!\n)", description="Login name.", examples=["ada"]
        ),
    ]
    uid: Annotated[int, Meta(ge=1000, le=60000, description="User id, the same everywhere.")]
    gid: Annotated[
        Annotated[int, Meta(ge=1000, le=60000)] | None,
        Meta(description="Primary group id; default: the uid."),
    ] = None
    groups: Annotated[
        list[UserName], Meta(description="Supplementary groups; they must exist on the nodes.")
    ] = field(default_factory=list)
    keys: Annotated[
        list[Annotated[str, Meta(pattern=r"^[^\r\n]+$(?!\n)", examples=["ssh-ed25519 AAAA..."])]],
        Meta(description="Public SSH keys that may log in, one line each."),
    ] = field(default_factory=list)
    shell: Annotated[
        str,
        Meta(
            pattern=r"^/[^\s:]+$(?!\n)", description="Login shell: a path.", examples=["/bin/zsh"]
        ),
    ] = "/bin/bash"
    sudo: Annotated[bool, Meta(description="May become root without a password.")] = False
    login: Annotated[
        list[Literal["login", "controller", "compute"]] | None,
        Meta(
            description="Roles of the pools whose nodes it may log in to by SSH; default: all. "
            "Jobs run anywhere.",
            examples=[["login"]],
        ),
    ] = None


class IdRange(SpecModel, frozen=True):
    """Ids of people and groups; whoever has another one isn't known on the nodes."""

    UPDATES: ClassVar = updates(in_place="min max")

    min: Annotated[int, Meta(ge=1000, description="Least id; below are those of systems.")] = 1000
    max: Annotated[
        Annotated[int, Meta(ge=1000)] | None, Meta(description="Greatest id; default: any.")
    ] = None


class DirectoryUsers(SpecModel, frozen=True, tag_field="source", tag="sssd"):
    """Accounts of a directory, through SSSD: one uid and gid everywhere because it says so."""

    UPDATES: ClassVar = updates(
        in_place="ldap base ca schema ids probe bind_dn bind_password allow_groups admin_groups",
    )

    ldap: Annotated[
        str,
        Meta(
            pattern=r"^ldaps?://[^\s]+$(?!\n)",
            description="The directory's URL.",
            examples=["ldaps://dir.example.edu"],
        ),
    ]
    base: Annotated[
        str | None,
        Meta(
            description="Search base; default: from the host's domain.",
            examples=["dc=example,dc=edu"],
        ),
    ] = None
    ca: Annotated[
        Annotated[str, Meta(pattern=r"^\s*-----BEGIN CERTIFICATE-----")] | None,
        Meta(
            description="CA certificates (PEM) that vouch for the directory; default: those of the "
            "nodes' distribution."
        ),
    ] = None
    schema: Annotated[
        Literal["rfc2307", "rfc2307bis", "ad"],
        Meta(
            description="How groups name members: by login name, by DN, or as Active Directory "
            "does (with uidNumber and gidNumber)."
        ),
    ] = "rfc2307"
    ids: Annotated[IdRange, Meta(description="Ids that people and groups have.")] = IdRange()
    probe: Annotated[
        UserName | None,
        Meta(description="A user that every node must know: asked for on each, with its id."),
    ] = None
    bind_dn: Annotated[str | None, Meta(description="Who asks; default: anonymous.")] = None
    bind_password: Annotated[Secret | None, Meta(description="By reference.")] = None
    allow_groups: Annotated[
        list[UserName], Meta(description="Groups whose members may log in; empty: all.")
    ] = field(default_factory=list)
    admin_groups: Annotated[
        list[UserName], Meta(description="Groups whose members may become root.")
    ] = field(default_factory=list)

    @property
    def search_base(self) -> str | None:
        """Where its people are: `base`, else what the host's domain says; None: it has none."""
        if self.base is not None:
            return self.base
        host = self.ldap.partition("://")[2].partition("/")[0].partition(":")[0]
        if not host or host[0] == "[" or host.rpartition(".")[2].isdigit():
            return None  # an address
        return ",".join(f"dc={part}" for part in host.split(".")[1:]) or None
