"""People, with one uid and gid on every node of every site."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Secret, SpecModel, updates

UserName: TypeAlias = Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_-]{0,31}$(?!\n)")]
"""A login or group name."""

MailAddress: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^@\s,;<>{}\"]+@[^@\s,;<>{}\"]+$(?!\n)", examples=["ops@example.edu"])
]
"""One address, without a name."""

GroupName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_][^\r\n\t\\,:()*/\"'%#!=@+]{0,62}[A-Za-z0-9_]$(?!\n)",
        examples=["gpu-users", "HPC Admins"],
    ),
]
"""A group of a directory, as it is called there: Active Directory's may have blanks and upper case.
Without what separates names where they are written (sssd-simple(5), sudoers(5), access.conf(5))."""


class User(SpecModel, frozen=True):
    """An account that exists on every node."""

    UPDATES: ClassVar = updates(in_place="name uid gid groups keys shell sudo login mail")

    name: Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_-]{0,31}$(?!\n)", examples=["ada"])]
    """Login name."""
    uid: Annotated[int, Meta(ge=1000, le=60000)]
    """User id, the same everywhere."""
    gid: Annotated[int, Meta(ge=1000, le=60000)] | None = None
    """Primary group id; default: the uid."""
    groups: list[UserName] = field(default_factory=list)
    """Supplementary groups; they must exist on the nodes."""
    keys: list[
        Annotated[str, Meta(pattern=r"^[^\r\n]+$(?!\n)", examples=["ssh-ed25519 AAAA..."])]
    ] = field(default_factory=list)
    """Public SSH keys that may log in, one line each."""
    shell: Annotated[str, Meta(pattern=r"^/[^\s:]+$(?!\n)", examples=["/bin/zsh"])] = "/bin/bash"
    """Login shell: a path."""
    sudo: bool = False
    """May become root without a password."""
    login: Annotated[
        list[Literal["login", "controller", "compute"]] | None, Meta(examples=[["login"]])
    ] = None
    """Roles of the pools whose nodes it may log in to by SSH; default: all. Jobs run anywhere."""
    mail: MailAddress | None = None
    """Where `monitoring.waste_alert.to_owner` reaches the user; default: LOGIN@`mail_domain`."""


class IdRange(SpecModel, frozen=True):
    """Ids of users and groups; others are unknown on the nodes."""

    UPDATES: ClassVar = updates(in_place="min max")

    min: Annotated[int, Meta(ge=1000)] = 1000
    """Least id; below are those of systems."""
    max: Annotated[int, Meta(ge=1000)] | None = None
    """Greatest id; default: any."""


class DirectoryUsers(SpecModel, frozen=True, tag_field="source", tag="sssd"):
    """Accounts of a directory, through SSSD: one uid and gid everywhere because it says so."""

    UPDATES: ClassVar = updates(
        in_place="ldap base ca schema ids probe bind_dn bind_password allow_groups admin_groups",
    )

    ldap: Annotated[
        str, Meta(pattern=r"^ldaps?://[^\s]+$(?!\n)", examples=["ldaps://dir.example.edu"])
    ]
    """The directory's URL."""
    base: Annotated[str | None, Meta(examples=["dc=example,dc=edu"])] = None
    """Search base; default: from the host's domain."""
    ca: Annotated[str, Meta(pattern=r"^\s*-----BEGIN CERTIFICATE-----")] | None = None
    """CA certificates (PEM) that vouch for the directory; default: those of the nodes'
    distribution."""
    schema: Literal["rfc2307", "rfc2307bis", "ad"] = "rfc2307"
    """How groups name members: by login name, by DN, or as Active Directory does (with uidNumber
    and gidNumber)."""
    ids: IdRange = IdRange()
    """Ids that people and groups have."""
    probe: UserName | None = None
    """A user that every node must know: looked up on each, with its id."""
    bind_dn: str | None = None
    """DN that queries bind with; default: anonymous."""
    bind_password: Secret | None = None
    """By reference."""
    allow_groups: list[GroupName] = field(default_factory=list)
    """Groups whose members may log in; empty: all."""
    admin_groups: list[GroupName] = field(default_factory=list)
    """Groups whose members may become root."""

    @property
    def search_base(self) -> str | None:
        """Where its people are: `base`, else what the host's domain says; None: it has none."""
        if self.base is not None:
            return self.base
        host = self.ldap.partition("://")[2].partition("/")[0].partition(":")[0]
        if not host or host[0] == "[" or host.rpartition(".")[2].isdigit():
            return None  # an address
        return ",".join(f"dc={part}" for part in host.split(".")[1:]) or None
