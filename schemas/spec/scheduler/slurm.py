"""Slurm's own settings."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from ..model import AccountName, Name, PoolName, Secret, SpecModel, updates
from ..units import ByteSize, Duration
from .work import SUSPEND_AFTER_S, Account, Maintenance, Partition, Qos


class Topology(SpecModel, frozen=True):
    """How jobs are kept close together."""

    UPDATES: ClassVar = updates(in_place="plugin block_sizes")

    plugin: Literal["auto", "block", "tree", "none"] = "auto"
    """auto: block where the spec or the site knows blocks, else tree or none."""
    block_sizes: list[Annotated[int, Meta(ge=1)]] = field(default_factory=list)
    """Nodes of a block, then of groups of blocks (topology/block)."""


class Accounting(SpecModel, frozen=True):
    """slurmdbd and its database."""

    UPDATES: ClassVar = updates(in_place="pool database password purge_after")

    pool: PoolName | None = None
    """Pool whose hosts run it; default: the controller's."""
    database: str | None = None
    """host[:port] of a MariaDB that exists; default: one is set up."""
    password: Secret | None = None
    """Of the existing database, by reference."""
    purge_after: Duration | None = None
    """Job records older than this are archived away."""


class PriorityWeights(SpecModel, frozen=True):
    """How much each factor weighs in a job's priority (priority/multifactor)."""

    UPDATES: ClassVar = updates(in_place="age fairshare job_size partition qos")

    age: Annotated[int, Meta(ge=0)] = 1_000
    """How long it waits."""
    fairshare: Annotated[int, Meta(ge=0)] = 10_000
    """What its account has used."""
    job_size: Annotated[int, Meta(ge=0)] = 0
    """How many nodes it requests."""
    partition: Annotated[int, Meta(ge=0)] = 0
    """Its partition's tier."""
    qos: Annotated[int, Meta(ge=0)] = 100_000
    """The priority of its QOS."""


class JobRules(SpecModel, frozen=True):
    """What a GPU job must say, or it is refused with a message what to add."""

    UPDATES: ClassVar = updates(in_place="require_time require_gpus")

    require_time: bool = False
    """--time."""
    require_gpus: bool = False
    """GPUs by number in GPU partitions."""


SettingName: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^[A-Z][A-Za-z0-9]{1,63}$(?!\n)", description="As Slurm spells it."),
]
SettingValue: TypeAlias = (
    Annotated[str, Meta(pattern=r"^[^\s#][^\r\n#]*$(?!\n)", examples=["use_interactive_step"])]
    | bool
    | int
    | float
)
"""The value of a setting of Slurm's: one line without a comment; true and false are yes and no."""


class SlurmSettings(SpecModel, frozen=True):
    """Settings of Slurm's own files that the spec has no word for, by their names there.

    `validate` knows the names of every release from 21.08 on and refuses those that gcluster writes
    itself. Words that `SchedulerParameters` has of gcluster stay, unless they are said here.
    """

    UPDATES: ClassVar = updates(in_place="slurm cgroup slurmdbd")

    slurm: dict[SettingName, SettingValue] = field(default_factory=dict)
    """slurm.conf."""
    cgroup: dict[SettingName, SettingValue] = field(default_factory=dict)
    """cgroup.conf."""
    slurmdbd: dict[SettingName, SettingValue] = field(default_factory=dict)
    """slurmdbd.conf."""


RESUME_TIMEOUT_S = 1800.0
"""`resume_timeout` where the spec doesn't say it: GPU machines of clouds take 5 to 15 minutes to
boot and converge, and Slurm counts from the request, with the wait for capacity."""


class SlurmScheduler(SpecModel, frozen=True, tag_field="type", tag="slurm"):
    """Slurm, configless: nodes fetch their configuration from the controller."""

    UPDATES: ClassVar = updates(
        in_place="partitions qos accounts accounting state_save topology priority maintenance "
        "job_rules job_scratch node_logins rest_api suspend_after resume_timeout "
        "memory_reserved x11 srun_ports settings",
    )

    partitions: dict[PoolName, Partition] = field(default_factory=dict)
    """Default: one partition "main" with every compute pool."""
    qos: dict[AccountName, Qos] = field(default_factory=dict)
    """Qualities of service."""
    accounts: dict[AccountName, Account] = field(default_factory=dict)
    """Who shares and pays."""
    accounting: Accounting | None = None
    """slurmdbd; default: set up where qos or accounts are given."""
    state_save: Name | None = None
    """Storage for the controllers' shared state; needed for a backup controller."""
    topology: Topology = Topology()
    """How jobs are kept close together."""
    priority: PriorityWeights = PriorityWeights()
    """Weights of the job priority."""
    maintenance: dict[Name, Maintenance] = field(default_factory=dict)
    """Windows in which no job runs."""
    job_rules: JobRules = JobRules()
    """What jobs must say."""
    job_scratch: Annotated[
        Annotated[str, Meta(pattern=r"^/[^\s,:=#'\"\\$]*$(?!\n)")] | None, Meta(examples=["/local"])
    ] = None
    """Folder on the nodes' own disks where each job gets one of its own (TMPDIR), removed at its
    end; machines only."""
    node_logins: Literal["jobs", "any"] = "jobs"
    """Who may log in to compute machines by SSH: users with a job there (pam_slurm_adopt), whose
    processes are then the job's, or all users."""
    rest_api: bool = False
    """Run slurmrestd (JWT)."""
    suspend_after: Duration | None = None
    """Idle elastic nodes are given back after this; default: 10m."""
    resume_timeout: Duration | None = None
    """An elastic node must answer within this; default: 30m."""
    memory_reserved: ByteSize | None = None
    """Memory of a node that jobs don't get; default and least: 5 %, for a node that reports less
    than Slurm's configuration has is drained."""
    settings: SlurmSettings = SlurmSettings()
    """Settings of Slurm's own files that nothing above says."""
    x11: bool = False
    """Show windows of jobs to who starts them (`ssh -X`, `srun --x11`); machines only."""
    srun_ports: Annotated[
        Annotated[str, Meta(pattern=r"^[1-9][0-9]{3,4}-[1-9][0-9]{3,4}$(?!\n)")] | None,
        Meta(examples=["60001-63000"]),
    ] = None
    """Ports on which srun waits for its nodes, for networks that let only some through; default:
    any."""

    @property
    def suspend_s(self) -> float:
        """Seconds after which an idle elastic node is given back."""
        return SUSPEND_AFTER_S if self.suspend_after is None else self.suspend_after.value

    @property
    def resume_s(self) -> float:
        """Seconds within which an elastic node must answer."""
        return RESUME_TIMEOUT_S if self.resume_timeout is None else self.resume_timeout.value
