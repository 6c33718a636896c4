"""Routes between sites."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Identifier, Name, SpecModel, updates
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

    between: Annotated[list[Name], Meta(min_length=2, max_length=2, description="The two sites.")]
    via: Annotated[
        Literal["wireguard", "vpn", "direct-connect", "peering", "routed"],
        Meta(description="wireguard is set up by gcluster; the others exist already."),
    ] = "wireguard"
    id: Annotated[Identifier | None, Meta(description="Of a connection that exists.")] = None
    gateway: Annotated[
        Name | Annotated[list[Name], Meta(min_length=1, max_length=2)] | None,
        Meta(
            description="Pool whose first host is a gateway of WireGuard, or one at each site; "
            "default: a site's controller, else its login pool."
        ),
    ] = None
    endpoints: Annotated[
        dict[Name, Endpoint],
        Meta(
            description="Where a site's gateway of WireGuard is reached from the other site: the "
            "public address of a router that forwards UDP 51820 to it. Default: the address that "
            "it has itself; clouds give it one.",
            examples=[{"campus": "198.51.100.7"}],
        ),
    ] = field(default_factory=dict)
    mtu: Annotated[
        Annotated[int, Meta(ge=1280, le=8920)] | None,
        Meta(
            description="MTU of the tunnel in bytes; default: 80 less than the smaller of the two "
            "networks' and 1500."
        ),
    ] = None
    latency: Annotated[
        Duration | None, Meta(description="Round trip, where it is known.", examples=["0.03s"])
    ] = None

    @property
    def gateways(self) -> list[str]:
        """The pools that are named as gateways."""
        named = self.gateway if self.gateway is not None else []
        return [named] if isinstance(named, str) else named
