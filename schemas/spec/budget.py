"""What the cluster may cost, and how long it lives."""

from typing import Annotated, ClassVar

from msgspec import Meta

from .noun import Noun, updates
from .units import Duration

EXPIRY_NOTICE_S = 86_400.0
"""A day: whoever looks once a day at the cluster still sees it."""
IDLE_NOTICE_S = 1_800.0
"""Time to send a job, for whoever is logged in."""
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)"


class Budget(Noun, frozen=True):
    """Ceilings that `plan` and `up` hold the worst case of the spec against."""

    UPDATES: ClassVar = updates(
        none="max_usd_per_hour max_usd_per_month utilisation expires expires_on idle_shutdown "
        "notice",
    )

    max_usd_per_hour: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Most the cluster may cost, every machine running, USD per hour."),
    ] = None
    max_usd_per_month: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Most it may cost in a month of 730 hours at `utilisation`, USD."),
    ] = None
    utilisation: Annotated[
        float, Meta(gt=0, le=1, description="Share of the time that elastic nodes run.")
    ] = 1.0
    expires: Annotated[
        Duration | None,
        Meta(
            description="How long after its first `up` the cluster is removed, but its data: "
            "announced before, and never while jobs run."
        ),
    ] = None
    expires_on: Annotated[
        Annotated[str, Meta(pattern=_DAY, examples=["2027-03-31"])] | None,
        Meta(description="Day on which it is removed (UTC), as with `expires`."),
    ] = None
    idle_shutdown: Annotated[
        Duration | None,
        Meta(
            description="Removed, but its data, when no job has run or waited for so long; "
            "announced before.",
            examples=["8h"],
        ),
    ] = None
    notice: Annotated[
        Duration | None,
        Meta(
            description="How long before its end people are told; default: 1d before it expires, "
            "30m (at most half of `idle_shutdown`) before it is shut down."
        ),
    ] = None

    @property
    def expiry_notice_s(self) -> float:
        """Seconds between the announcement that the cluster expires and its end."""
        return EXPIRY_NOTICE_S if self.notice is None else self.notice.value

    @property
    def idle_notice_s(self) -> float:
        """Seconds between the announcement that an idle cluster is shut down and its end."""
        if self.notice is not None:
            return self.notice.value
        idle = 0.0 if self.idle_shutdown is None else self.idle_shutdown.value
        return min(IDLE_NOTICE_S, idle / 2)
