"""Pools that jobs are sent to together, and when their jobs spill to another pool."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from .noun import Name, Noun, updates
from .units import Duration


class SpillOnly(Noun, frozen=True):
    """Jobs that may spill; each key narrows further."""

    UPDATES: ClassVar = updates(in_place="data accounts qos max_time max_nodes")

    data: Annotated[
        list[Name], Meta(description="Storage a job may need: it is at the target, or has a copy.")
    ] = field(default_factory=list)
    accounts: Annotated[list[Name], Meta(description="Accounts that may spend.")] = field(
        default_factory=list
    )
    qos: Annotated[list[Name], Meta(description="Qualities of service that may spill.")] = field(
        default_factory=list
    )
    max_time: Annotated[Duration | None, Meta(description="Longest job.")] = None
    max_nodes: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Most nodes of one job.")
    ] = None


class Spill(Noun, frozen=True):
    """Jobs that waited too long move to a pool elsewhere."""

    UPDATES: ClassVar = updates(in_place="to after max_usd_per_hour max_usd_per_day only")

    to: Annotated[Name, Meta(description="Compute pool they move to.")]
    after: Annotated[Duration, Meta(description="How long a job waits first.")]
    max_usd_per_hour: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Ceiling of the spill, USD per hour.")
    ] = None
    max_usd_per_day: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Ceiling of the spill, USD per day.")
    ] = None
    only: Annotated[SpillOnly, Meta(description="Jobs that may spill; default: all that fit.")] = (
        SpillOnly()
    )


class Partition(Noun, frozen=True):
    """Pools that jobs are sent to together: a Slurm partition, or a Kubernetes queue."""

    UPDATES: ClassVar = updates(in_place="pools default max_time max_nodes qos accounts tier spill")

    pools: Annotated[list[Name], Meta(min_length=1, description="Compute pools in this partition.")]
    default: Annotated[
        bool, Meta(description="Jobs that name no partition go here; one partition at most.")
    ] = False
    max_time: Annotated[
        Duration | None, Meta(description="Longest run time of a job; default unlimited.")
    ] = None
    max_nodes: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Most nodes of one job.")
    ] = None
    qos: Annotated[list[Name], Meta(description="Only these qualities of service.")] = field(
        default_factory=list
    )
    accounts: Annotated[list[Name], Meta(description="Only these accounts.")] = field(
        default_factory=list
    )
    tier: Annotated[
        int,
        Meta(ge=1, le=65533, description="Of two partitions on one node the higher goes first."),
    ] = 1
    spill: Annotated[Spill | None, Meta(description="Where jobs go that wait too long.")] = None
