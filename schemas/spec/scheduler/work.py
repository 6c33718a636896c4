"""What all schedulers have: partitions, accounts, QOS and windows of maintenance."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ..model import AccountName, Name, PoolName, SpecModel, updates
from ..units import ByteSize, Duration
from ..users import UserName

SUSPEND_AFTER_S = 600.0
"""`suspend_after` where the spec doesn't say it: the time a person needs to send the next job."""


class Qos(SpecModel, frozen=True):
    """A quality of service: a Slurm QOS, or a Kubernetes PriorityClass."""

    UPDATES: ClassVar = updates(
        in_place="priority preempts preemptible grace gpu_limit gpu_limit_per_user max_time "
        "max_jobs_per_user",
    )

    priority: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Higher goes first."""
    preempts: list[AccountName] = field(default_factory=list)
    """Qualities of service whose jobs give way to these."""
    preemptible: Literal["no", "requeue", "cancel"] = "no"
    """What happens to its jobs when others need the nodes."""
    grace: Duration | None = None
    """Time a job gets to save before it gives way."""
    gpu_limit: Annotated[int, Meta(ge=0)] | None = None
    """GPUs of all its jobs together."""
    gpu_limit_per_user: Annotated[int, Meta(ge=0)] | None = None
    """GPUs of one user's jobs together."""
    max_time: Duration | None = None
    """Longest run time of a job."""
    max_jobs_per_user: Annotated[int, Meta(ge=1)] | None = None
    """Running jobs of one user."""


class Account(SpecModel, frozen=True):
    """A group that shares the cluster: a Slurm account, or a Kubernetes namespace."""

    UPDATES: ClassVar = updates(in_place="share parent gpu_quota users qos default_qos")

    share: Annotated[int, Meta(ge=1)] = 1
    """Part of the whole, relative to its siblings'."""
    parent: AccountName | None = None
    """Account it is part of."""
    gpu_quota: Annotated[int, Meta(ge=0)] | None = None
    """GPUs of all its jobs together."""
    users: list[UserName] = field(default_factory=list)
    """Members."""
    qos: list[AccountName] = field(default_factory=list)
    """What its jobs may request; empty: all."""
    default_qos: AccountName | None = None
    """For jobs that request none."""


class SpillOnly(SpecModel, frozen=True):
    """Jobs that may spill; each key narrows further."""

    UPDATES: ClassVar = updates(in_place="data accounts qos max_time max_nodes")

    data: list[Name] = field(default_factory=list)
    """Storage a job may need: it is at the target, or has a copy."""
    accounts: list[AccountName] = field(default_factory=list)
    """Accounts that may spend."""
    qos: list[AccountName] = field(default_factory=list)
    """Qualities of service that may spill."""
    max_time: Duration | None = None
    """Longest job."""
    max_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Most nodes of one job."""


class Spill(SpecModel, frozen=True):
    """Jobs that waited too long move to a pool elsewhere."""

    UPDATES: ClassVar = updates(in_place="to after max_usd_per_hour max_usd_per_day only")

    to: PoolName
    """Compute pool they move to."""
    after: Duration
    """How long a job waits first."""
    max_usd_per_hour: Annotated[float, Meta(gt=0)] | None = None
    """Ceiling of the spill, USD per hour."""
    max_usd_per_day: Annotated[float, Meta(gt=0)] | None = None
    """Ceiling of the spill, USD per day."""
    only: SpillOnly = SpillOnly()
    """Jobs that may spill; default: all that fit."""


class Partition(SpecModel, frozen=True):
    """Pools that jobs are sent to together: a Slurm partition, or a Kubernetes queue."""

    UPDATES: ClassVar = updates(
        in_place="pools default max_time default_time max_nodes qos accounts tier spill exclusive "
        "hidden memory_per_cpu memory_per_gpu memory_per_node"
    )

    pools: Annotated[list[PoolName], Meta(min_length=1)]
    """Compute pools in this partition."""
    default: bool = False
    """Jobs that name no partition go here; one partition at most."""
    max_time: Duration | None = None
    """Longest run time of a job; default unlimited."""
    default_time: Duration | None = None
    """Run time of a job that says none (Slurm); default: the longest."""
    max_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Most nodes of one job."""
    qos: list[AccountName] = field(default_factory=list)
    """Only these qualities of service."""
    accounts: list[AccountName] = field(default_factory=list)
    """Only these accounts."""
    tier: Annotated[int, Meta(ge=1, le=65533)] = 1
    """Of two partitions on one node the higher goes first."""
    exclusive: bool = False
    """Jobs get whole nodes (OverSubscribe=EXCLUSIVE; Slurm)."""
    hidden: bool = False
    """Not shown by default (Slurm)."""
    memory_per_cpu: ByteSize | None = None
    """Memory of a job that requests none, for each of its CPUs (DefMemPerCPU, Slurm); default: a
    CPU's share of the smallest node, or what `scheduler.settings` says for all partitions."""
    memory_per_gpu: ByteSize | None = None
    """The same for each of its GPUs (DefMemPerGPU), instead."""
    memory_per_node: ByteSize | None = None
    """The same for each of its nodes (DefMemPerNode), instead."""
    spill: Spill | None = None
    """Where jobs go that wait too long."""


class Maintenance(SpecModel, frozen=True):
    """A window in which no job runs on some pools; of GKE and AKS, in which they renew nodes."""

    UPDATES: ClassVar = updates(in_place="start duration pools every")

    start: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?Z$(?!\n)",
            examples=["2027-01-15T06:00Z"],
        ),
    ]
    """When it starts, in UTC."""
    duration: Duration
    """How long it lasts."""
    pools: list[PoolName] = field(default_factory=list)
    """Pools it is for; empty: all."""
    every: Literal["day", "week"] | None = None
    """Repeats; default: once."""
