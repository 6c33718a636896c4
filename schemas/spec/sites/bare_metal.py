"""Machines that exist already and answer to SSH."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gcluster.schemas.spec.noun import Noun
from gcluster.schemas.spec.words import Bastion, FilePath, LoginUser


class Ssh(Noun, frozen=True):
    """How the machine that runs gcluster reaches the hosts of a site."""

    user: Annotated[LoginUser, Meta(description="Login user; needs root or password-less sudo.")]
    key: Annotated[
        FilePath | None,
        Meta(description="Path of the private key; without it the SSH agent is used."),
    ] = None
    port: Annotated[int, Meta(ge=1, le=65535, description="TCP port of sshd.")] = 22
    bastion: Annotated[
        Bastion | None, Meta(description="[user@]host[:port] to jump through (ssh -J).")
    ] = None
    known_hosts: Annotated[
        FilePath | None,
        Meta(description="known_hosts file that vouches for the hosts; default: the user's own."),
    ] = None


class BareMetalSite(Noun, frozen=True, tag_field="provider", tag="bare-metal"):
    """Hosts named by the spec's pools; gcluster installs software, never an operating system."""

    ssh: Annotated[Ssh, Meta(description="How to reach the hosts.")]
