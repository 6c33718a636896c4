"""Pools: nodes that are alike, how they are bought and how they are updated."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Bastion, HostKey, Identifier, LoginUser, Name, SpecModel, Tag, updates
from .rdma import Rdma
from .sites.purchase import FailoverSite, Market
from .software import Boot, Firmware, GpuSettings, Software, Tuning
from .units import ByteSize, Duration


class Count(SpecModel, frozen=True):
    """A pool that grows and shrinks with the queue."""

    UPDATES: ClassVar = updates(shrink="max min")

    max: Annotated[int, Meta(ge=0)]
    """Most machines at once."""
    min: Annotated[int, Meta(ge=0)] = 0
    """Machines that are always there."""


SHARE_AT_ONCE = 0.1
"""Share of a pool that may be out of service at once where the spec says nothing."""


class Update(SpecModel, frozen=True):
    """A rolling change: nodes are drained, changed, verified and given back, a few at a time."""

    UPDATES: ClassVar = updates(none="max_unavailable max_failed drain_timeout jobs")

    max_unavailable: Annotated[int, Meta(ge=1)] | None = None
    """Nodes of the pool out of service at once; default: a tenth of the pool, at least one."""
    max_failed: Annotated[int, Meta(ge=0)] = 0
    """Stop when more nodes than this failed; the rest stays as it was."""
    drain_timeout: Duration | None = None
    """How long to wait for the jobs of a drained node; then it is given back unchanged and named.
    Default: 1h."""
    jobs: Literal["wait", "requeue"] = "wait"
    """Jobs on a drained node: wait for their end, or put them back in line."""

    def at_once(self, nodes: int) -> int:
        """Return how many of a pool's nodes may be out of service at once."""
        return self.max_unavailable or max(1, int(nodes * SHARE_AT_ONCE))

    @property
    def wait_s(self) -> float:
        """Seconds to wait for the jobs of a drained node."""
        return 3600.0 if self.drain_timeout is None else self.drain_timeout.value


PoolRole: TypeAlias = Literal["compute", "controller", "login"]

FabricClass: TypeAlias = Literal[
    "nvlink",
    "infiniband-hdr", "infiniband-ndr", "infiniband-xdr",
    "roce",
    "efa-host", "efa-v1", "efa-v2", "efa-v3", "efa-v4",
    "gpudirect-tcpx", "gpudirect-tcpxo", "gib", "gib-metal",
    "ethernet",
]  # fmt: skip
"""What carries the GPUs' traffic between nodes; each has an entry in the catalog's fabrics."""

HostRange: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        description="A host name or a Slurm host range.",
        examples=["head01", "gpu[001-064]", "rack[1-2]n[01-16,20]"],
    ),
]


class HostEntry(SpecModel, frozen=True):
    """Hosts that need more said than their name; every key besides `name` overrides the site's."""

    UPDATES: ClassVar = updates(in_place="name address user port bastion host_key block leaf")

    name: HostRange
    address: Annotated[str | None, Meta(examples=["10.0.1.[1-64]"])] = None
    """Address the other nodes and SSH use; a range of the same length as name."""
    user: LoginUser | None = None
    """Login user."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """TCP port of sshd."""
    bastion: Bastion | None = None
    """[user@]host[:port] to jump through."""
    host_key: HostKey | None = None
    """Public host key to pin for one host."""
    block: str | None = None
    """Scalable unit or NVLink domain of the hosts."""
    leaf: str | None = None
    """Leaf switch group the hosts hang on."""


class NodeCpu(SpecModel, frozen=True):
    """The processors of one node, as `lscpu` says them."""

    UPDATES: ClassVar = updates(in_place="sockets cores threads_per_core gpus")

    sockets: Annotated[int, Meta(ge=1)]
    """Sockets."""
    cores: Annotated[int, Meta(ge=1)]
    """Cores of one socket."""
    threads_per_core: Annotated[int, Meta(ge=1)] = 1
    """Threads of one core."""
    gpus: Annotated[
        list[Annotated[int, Meta(ge=0)]] | None, Meta(examples=[[0, 0, 0, 0, 1, 1, 1, 1]])
    ] = None
    """Socket that each GPU hangs on, in the order of `nvidia-smi topo -m`: jobs get cores next to
    their GPUs. Default: any core."""


LabelName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$(?!\n)",
        max_length=317,
        examples=["example.edu/team"],
    ),
]
LabelValue: TypeAlias = Annotated[
    str, Meta(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$(?!\n)", max_length=63)
]


class NodeTaint(SpecModel, frozen=True):
    """What keeps pods off a pool's nodes that don't tolerate it."""

    UPDATES: ClassVar = updates(in_place="key value effect")

    key: LabelName
    """As a label's name."""
    value: LabelValue = ""
    """As a label's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """What becomes of pods that don't tolerate it."""


