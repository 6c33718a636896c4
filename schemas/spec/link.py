"""Routes between sites."""

from typing import Annotated, Literal

from msgspec import Meta

from gcluster.schemas.spec.noun import Name, Noun
from gcluster.schemas.spec.units import Duration
from gcluster.schemas.spec.words import Identifier


class Link(Noun, frozen=True):
    """How the nodes of two sites reach each other."""

    between: Annotated[list[Name], Meta(min_length=2, max_length=2, description="The two sites.")]
    via: Annotated[
        Literal["wireguard", "vpn", "direct-connect", "peering", "routed"],
        Meta(description="wireguard is set up by gcluster; the others exist already."),
    ] = "wireguard"
    id: Annotated[Identifier | None, Meta(description="Of a connection that exists.")] = None
    gateway: Annotated[
        Name | None,
        Meta(description="Pool whose first host is the gateway of WireGuard; default: controller."),
    ] = None
    latency: Annotated[
        Duration | None, Meta(description="Round trip, where it is known.", examples=["0.03s"])
    ] = None
