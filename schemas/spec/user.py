"""People, with one uid and gid on every node of every site."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from gcluster.schemas.spec.noun import Noun


class User(Noun, frozen=True):
    """An account that exists on every node."""

    name: Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_-]{0,31}$", description="Login name.")]
    uid: Annotated[int, Meta(ge=1000, le=60000, description="User id, the same everywhere.")]
    gid: Annotated[
        Annotated[int, Meta(ge=1000, le=60000)] | None,
        Meta(description="Primary group id; default: the uid."),
    ] = None
    groups: Annotated[
        list[str], Meta(description="Supplementary groups; they must exist on the nodes.")
    ] = field(default_factory=list)
    keys: Annotated[list[str], Meta(description="Public SSH keys that may log in.")] = field(
        default_factory=list
    )
    shell: Annotated[str, Meta(description="Login shell.")] = "/bin/bash"
    sudo: Annotated[bool, Meta(description="May become root without a password.")] = False