class RuntimeClass(SpecModel, frozen=True):
    """A runtime for pods other than runc: its shim is in the image, or a hook installs it."""

    UPDATES: ClassVar = updates(in_place="name type")

    name: Annotated[Name, Meta(examples=["kata", "gvisor"])]
    """The name by which pods request it, `runtimeClassName`. Pools may have the same."""
    type: Annotated[
        str,
        Meta(
            pattern=r"^io\.containerd\.[a-z0-9]+([-.][a-z0-9]+)*\.v[0-9]+$(?!\n)",
            max_length=120,
            examples=["io.containerd.kata.v2", "io.containerd.runsc.v1"],
        ),
    ]
    """As containerd calls it: with io.containerd.kata.v2 it starts containerd-shim-kata-v2."""


GresName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9_]{0,31}$(?!\n)",
        description="Name of a generic resource, as in --gres=NAME:COUNT.",
        examples=["shard", "mps", "fpga"],
    ),
]


class Gres(SpecModel, frozen=True):
    """A generic resource of each node besides its GPUs, as gres.conf(5) has it."""

    UPDATES: ClassVar = updates(in_place="count type files cores flags")

    count: Annotated[int, Meta(ge=1)] | None = None
    """How many a node has; default: as many as `files` names. Of shard and mps those of all GPUs
    together, such as 32 shards of 8 GPUs: each GPU has as many."""
    type: (
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$(?!\n)", examples=["u250"])]
        | None
    ) = None
    """Its kind, as in --gres=NAME:TYPE:COUNT."""
    files: (
        Annotated[
            str,
            Meta(
                pattern=r"^/dev/[A-Za-z0-9_./:-]+(\[[0-9]{1,4}(-[0-9]{1,4})?"
                r"(,[0-9]{1,4}(-[0-9]{1,4})?)*\])?$(?!\n)",
                examples=["/dev/xfpga[0-1]", "/dev/nvme1n1"],
            ),
        ]
        | None
    ) = None
    """Device files, of which a job gets those that it requested; a range as Slurm writes it."""
    cores: (
        Annotated[str, Meta(pattern=r"^[0-9]{1,5}([-,][0-9]{1,5})*$(?!\n)", examples=["0-55"])]
        | None
    ) = None
    """Cores near it, in Slurm's own numbers; default: any."""
    flags: list[Literal["one_sharing", "all_sharing"]] = field(default_factory=list)
    """Whether a job's share comes from one GPU or from all of a node (shard, mps)."""

    @property
    def file_count(self) -> int:
        """How many device files there are."""
        if self.files is None:
            return 0
        inside = self.files.partition("[")[2].removesuffix("]")
        pairs = [part.split("-") for part in inside.split(",") if part]
        return sum(int(pair[-1]) - int(pair[0]) + 1 for pair in pairs) if pairs else 1

    @property
    def number(self) -> int:
        """How many a node has."""
        return self.count or self.file_count


