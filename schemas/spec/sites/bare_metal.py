"""Sites whose machines exist: their hosts are named or listed."""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from ..model import Bastion, Cidr, FilePath, HostKey, LoginUser, SpecModel, updates
from .site import Proxy, SiteModel

Address = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$(?!\n)")]
"""An IPv4 or IPv6 address, or a DNS name."""


class ListedHost(SpecModel, frozen=True):
    """A machine of the list; what it leaves out is the site's."""

    UPDATES: ClassVar = updates(in_place="address name user port host_key")

    address: Annotated[Address, Meta(examples=["192.0.2.11"])]
    """Address that SSH and the other nodes use."""
    name: str | None = None
    """Host of a pool that it is; without names, the next that has none."""
    user: LoginUser | None = None
    """Login user."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """TCP port of sshd."""
    host_key: HostKey | None = None
    """Public host key to pin."""


class Ssh(SpecModel, frozen=True):
    """How the machine that runs gcluster reaches the hosts of a site."""

    UPDATES: ClassVar = updates(
        in_place="user key port bastion bastion_key bastion_host_key known_hosts",
    )

    user: LoginUser
    """Login user; needs root or password-less sudo."""
    key: FilePath | None = None
    """Path of the private key; without it the SSH agent is used."""
    port: Annotated[int, Meta(ge=1, le=65535)] = 22
    """TCP port of sshd."""
    bastion: Bastion | None = None
    """[user@]host[:port] to jump through (ssh -J)."""
    bastion_key: FilePath | None = None
    """Path of the private key for the bastion; default: `key`."""
    bastion_host_key: HostKey | None = None
    """Public host key of the bastion to pin; default: known_hosts vouches."""
    known_hosts: FilePath | None = None
    """known_hosts file that vouches for the hosts; default: the user's own."""


class BareMetalNetwork(SpecModel, frozen=True):
    """The network the hosts are on; it exists already."""

    UPDATES: ClassVar = updates(in_place="cidr")

    cidr: Cidr | None = None
    """Network of the hosts: routed to the other sites, and kept free of them."""


class BareMetalSite(SiteModel, frozen=True, kw_only=True, tag_field="provider", tag="bare-metal"):
    """Hosts named by the spec's pools; gcluster installs software, never an operating system."""

    UPDATES: ClassVar = updates(in_place="ssh network proxy")

    makes_machines: ClassVar[bool] = False

    ssh: Ssh
    """How to reach the hosts."""
    network: BareMetalNetwork = BareMetalNetwork()
    """The network they are on."""
    proxy: Proxy | None = None
    """How nodes reach the outside."""

    @property
    def networks(self) -> Mapping[tuple[str, ...], str]:
        """The hosts' network, where the spec gives it."""
        cidr = self.network.cidr
        return {} if cidr is None else {("network", "cidr"): cidr}

    def placed(self, names: Iterable[str]) -> Mapping[str, ListedHost]:  # noqa: ARG002  # pools say
        """Return where hosts are, by name, as far as the site itself says it."""
        return {}
