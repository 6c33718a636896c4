"""Schedulers: partitions, accounts and QOS, Slurm's and Kubernetes' own settings."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Cidr, Name, Secret, SpecModel, updates
from .units import ByteSize, Duration
from .users import UserName


class Qos(SpecModel, frozen=True):
    """A quality of service: a Slurm QOS, or a Kubernetes PriorityClass."""

    UPDATES: ClassVar = updates(
        in_place="priority preempts preemptible grace gpu_limit gpu_limit_per_user max_time "
        "max_jobs_per_user",
    )

    priority: Annotated[int, Meta(ge=0, le=1_000_000, description="Higher goes first.")] = 0
    preempts: Annotated[
        list[Name], Meta(description="Qualities of service whose jobs give way to these.")
    ] = field(default_factory=list)
    preemptible: Annotated[
        Literal["no", "requeue", "cancel"],
        Meta(description="What happens to its jobs when others need the nodes."),
    ] = "no"
    grace: Annotated[
        Duration | None, Meta(description="Time a job gets to save before it gives way.")
    ] = None
    gpu_limit: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="GPUs of all its jobs together.")
    ] = None
    gpu_limit_per_user: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="GPUs of one user's jobs together.")
    ] = None
    max_time: Annotated[Duration | None, Meta(description="Longest run time of a job.")] = None
    max_jobs_per_user: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Running jobs of one user.")
    ] = None


class Account(SpecModel, frozen=True):
    """A group that shares the cluster: a Slurm account, or a Kubernetes namespace."""

    UPDATES: ClassVar = updates(in_place="share parent gpu_quota users qos default_qos")

    share: Annotated[
        int, Meta(ge=1, description="Part of the whole, relative to its siblings'.")
    ] = 1
    parent: Annotated[Name | None, Meta(description="Account it is part of.")] = None
    gpu_quota: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="GPUs of all its jobs together.")
    ] = None
    users: Annotated[list[UserName], Meta(description="Members.")] = field(default_factory=list)
    qos: Annotated[list[Name], Meta(description="What its jobs may ask for; empty: all.")] = field(
        default_factory=list
    )
    default_qos: Annotated[Name | None, Meta(description="For jobs that ask for none.")] = None


class SpillOnly(SpecModel, frozen=True):
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


class Spill(SpecModel, frozen=True):
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


class Partition(SpecModel, frozen=True):
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


class VirtualAddress(SpecModel, frozen=True):
    """One address for several control planes on bare metal."""

    UPDATES: ClassVar = updates(replace="address by")

    address: Annotated[str, Meta(min_length=1, description="A free address of their network.")]
    by: Annotated[Literal["kube-vip", "keepalived"], Meta(description="Who moves it.")] = "kube-vip"


class KubernetesGpu(SpecModel, frozen=True):
    """How pods get GPUs."""

    UPDATES: ClassVar = updates(in_place="time_slices resource_claims", rolling="driver mig")

    driver: Annotated[Literal["host", "container"], Meta(description="Who brings the driver.")] = (
        "host"
    )
    mig: Annotated[
        str | None,
        Meta(description="MIG profile of all GPUs; default: off.", examples=["all-1g.10gb"]),
    ] = None
    time_slices: Annotated[int, Meta(ge=1, description="Pods that share one GPU in turns.")] = 1
    resource_claims: Annotated[
        bool, Meta(description="Dynamic resource allocation instead of the device plugin.")
    ] = False


class KubernetesScheduler(SpecModel, frozen=True, tag_field="type", tag="kubernetes"):
    """Kubernetes by kubeadm, or the cloud's own control plane."""

    UPDATES: ClassVar = updates(
        in_place="partitions qos accounts kueue addons",
        rolling="gpu",
        replace="cni pod_cidr service_cidr virtual_address control_plane",
    )

    partitions: Annotated[
        dict[Name, Partition],
        Meta(description='Queues; default: one, "main", with every compute pool.'),
    ] = field(default_factory=dict)
    qos: Annotated[dict[Name, Qos], Meta(description="Priority classes.")] = field(
        default_factory=dict
    )
    accounts: Annotated[dict[Name, Account], Meta(description="Namespaces with their quotas.")] = (
        field(default_factory=dict)
    )
    cni: Annotated[
        Literal["auto", "cilium", "calico", "routed"],
        Meta(description="Pod network; auto: routed on local sites, cilium elsewhere."),
    ] = "auto"
    pod_cidr: Annotated[Cidr, Meta(description="Network of the pods.")] = "10.244.0.0/16"
    service_cidr: Annotated[Cidr, Meta(description="Network of the services.")] = "10.96.0.0/12"
    virtual_address: Annotated[
        VirtualAddress | None,
        Meta(description="Of several control planes; clouds use their load balancer."),
    ] = None
    control_plane: Annotated[
        Literal["self", "eks", "gke", "aks"],
        Meta(description="Who runs the control plane: controller pools, or the cloud."),
    ] = "self"
    gpu: Annotated[KubernetesGpu, Meta(description="How pods get GPUs.")] = KubernetesGpu()
    kueue: Annotated[bool, Meta(description="Queue jobs by Kueue.")] = True
    addons: Annotated[
        list[Name], Meta(description="Add-ons of the catalog in addition to the built-in ones.")
    ] = field(default_factory=list)


class Topology(SpecModel, frozen=True):
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


class Accounting(SpecModel, frozen=True):
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


class PriorityWeights(SpecModel, frozen=True):
    """How much each factor weighs in a job's priority (priority/multifactor)."""

    UPDATES: ClassVar = updates(in_place="age fairshare job_size partition qos")

    age: Annotated[int, Meta(ge=0, description="How long it waits.")] = 1_000
    fairshare: Annotated[int, Meta(ge=0, description="What its account has used.")] = 10_000
    job_size: Annotated[int, Meta(ge=0, description="How many nodes it asks for.")] = 0
    partition: Annotated[int, Meta(ge=0, description="Its partition's tier.")] = 0
    qos: Annotated[int, Meta(ge=0, description="The priority of its QOS.")] = 100_000


class Maintenance(SpecModel, frozen=True):
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


class JobRules(SpecModel, frozen=True):
    """What a GPU job must say, or it is refused with a sentence that tells what to add."""

    UPDATES: ClassVar = updates(in_place="require_time require_gpus")

    require_time: Annotated[bool, Meta(description="--time.")] = False
    require_gpus: Annotated[bool, Meta(description="GPUs by number in GPU partitions.")] = False


SUSPEND_AFTER_S = 600.0
"""`suspend_after` where the spec doesn't say it: the time a person needs to send the next job."""
RESUME_TIMEOUT_S = 1800.0
"""`resume_timeout` where the spec doesn't say it: GPU machines of clouds take 5 to 15 minutes to
boot and converge, and Slurm counts from the request, with the wait for capacity."""


class SlurmScheduler(SpecModel, frozen=True, tag_field="type", tag="slurm"):
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