class PoolKubernetes(SpecModel, frozen=True):
    """Nodes of a pool under Kubernetes: what they are called, and how their kubelet runs pods."""

    UPDATES: ClassVar = updates(
        in_place="labels taints system time_slices runtime_class",
        rolling="mig alignment pin_memory reserved_cpus reserved_memory max_pods pids_per_pod "
        "parallel_pulls",
    )

    labels: dict[LabelName, LabelValue] = field(default_factory=dict)
    """Labels in addition to gcluster's own."""
    taints: list[NodeTaint] = field(default_factory=list)
    """Taints of its nodes; jobs that a queue sends here tolerate them."""
    system: bool = False
    """Its nodes are for the cluster's own pods and for no jobs; they are in no partition."""
    runtime_class: RuntimeClass | None = None
    """What the templates of its jobs run in, and other pods may request; default: runc alone."""
    mig: Annotated[str | None, Meta(examples=["all-1g.10gb", "none"])] = None
    """MIG profile of the pool's GPUs, or none; default: that of `scheduler.gpu`."""
    time_slices: Annotated[int, Meta(ge=1)] | None = None
    """Pods that share one of its GPUs in turns; default: as in `scheduler.gpu`."""
    alignment: Literal["none", "best-effort", "restricted", "single-numa-node"] | None = None
    """Topology manager: whether a pod's CPUs, GPUs and adapters are of one NUMA node; with all but
    none pods of whole CPUs have these to themselves. Default: best-effort on machines with GPUs."""
    pin_memory: bool = False
    """Memory manager: pods of whole CPUs get memory of their NUMA nodes."""
    reserved_cpus: Annotated[int, Meta(ge=1)] | None = None
    """CPUs that pods don't get; default: one and one more for each 64."""
    reserved_memory: ByteSize | None = None
    """Memory that pods don't get; default: 1 GiB and 1 % of the node's."""
    max_pods: Annotated[int, Meta(ge=1, le=250)] = 110
    """Pods of one node."""
    pids_per_pod: Annotated[int, Meta(ge=1024)] = 32768
    """Processes and threads of one pod."""
    parallel_pulls: Annotated[int, Meta(ge=1)] = 8
    """Images that a node pulls at once."""


class MachineRequirement(SpecModel, frozen=True):
    """What a machine type has to have: the one of the catalog that fits is taken, and named.

    It is for sites that make machines; hosts that exist are what they are.
    """

    UPDATES: ClassVar = updates(replace="gpu per_node gpu_memory fabric architecture")

    gpu: Annotated[str, Meta(min_length=1, examples=["H100", "MI300X"])]
    """Model of its GPUs, in any case."""
    per_node: Annotated[int, Meta(ge=1)] | None = None
    """GPUs of a node; default: any number."""
    gpu_memory: ByteSize | None = None
    """Memory that each GPU has at least."""
    fabric: Literal["rdma"] | FabricClass | None = None
    """What carries the GPUs' traffic between nodes: a class, or rdma for any whose adapters read
    GPUs' memory themselves."""
    architecture: Literal["x86_64", "aarch64"] | None = None
    """What its processors are."""


if TYPE_CHECKING:
    _Machine: TypeAlias = str
    """What is left once a spec is loaded (`derived/loading/machine_requirements.py`)."""
else:
    _Machine = str | MachineRequirement


