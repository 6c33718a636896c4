"""People, with one uid and gid on every node of every site."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from gcluster.schemas.spec.noun import Noun


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
        list[Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_-]{0,31}$(?!\n)")]],
        Meta(description="Supplementary groups; they must exist on the nodes."),
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
