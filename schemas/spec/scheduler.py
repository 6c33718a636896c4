"""Schedulers: partitions, accounts and QOS, Slurm's and Kubernetes' own settings."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import AccountName, Cidr, Name, PoolName, Secret, SpecModel, updates
from .units import ByteSize, Duration
from .users import UserName


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
    """What its jobs may ask for; empty: all."""
    default_qos: AccountName | None = None
    """For jobs that ask for none."""


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
    """Not shown to people who don't ask for it (Slurm)."""
    memory_per_cpu: ByteSize | None = None
    """Memory of a job that asks for none, for each of its CPUs (DefMemPerCPU, Slurm); default: a
    CPU's share of the smallest node, or what `scheduler.settings` says for all partitions."""
    memory_per_gpu: ByteSize | None = None
    """The same for each of its GPUs (DefMemPerGPU), instead."""
    memory_per_node: ByteSize | None = None
    """The same for each of its nodes (DefMemPerNode), instead."""
    spill: Spill | None = None
    """Where jobs go that wait too long."""


class VirtualAddress(SpecModel, frozen=True):
    """One address for several control planes on bare metal."""

    UPDATES: ClassVar = updates(replace="address by")

    address: Annotated[str, Meta(min_length=1)]
    """A free address of their network."""
    by: Literal["kube-vip", "keepalived"] = "kube-vip"
    """Who moves it."""


class KubernetesGpu(SpecModel, frozen=True):
    """How pods get GPUs."""

    UPDATES: ClassVar = updates(in_place="time_slices resource_claims", rolling="driver mig")

    driver: Literal["host", "container"] = "host"
    """Who brings the driver."""
    mig: Annotated[str | None, Meta(examples=["all-1g.10gb"])] = None
    """MIG profile of all GPUs; default: off."""
    time_slices: Annotated[int, Meta(ge=1)] = 1
    """Pods that share one GPU in turns."""
    resource_claims: bool = False
    """Dynamic resource allocation instead of the device plugin."""


class CloudIdentity(SpecModel, frozen=True):
    """Who an account's pods are to the cloud that runs the control plane; no key is anywhere."""

    UPDATES: ClassVar = updates(in_place="name client_id")

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=512,
            examples=["arn:aws:iam::123456789012:role/nlp", "nlp@acme.iam.gserviceaccount.com"],
        ),
    ]
    """An identity that exists: a role's ARN (EKS), the e-mail of a service account (GKE), the
    resource id of a managed identity (AKS)."""
    client_id: (
        Annotated[
            str,
            Meta(
                pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$(?!\n)",
                examples=["00000000-0000-0000-0000-000000000000"],
            ),
        ]
        | None
    ) = None
    """Client id of the managed identity (AKS)."""


class RegistryLogin(SpecModel, frozen=True):
    """How nodes pull accounts' images from a registry that wants a login."""

    UPDATES: ClassVar = updates(in_place="server username password accounts")

    server: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$(?!\n)",
            max_length=253,
            examples=["nvcr.io"],
        ),
    ]
    """Host of the registry, and its port where that isn't 443."""
    username: Annotated[str, Meta(min_length=1, examples=["$oauthtoken"])]
    """Who logs in; NGC's API keys log in as $oauthtoken."""
    password: Secret
    """Of that user, or a token."""
    accounts: list[AccountName] = field(default_factory=list)
    """Accounts whose pods pull with it, and whose members can read it; empty: all."""


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


class KubernetesScheduler(SpecModel, frozen=True, tag_field="type", tag="kubernetes"):
    """Kubernetes by kubeadm, or the cloud's own control plane."""

    UPDATES: ClassVar = updates(
        in_place="partitions qos accounts kueue addons pod_security identities registries "
        "maintenance",
        rolling="gpu",
        replace="cni pod_cidr service_cidr virtual_address control_plane",
    )

    partitions: dict[PoolName, Partition] = field(default_factory=dict)
    """Queues; default: one, "main", with every compute pool."""
    qos: dict[AccountName, Qos] = field(default_factory=dict)
    """Priority classes."""
    accounts: dict[AccountName, Account] = field(default_factory=dict)
    """Namespaces with their quotas."""
    cni: Literal["auto", "cilium", "calico", "routed"] = "auto"
    """Pod network; auto: routed on local sites, cilium elsewhere."""
    pod_cidr: Cidr = "10.244.0.0/16"
    """Network of the pods."""
    service_cidr: Cidr = "10.96.0.0/12"
    """Network of the services."""
    virtual_address: VirtualAddress | None = None
    """Of several control planes; clouds use their load balancer."""
    control_plane: Literal["self", "eks", "gke", "aks"] = "self"
    """Who runs the control plane: controller pools, or the cloud."""
    gpu: KubernetesGpu = KubernetesGpu()
    """How pods get GPUs."""
    kueue: bool = True
    """Queue jobs by Kueue."""
    pod_security: Literal["restricted", "baseline"] = "restricted"
    """Pod Security Standard that pods of accounts are held to; baseline lets containers be root."""
    addons: list[Name] = field(default_factory=list)
    """Add-ons of the catalog in addition to the built-in ones."""
    identities: dict[AccountName, CloudIdentity] = field(default_factory=dict)
    """Account -> identity of the cloud that its pods have (EKS, GKE, AKS)."""
    registries: dict[Name, RegistryLogin] = field(default_factory=dict)
    """Registries of images that want a login; pods of accounts need not name a secret."""
    maintenance: dict[Name, Maintenance] = field(default_factory=dict)
    """The window in which the cloud renews control plane and nodes' images (GKE, AKS)."""


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
    """How many nodes it asks for."""
    partition: Annotated[int, Meta(ge=0)] = 0
    """Its partition's tier."""
    qos: Annotated[int, Meta(ge=0)] = 100_000
    """The priority of its QOS."""


class JobRules(SpecModel, frozen=True):
    """What a GPU job must say, or it is refused with a sentence that tells what to add."""

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
    than Slurm was told is drained."""
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


class NoScheduler(SpecModel, frozen=True, tag_field="type", tag="none"):
    """No scheduler: people start Ray, torchrun or mpirun on the nodes themselves, over SSH."""

    @property
    def partitions(self) -> dict[str, Partition]:
        """Partitions: none, so that a test covers all compute pools at once."""
        return {}

    @property
    def qos(self) -> dict[str, Qos]:
        """Qualities of service: none."""
        return {}

    @property
    def accounts(self) -> dict[str, Account]:
        """Accounts: none."""
        return {}


Scheduler: TypeAlias = SlurmScheduler | KubernetesScheduler | NoScheduler
"""Any scheduler; `type:` chooses the branch."""
