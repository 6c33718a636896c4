"""The scheduler, its partitions, and who may use how much."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .accounts import Account, Qos
from .kubernetes import KubernetesScheduler
from .noun import Name, Noun, updates
from .partition import Partition
from .units import ByteSize, Duration
from .words import Secret


class Topology(Noun, frozen=True):
    """How jobs are kept close together."""

    UPDATES: ClassVar = updates(in_place="plugin block_sizes")

    plugin: Annotated[
        Literal["auto", "block", "tree", "none"],
        Meta(description="auto: block where the spec or the site knows blocks, else tree or none."),
    ] = "auto"
    block_sizes: Annotated[
        list[Annotated[int, Meta(ge=1)]],
        Meta(description="Nodes of a block, then of groups of blocks (topology/block)."),
    ] = field(default_factory=list)


class Accounting(Noun, frozen=True):
    """slurmdbd and its database."""

    UPDATES: ClassVar = updates(in_place="pool database password purge_after")

    pool: Annotated[
        Name | None, Meta(description="Pool whose hosts run it; default: the controller's.")
    ] = None
    database: Annotated[
        str | None,
        Meta(description="host[:port] of a MariaDB that exists; default: one is set up."),
    ] = None
    password: Annotated[
        Secret | None, Meta(description="Of the existing database, by reference.")
    ] = None
    purge_after: Annotated[
        Duration | None, Meta(description="Job records older than this are archived away.")
    ] = None


class PriorityWeights(Noun, frozen=True):
    """How much each factor weighs in a job's priority (priority/multifactor)."""

    UPDATES: ClassVar = updates(in_place="age fairshare job_size partition qos")

    age: Annotated[int, Meta(ge=0, description="How long it waits.")] = 1_000
    fairshare: Annotated[int, Meta(ge=0, description="What its account has used.")] = 10_000
    job_size: Annotated[int, Meta(ge=0, description="How many nodes it asks for.")] = 0
    partition: Annotated[int, Meta(ge=0, description="Its partition's tier.")] = 0
    qos: Annotated[int, Meta(ge=0, description="The priority of its QOS.")] = 100_000


class Maintenance(Noun, frozen=True):
    """A window in which no job runs on some pools."""

    UPDATES: ClassVar = updates(in_place="start duration pools every")

    start: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?Z$(?!\n)",
            description="When it starts, in UTC.",
            examples=["2027-01-15T06:00Z"],
        ),
    ]
    duration: Annotated[Duration, Meta(description="How long it lasts.")]
    pools: Annotated[list[Name], Meta(description="Pools it is for; empty: all.")] = field(
        default_factory=list
    )
    every: Annotated[Literal["day", "week"] | None, Meta(description="Repeats; default: once.")] = (
        None
    )


class JobRules(Noun, frozen=True):
    """What a GPU job must say, or it is refused with a sentence that tells what to add."""

    UPDATES: ClassVar = updates(in_place="require_time require_gpus")

    require_time: Annotated[bool, Meta(description="--time.")] = False
    require_gpus: Annotated[bool, Meta(description="GPUs by number in GPU partitions.")] = False


SUSPEND_AFTER_S = 600.0
"""`suspend_after` where the spec doesn't say it: the time a person needs to send the next job."""
RESUME_TIMEOUT_S = 1800.0
"""`resume_timeout` where the spec doesn't say it: GPU machines of clouds take 5 to 15 minutes to
boot and converge, and Slurm counts from the request, with the wait for capacity."""


class SlurmScheduler(Noun, frozen=True, tag_field="type", tag="slurm"):
    """Slurm, configless: nodes fetch their configuration from the controller."""

    UPDATES: ClassVar = updates(
        in_place="partitions qos accounts accounting state_save topology priority maintenance "
        "job_rules job_scratch node_logins rest_api suspend_after resume_timeout "
        "memory_reserved",
    )

    partitions: Annotated[
        dict[Name, Partition],
        Meta(description='Default: one partition "main" with every compute pool.'),
    ] = field(default_factory=dict)
    qos: Annotated[dict[Name, Qos], Meta(description="Qualities of service.")] = field(
        default_factory=dict
    )
    accounts: Annotated[dict[Name, Account], Meta(description="Who shares and pays.")] = field(
        default_factory=dict
    )
    accounting: Annotated[
        Accounting | None,
        Meta(description="slurmdbd; default: set up where qos or accounts are given."),
    ] = None
    state_save: Annotated[
        Name | None,
        Meta(
            description="Storage for the controllers' shared state; needed for a backup controller."
        ),
    ] = None
    topology: Annotated[Topology, Meta(description="How jobs are kept close together.")] = (
        Topology()
    )
    priority: Annotated[PriorityWeights, Meta(description="Weights of the job priority.")] = (
        PriorityWeights()
    )
    maintenance: Annotated[
        dict[Name, Maintenance], Meta(description="Windows in which no job runs.")
    ] = field(default_factory=dict)
    job_rules: Annotated[JobRules, Meta(description="What jobs must say.")] = JobRules()
    job_scratch: Annotated[
        Annotated[str, Meta(pattern=r"^/[^\s,:=#'\"\\$]*$(?!\n)")] | None,
        Meta(
            description="Folder on the nodes' own disks where each job gets one of its own "
            "(TMPDIR), removed at its end; machines only.",
            examples=["/local"],
        ),
    ] = None
    node_logins: Annotated[
        Literal["jobs", "any"],
        Meta(
            description="Who may log in to compute machines by SSH: people with a job there "
            "(pam_slurm_adopt), whose processes are then the job's, or anybody."
        ),
    ] = "jobs"
    rest_api: Annotated[bool, Meta(description="Run slurmrestd (JWT).")] = False
    suspend_after: Annotated[
        Duration | None,
        Meta(description="Idle elastic nodes are given back after this; default: 10m."),
    ] = None
    resume_timeout: Annotated[
        Duration | None,
        Meta(description="An elastic node must answer within this; default: 30m."),
    ] = None
    memory_reserved: Annotated[
        ByteSize | None,
        Meta(
            description="Memory of a node that jobs don't get; default and least: 5 %, for a node "
            "that reports less than Slurm was told is drained."
        ),
    ] = None

    @property
    def suspend_s(self) -> float:
        """Seconds after which an idle elastic node is given back."""
        return SUSPEND_AFTER_S if self.suspend_after is None else self.suspend_after.value

    @property
    def resume_s(self) -> float:
        """Seconds within which an elastic node must answer."""
        return RESUME_TIMEOUT_S if self.resume_timeout is None else self.resume_timeout.value


Scheduler: TypeAlias = SlurmScheduler | KubernetesScheduler
"""Any scheduler; `type:` chooses the branch."""
