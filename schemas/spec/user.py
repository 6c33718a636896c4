"""People, with one uid and gid on every node of every site."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from gcluster.schemas.spec.noun import Noun
from gcluster.schemas.spec.words import Secret

UserName: TypeAlias = Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_-]{0,31}$(?!\n)")]
"""A login or group name."""


class User(Noun, frozen=True):
    """An account that exists on every node."""

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


class DirectoryUsers(Noun, frozen=True, tag_field="source", tag="sssd"):
    """Accounts of a directory, through SSSD: one uid and gid everywhere because it says so."""

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
    bind_dn: Annotated[str | None, Meta(description="Who asks; default: anonymous.")] = None
    bind_password: Annotated[Secret | None, Meta(description="By reference.")] = None
    allow_groups: Annotated[
        list[UserName], Meta(description="Groups whose members may log in; empty: all.")
    ] = field(default_factory=list)
    admin_groups: Annotated[
        list[UserName], Meta(description="Groups whose members may become root.")
    ] = field(default_factory=list)