class Pool(SpecModel, frozen=True):
    """Machines of one site that are alike and are run alike."""

    UPDATES: ClassVar = updates(
        none="quorum market mixed update failover failover_by",
        in_place="compute hosts nodes_per_block tags cpu memory tuning features weight gres",
        rolling="fabric software boot gpus rdma firmware kubernetes",
        replace="site role machine zones placement image disk public_address",
        shrink="count skip",
    )

    site: Name
    """Name of the site they come from."""
    role: PoolRole = "compute"
    """controller runs the scheduler, login is for people, compute works."""
    compute: bool = False
    """Jobs run on this controller too, as on a GPU server that is the whole cluster (Slurm; hosts
    that exist, or local nodes)."""
    machine: _Machine | None = None
    """Machine type of the catalog, or what it has to have; may be left out for controllers and
    logins."""
    hosts: HostRange | list[HostRange | HostEntry] | None = None
    """Existing hosts (bare metal): a range, or a list of ranges and entries."""
    nodes_per_block: Annotated[Annotated[int, Meta(ge=2)] | None, Meta(examples=[18])] = None
    """Nodes of a scalable unit or NVLink domain, such as 18 of GB200 NVL72: nodes without a
    block are put into blocks of this size, in the order of their names."""
    count: Annotated[int, Meta(ge=0)] | Count | None = None
    """How many machines to make (sites that make machines): a number, or {min, max} for a pool that
    grows and shrinks with the queue."""
    skip: Annotated[HostRange | None, Meta(examples=["gpu001"])] = None
    """Names that the pool's machines don't get: with count 2 and skip gpu001 they are gpu002 and
    gpu003. So a pool can shrink by the machine that is idle."""
    quorum: Annotated[int, Meta(ge=1)] | None = None
    """Go live with this many; the rest is named and repaired later."""
    fabric: FabricClass | None = None
    """Fabric class of the pool; default: the machine type's."""
    market: list[Market] = field(default_factory=list)
    """How machines are bought, tried in this order (clouds); default: on demand."""
    mixed: bool = False
    """Nodes of several options of `market` may be in one fabric domain."""
    zones: list[Identifier] = field(default_factory=list)
    """Zones to try in this order (clouds); default: the site's."""
    failover: list[Name | FailoverSite] = field(default_factory=list)
    """Sites to make the pool at where no option of its own site has its machines (clouds)."""
    failover_by: Literal["order", "price"] = "order"
    """Which site comes first: in the order written, or the one with the lowest price of a node."""
    placement: Annotated[Identifier | None, Meta(examples=["cluster", "none", "pg-research"])] = (
        None
    )
    """How the nodes are placed (clouds): cluster, spread, none, or the name of a placement group
    that exists; default: cluster where the fabric needs it."""
    image: Identifier | None = None
    """Machine image to boot (clouds); default: the site's."""
    disk: ByteSize | None = None
    """Size of the boot disk (clouds)."""
    public_address: bool = False
    """Nodes get a public address (clouds); never compute nodes."""
    tags: dict[str, Tag] = field(default_factory=dict)
    """Tags or labels in addition to the cluster's, on what is made."""
    software: Software | None = None
    """What differs from the cluster's software here."""
    boot: Boot = field(default_factory=Boot)
    """The kernel's parameters, and whether nodes may be restarted."""
    tuning: Tuning = field(default_factory=Tuning)
    """Processors, PCI Express, NUMA, huge pages."""
    gpus: GpuSettings = field(default_factory=GpuSettings)
    """MIG and its slices, ECC and the driver's modules (NVIDIA)."""
    rdma: Rdma = field(default_factory=Rdma)
    """InfiniBand, RoCE: drivers, rails, partitions, lossless Ethernet."""
    firmware: Firmware | None = None
    """Firmware of the machines, through their BMCs."""
    cpu: NodeCpu | None = None
    """Processors of one node, where the catalog doesn't know them (an HGX board comes in servers of
    many makers) or these differ. Without any Slurm counts one CPU."""
    memory: ByteSize | None = None
    """Memory of one node, where the catalog doesn't know it or this differs."""
    kubernetes: PoolKubernetes | None = None
    """Labels and kubelet of its nodes, where Kubernetes is the scheduler."""
    features: list[
        Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$(?!\n)", examples=["nvlink"])]
    ] = field(default_factory=list)
    """Features that jobs may request by `--constraint`, in addition to the pool's name (Slurm)."""
    weight: Annotated[int, Meta(ge=1, le=4_294_967_280)] | None = None
    """Jobs get nodes of a lower weight first (Slurm); default: Slurm's own, 1."""
    gres: dict[GresName, Gres] = field(default_factory=dict)
    """Generic resources of each node besides its GPUs (Slurm 23.11 and later): shares of GPUs
    (shard, mps), or what the site has of its own."""
    update: Update = field(default_factory=Update)
    """How running nodes are changed without hurting their jobs."""

    def block_of(self, pool: str, index: int) -> str | None:
        """Return the block of the pool's node of this index without one in the spec; None: none."""
        return (
            None if self.nodes_per_block is None else f"{pool}-{index // self.nodes_per_block + 1}"
        )

    @property
    def least(self) -> int | None:
        """Machines that are always there; None where the spec gives no count."""
        return self.count.min if isinstance(self.count, Count) else self.count

    @property
    def most(self) -> int | None:
        """Machines there may be at once; None where the spec gives no count."""
        return self.count.max if isinstance(self.count, Count) else self.count

    @property
    def is_sliced(self) -> bool:
        """Whether Slurm hands out MIG slices of its GPUs, and none as a whole."""
        return bool(self.gpus.mig_slices)

    @property
    def slices_per_gpu(self) -> int:
        """What Slurm counts of each GPU: its MIG slices, or itself."""
        return sum(self.gpus.mig_slices.values()) or 1

    @property
    def is_compute(self) -> bool:
        """Whether its nodes are compute nodes, as those of a controller may be too."""
        return self.compute or self.role == "compute"

    @property
    def runs_jobs(self) -> bool:
        """Whether jobs are sent to its nodes."""
        own = self.kubernetes is not None and self.kubernetes.system
        return self.is_compute and not own

    @property
    def is_elastic(self) -> bool:
        """Whether nodes come and go with the queue."""
        return isinstance(self.count, Count) and self.count.min != self.count.max
