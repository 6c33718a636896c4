"""What the cluster may cost, and how long it lives."""

from typing import Annotated

from msgspec import Meta

from gcluster.schemas.spec.noun import Noun
from gcluster.schemas.spec.units import Duration

_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)"


class Budget(Noun, frozen=True):
    """Ceilings that `plan` and `up` hold the worst case of the spec against."""

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
        Meta(description="How long after its first `up` the cluster is announced for removal."),
    ] = None
    expires_on: Annotated[
        Annotated[str, Meta(pattern=_DAY, examples=["2027-03-31"])] | None,
        Meta(description="Day on which it is announced for removal (UTC)."),
    ] = None
