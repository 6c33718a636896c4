"""How machines of a cloud are bought, and how many."""

from typing import Annotated, ClassVar

from msgspec import Meta

from .noun import Noun, updates
from .units import Duration
from .words import Identifier


class Count(Noun, frozen=True):
    """A pool that grows and shrinks with the queue."""

    UPDATES: ClassVar = updates(shrink="max min")

    max: Annotated[int, Meta(ge=0, description="Most machines at once.")]
    min: Annotated[int, Meta(ge=0, description="Machines that are always there.")] = 0


class Rung(Noun, frozen=True):
    """One way to buy machines, where a word doesn't say enough. Give one of the keys."""

    UPDATES: ClassVar = updates(
        none="reservation capacity_block buy_capacity_block flex_start spot_max_usd_per_hour",
    )

    reservation: Annotated[
        Identifier | None,
        Meta(
            description="Reserved capacity to use: an ODCR or its resource group (AWS), a "
            "reservation (GCP).",
            examples=["cr-0abc", "projects/p/reservations/r"],
        ),
    ] = None
    capacity_block: Annotated[
        Identifier | None,
        Meta(
            description="A capacity block you own (AWS), or a future reservation (GCP).",
            examples=["cr-0abc"],
        ),
    ] = None
    buy_capacity_block: Annotated[
        Duration | None,
        Meta(
            description="Buy a capacity block for this long (AWS). It is paid at once and not "
            "refundable, so `up` asks for it by name."
        ),
    ] = None
    flex_start: Annotated[
        Duration | None,
        Meta(description="Wait in the cloud's queue for machines to run this long (GCP)."),
    ] = None
    spot_max_usd_per_hour: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Spot machines up to this price for a node, in USD per hour."),
    ] = None

    @property
    def market(self) -> str:
        """The market the rung buys in, as the catalog calls it; "" when no key is given."""
        if self.reservation is not None:
            return "reservation"
        if self.capacity_block is not None or self.buy_capacity_block is not None:
            return "capacity-block"
        if self.flex_start is not None:
            return "flex-start"
        return "spot" if self.spot_max_usd_per_hour is not None else ""
