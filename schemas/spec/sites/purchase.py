"""How machines of a cloud are bought, and where else where a site has none."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from ..model import Identifier, Name, SpecModel, updates
from ..units import Duration


class Option(SpecModel, frozen=True):
    """One way to buy machines, where a word doesn't say enough. Give one of the keys."""

    UPDATES: ClassVar = updates(
        none="reservation capacity_block buy_capacity_block flex_start spot_max_usd_per_hour",
    )

    reservation: Annotated[
        Identifier | None, Meta(examples=["cr-0abc", "projects/p/reservations/r"])
    ] = None
    """Reserved capacity to use: an ODCR or its resource group (AWS), a reservation (GCP)."""
    capacity_block: Annotated[Identifier | None, Meta(examples=["cr-0abc"])] = None
    """A capacity block you own (AWS), or a future reservation (GCP)."""
    buy_capacity_block: Duration | None = None
    """Buy a capacity block for this long (AWS). It is paid at once and not refundable, so `up`
    prompts for the pool's name."""
    flex_start: Duration | None = None
    """Wait in the cloud's queue for machines to run this long (GCP)."""
    spot_max_usd_per_hour: Annotated[float, Meta(gt=0)] | None = None
    """Spot machines up to this price for a node, in USD per hour."""

    @property
    def market(self) -> str:
        """The market the option buys in, as the catalog calls it; "" when no key is given."""
        if self.reservation is not None:
            return "reservation"
        if self.capacity_block is not None or self.buy_capacity_block is not None:
            return "capacity-block"
        if self.flex_start is not None:
            return "flex-start"
        return "spot" if self.spot_max_usd_per_hour is not None else ""


Market: TypeAlias = Literal["on-demand", "spot", "flex-start"] | Option


class FailoverSite(SpecModel, frozen=True):
    """Another site for a pool, and what is different there."""

    UPDATES: ClassVar = updates(none="site machine market zones placement image without")

    site: Name
    """Name of the site."""
    machine: Annotated[str | None, Meta(examples=["Standard_ND96isr_H100_v5"])] = None
    """Machine type there; default: the pool's, or the one there that meets its requirement."""
    market: list[Market] = field(default_factory=list)
    """How machines are bought there; default: the pool's `market` without what is reserved."""
    zones: list[Identifier] = field(default_factory=list)
    """Zones to try in this order; default: the site's."""
    placement: Identifier | None = None
    """How the nodes are placed; default: the pool's, unless that is a group's name."""
    image: Identifier | None = None
    """Machine image to boot; default: the site's."""
    without: list[Name] = field(default_factory=list)
    """Storage that the pool's jobs can do without there; any other has to be there, or a copy."""
