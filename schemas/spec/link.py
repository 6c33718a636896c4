"""Routes between sites."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Identifier, Name, PoolName, SpecModel, updates
from .units import Duration

Endpoint: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$(?!\n)",
        examples=["198.51.100.7", "vpn.example.edu:51820", "[2001:db8::7]:51820"],
    ),
]
"""An address or DNS name, with a UDP port where it isn't 51820."""


class Link(SpecModel, frozen=True):
    """How the nodes of two sites reach each other."""

    UPDATES: ClassVar = updates(in_place="between via id gateway endpoints mtu latency")

    between: Annotated[list[Name], Meta(min_length=2, max_length=2)]
    """The two sites."""
    via: Literal["wireguard", "vpn", "direct-connect", "peering", "routed"] = "wireguard"
    """wireguard is set up by gcluster; the others exist already."""
    id: Identifier | None = None
    """Of a connection that exists."""
    gateway: PoolName | Annotated[list[PoolName], Meta(min_length=1, max_length=2)] | None = None
    """Pool whose first host is a gateway of WireGuard, or one at each site; default: a site's
    controller, else its login pool."""
    endpoints: Annotated[dict[Name, Endpoint], Meta(examples=[{"campus": "198.51.100.7"}])] = field(
        default_factory=dict
    )
    """Where a site's gateway of WireGuard is reached from the other site: the public address of a
    router that forwards UDP 51820 to it. Default: the address that it has itself; clouds give it
    one."""
    mtu: Annotated[int, Meta(ge=1280, le=8920)] | None = None
    """MTU of the tunnel in bytes; default: 80 less than the smaller of the two networks' and
    1500."""
    latency: Annotated[Duration | None, Meta(examples=["0.03s"])] = None
    """Round trip, where it is known."""

    @property
    def gateways(self) -> list[str]:
        """The pools that are named as gateways."""
        named = self.gateway if self.gateway is not None else []
        return [named] if isinstance(named, str) else named
