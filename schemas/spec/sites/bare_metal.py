"""Machines that exist already and answer to SSH."""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from ..noun import Noun, updates
from ..words import Bastion, Cidr, FilePath, HostKey, LoginUser
from .listed_host import ListedHost
from .site import Proxy, SiteNoun


class Ssh(Noun, frozen=True):
    """How the machine that runs gcluster reaches the hosts of a site."""

    UPDATES: ClassVar = updates(
        in_place="user key port bastion bastion_key bastion_host_key known_hosts",
    )

    user: Annotated[LoginUser, Meta(description="Login user; needs root or password-less sudo.")]
    key: Annotated[
        FilePath | None,
        Meta(description="Path of the private key; without it the SSH agent is used."),
    ] = None
    port: Annotated[int, Meta(ge=1, le=65535, description="TCP port of sshd.")] = 22
    bastion: Annotated[
        Bastion | None, Meta(description="[user@]host[:port] to jump through (ssh -J).")
    ] = None
    bastion_key: Annotated[
        FilePath | None,
        Meta(description="Path of the private key for the bastion; default: `key`."),
    ] = None
    bastion_host_key: Annotated[
        HostKey | None,
        Meta(description="Public host key of the bastion to pin; default: known_hosts vouches."),
    ] = None
    known_hosts: Annotated[
        FilePath | None,
        Meta(description="known_hosts file that vouches for the hosts; default: the user's own."),
    ] = None


class BareMetalNetwork(Noun, frozen=True):
    """The network the hosts are on; it exists already."""

    UPDATES: ClassVar = updates(in_place="cidr")

    cidr: Annotated[
        Cidr | None,
        Meta(description="Network of the hosts: routed to the other sites, and kept free of them."),
    ] = None


class BareMetalSite(SiteNoun, frozen=True, kw_only=True, tag_field="provider", tag="bare-metal"):
    """Hosts named by the spec's pools; gcluster installs software, never an operating system."""

    UPDATES: ClassVar = updates(in_place="ssh network proxy")

    makes_machines: ClassVar[bool] = False

    ssh: Annotated[Ssh, Meta(description="How to reach the hosts.")]
    network: Annotated[BareMetalNetwork, Meta(description="The network they are on.")] = (
        BareMetalNetwork()
    )
    proxy: Annotated[Proxy | None, Meta(description="How nodes reach the outside.")] = None

    @property
    def networks(self) -> Mapping[tuple[str, ...], str]:
        """The hosts' network, where the spec gives it."""
        cidr = self.network.cidr
        return {} if cidr is None else {("network", "cidr"): cidr}

    def placed(self, names: Iterable[str]) -> Mapping[str, ListedHost]:  # noqa: ARG002  # pools say
        """Return where hosts are, by name, as far as the site itself says it."""
        return {}
