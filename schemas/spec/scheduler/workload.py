"""Workloads: what a cluster trains or runs, and how it is started, saved and started again."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from ..model import AccountName, ImageReference, Name, PoolName, SpecModel, updates
from ..units import ByteSize, Duration, Interval

NodePath: TypeAlias = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_./@%+=,-]+$(?!\n)", examples=["/scratch/llm/train.py"])
]
"""A path on the nodes, without blanks and what a shell takes for its own; a relative one starts in
`chdir`."""

Argument: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00\r\n]*$(?!\n)")]
"""One word of a command, as it is: no shell reads it."""

Variable: TypeAlias = Annotated[
    str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$(?!\n)", examples=["HF_HOME"])
]
"""A variable of the processes' environment."""

Mount: TypeAlias = Annotated[
    str, Meta(pattern=r"^/[^\s:,]*(:/[^\s:,]*)?(:ro)?$(?!\n)", examples=["/fsx", "/data:/data:ro"])
]
"""PATH of the nodes, or PATH:PATH in the container, and :ro for what it may not write."""


CopyPlace: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^([A-Za-z][A-Za-z0-9_-]*|[a-z0-9]+://[^\s/]+(/[A-Za-z0-9_./@%+=,-]*)?)$(?!\n)",
        examples=["runs", "s3://acme-runs", "gs://acme-runs/llm", "az://account/container"],
    ),
]
"""A storage, or a bucket (or a prefix in it) that a storage of the spec shows as files."""


class WorkloadCheckpoint(SpecModel, frozen=True):
    """Where a workload saves its state, and how often."""

    UPDATES: ClassVar = updates(
        none="to path every size parameters keep copies is_async local_first notice"
    )

    to: Name
    """Storage that holds the checkpoints."""
    path: NodePath | None = None
    """Folder in it; default: checkpoints/WORKLOAD."""
    every: Interval = field(default_factory=lambda: Interval.parse("auto"))
    """Time between two checkpoints, in GCLUSTER_CHECKPOINT_EVERY; auto: what wastes least, from
    the size, the storage's measured or nominal throughput and the failures of so many GPUs."""
    size: ByteSize | None = None
    """Size of one checkpoint; or give `parameters`. For `every: auto`."""
    parameters: Annotated[float, Meta(gt=0)] | None = None
    """Parameters of the model; one checkpoint is taken as 14 bytes each."""
    keep: Annotated[int, Meta(ge=1)] = 3
    """Complete checkpoints that are kept, the newest ones."""
    copies: list[CopyPlace] = field(default_factory=list)
    """Storage, or buckets of such, to which the newest complete checkpoint is copied while the
    workload goes on; `path` and `keep` are as on `to`. A newer one there is resumed from."""
    is_async: bool = field(default=False, name="async")
    """The training goes on while a checkpoint is written (megatron, torchtitan)."""
    local_first: bool = False
    """Each node writes its part to its own disks (`scheduler.job_scratch`), from where it is moved
    to `to` while the training goes on."""
    notice: Duration = field(default_factory=lambda: Duration.parse("2m"))
    """How long before its time limit the workload gets SIGUSR1, to save and be queued again."""


class WorkloadGate(SpecModel, frozen=True):
    """When the nodes of a workload are measured: they exchange messages two by two (MPI)."""

    UPDATES: ClassVar = updates(none="before after")

    before: Literal["allreduce"] | None = None
    """Before it starts: a slow node is left out."""
    after: Literal["allreduce"] | None = None
    """When it has ended: a node that became slow meanwhile is drained by its health check."""


class WorkloadModel(SpecModel, frozen=True, kw_only=True):
    """What all workloads have."""

    UPDATES: ClassVar = updates(
        none="nodes gpus processes_per_node partition account qos time chdir venv image sif mounts "
        "variables data checkpoint restarts spares hang gate kind",
    )

    kind: Literal["TrainJob"] | None = None
    """Under Kubernetes a TrainJob of Kubeflow Trainer (addons: [kubeflow-trainer]); default: a
    JobSet where that add-on is, else a Job."""
    nodes: Annotated[int, Meta(ge=1)] | None = None
    """Whole nodes; or give `gpus`."""
    gpus: Annotated[int, Meta(ge=1)] | None = None
    """GPUs: part of one node, or whole nodes."""
    processes_per_node: Annotated[int, Meta(ge=1)] | None = None
    """Processes of a node; default: one a GPU, and one where no GPU is real."""
    partition: PoolName | None = None
    """Default: the cluster's default partition."""
    account: AccountName | None = None
    """Account that pays, under Kubernetes its namespace; default: the user's own default."""
    qos: AccountName | None = None
    """Quality of service; default: the account's."""
    time: Duration | None = None
    """Longest run time; default: the partition's."""
    chdir: NodePath | None = None
    """Folder on the nodes in which it runs; default: the home folder of the user."""
    venv: NodePath | None = None
    """Virtual environment of Python that is activated first, on a storage that all nodes mount."""
    image: Annotated[ImageReference | None, Meta(examples=["nvcr.io/nvidia/pytorch:25.10-py3"])] = (
        None
    )
    """Container image that it runs in (pyxis; pods under Kubernetes, which need one)."""
    sif: Annotated[NodePath | None, Meta(examples=["/scratch/images/train.sif"])] = None
    """Image file of Apptainer that it runs in, on a storage that all nodes mount; the nodes have
    Apptainer (1.2 or newer). Under Slurm, instead of `image`."""
    mounts: list[Mount] = field(default_factory=list)
    """What the container sees of its node, besides `chdir`, data and checkpoints."""
    variables: dict[Variable, str] = field(default_factory=dict)
    """Variables of its environment, over those of the fabric."""
    data: list[Name] = field(default_factory=list)
    """Storage that it reads: all its nodes mount it."""
    checkpoint: WorkloadCheckpoint | None = None
    """Default: it saves nothing, and starts over."""
    restarts: Annotated[int, Meta(ge=0)] = 0
    """Times that it is started again after a failure; under Slurm a node that fails and a
    preemption don't count."""
    spares: Annotated[int, Meta(ge=0)] = 0
    """Nodes that it has besides, and that wait: one takes the place of a node that is lost."""
    hang: Duration | None = None
    """So long it may print nothing; then it is started again, and its log says where its processes
    were. Default: it may wait for ever."""
    gate: Literal["allreduce"] | WorkloadGate | None = None
    """Its nodes exchange messages two by two, and a slow one is named: before it starts, or as the
    keys say."""

    @property
    def gates(self) -> WorkloadGate:
        """When its nodes are measured; `gate: allreduce` means before it starts."""
        given = self.gate
        return given if isinstance(given, WorkloadGate) else WorkloadGate(before=given)

    @property
    def fewest_nodes(self) -> int | None:
        """Fewest nodes that it goes on with; None: all that it requests."""
        return None

    def node_count(self, gpus_of_a_node: int) -> int:
        """Return its nodes, where each has so many GPUs (0: none)."""
        if self.nodes is not None:
            return self.nodes
        return max(1, -(-(self.gpus or 0) // max(1, gpus_of_a_node)))

    def gpus_per_node(self, gpus_of_a_node: int) -> int:
        """Return the GPUs that it has of each of its nodes, which have so many."""
        return gpus_of_a_node if self.gpus is None else min(self.gpus, gpus_of_a_node)


class ScriptModel(WorkloadModel, frozen=True, kw_only=True):
    """What workloads of a program in Python have."""

    UPDATES: ClassVar = updates(none="script arguments")

    script: NodePath
    """The program in Python."""
    arguments: list[Argument] = field(default_factory=list)
    """Its arguments."""


class TorchWorkload(ScriptModel, frozen=True, kw_only=True):
    """What workloads of PyTorch's launcher have: one of a node, which starts its processes."""


class TorchrunWorkload(TorchWorkload, frozen=True, tag_field="framework", tag="torchrun"):
    """PyTorch, started by torchrun on a fixed number of nodes: DDP, FSDP2."""


class TorchrunElasticWorkload(
    TorchWorkload, frozen=True, kw_only=True, tag_field="framework", tag="torchrun-elastic"
):
    """PyTorch, started by torchrun, which is started again on the nodes that are left."""

    UPDATES: ClassVar = updates(none="min_nodes worker_restarts")

    min_nodes: Annotated[int, Meta(ge=1)]
    """Fewest nodes that it goes on with, until others are there."""
    worker_restarts: Annotated[int, Meta(ge=0)] = 3
    """Times that torchrun starts all workers again (--max-restarts)."""

    @property
    def fewest_nodes(self) -> int | None:
        """See `min_nodes`."""
        return self.min_nodes


class DeepspeedWorkload(
    TorchWorkload, frozen=True, kw_only=True, tag_field="framework", tag="deepspeed"
):
    """DeepSpeed; its processes are started by torchrun, whose variables it reads."""

    UPDATES: ClassVar = updates(none="config")

    config: NodePath
    """Its configuration, a JSON file (--deepspeed_config)."""


class AccelerateWorkload(
    TorchWorkload, frozen=True, kw_only=True, tag_field="framework", tag="accelerate"
):
    """Hugging Face accelerate: `accelerate launch` on each node."""

    UPDATES: ClassVar = updates(none="config")

    config: NodePath | None = None
    """Its configuration, as `accelerate config` writes it (--config_file); sizes and addresses are
    the workload's. Default: data parallel."""


class Degrees(SpecModel, frozen=True, kw_only=True):
    """How a model is divided; what is left of the GPUs is data parallel."""

    UPDATES: ClassVar = updates(none="tensor pipeline context expert")

    tensor: Annotated[int, Meta(ge=1)] = 1
    """GPUs that share each layer."""
    pipeline: Annotated[int, Meta(ge=1)] = 1
    """Stages that layers are divided into."""
    context: Annotated[int, Meta(ge=1)] = 1
    """Parts of each sequence."""
    expert: Annotated[int, Meta(ge=1)] = 1
    """GPUs that share the experts."""


class Parallel(Degrees, frozen=True, kw_only=True):
    """How Megatron divides a model and a step."""

    UPDATES: ClassVar = updates(none="micro_batch global_batch")

    micro_batch: Annotated[int, Meta(ge=1)] = 1
    """Samples of a micro-batch."""
    global_batch: Annotated[int, Meta(ge=1)]
    """Samples of a step, over all GPUs."""


class MegatronWorkload(
    TorchWorkload, frozen=True, kw_only=True, tag_field="framework", tag="megatron"
):
    """Megatron-LM: torchrun, with the sizes of its parallelism."""

    UPDATES: ClassVar = updates(none="parallel")

    parallel: Parallel
    """How the model is divided (--tensor-model-parallel-size and the like)."""


class NemoWorkload(TorchWorkload, frozen=True, kw_only=True, tag_field="framework", tag="nemo"):
    """NeMo's Megatron Bridge: torchrun starts its `run_recipe.py`."""

    UPDATES: ClassVar = updates(none="recipe parallel")

    recipe: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9_]+$(?!\n)", examples=["llama32_1b_pretrain_config"])
    ]
    """The recipe that it trains (--recipe)."""
    parallel: Parallel | None = None
    """How the model is divided (--tensor_model_parallel_size and the like). Default: as the recipe
    says."""


class TorchtitanWorkload(
    TorchWorkload, frozen=True, kw_only=True, tag_field="framework", tag="torchtitan"
):
    """torchtitan: torchrun starts the module torchtitan.train; no `script` is needed."""

    UPDATES: ClassVar = updates(none="script model config parallel")

    script: NodePath = "torchtitan.train"
    """The module that is started."""
    model: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.]+$(?!\n)", examples=["llama3"])]
    """The model's module (--module)."""
    config: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]+$(?!\n)", examples=["llama3_8b"])]
    """The configuration of it (--config)."""
    parallel: Degrees = field(default_factory=Degrees)
    """How the model is divided (--parallelism.tensor_parallel_degree and the like)."""


class JaxWorkload(ScriptModel, frozen=True, kw_only=True, tag_field="framework", tag="jax"):
    """JAX: srun starts a process for each GPU, which calls `jax.distributed.initialize()`."""


class RayWorkload(ScriptModel, frozen=True, kw_only=True, tag_field="framework", tag="ray"):
    """Ray Train: a Ray cluster on the nodes for as long as the program on the first one runs."""


class CommandModel(WorkloadModel, frozen=True, kw_only=True):
    """What workloads of any program have."""

    UPDATES: ClassVar = updates(none="command")

    command: Annotated[list[Argument], Meta(min_length=1, examples=[["python", "train.py"]])]
    """The program and its arguments, once for each process."""


class MpiWorkload(CommandModel, frozen=True, kw_only=True, tag_field="framework", tag="mpi"):
    """An MPI program, started by srun with PMIx."""


class CommandWorkload(
    CommandModel, frozen=True, kw_only=True, tag_field="framework", tag="command"
):
    """Any program, started by srun, with the variables that torch.distributed reads."""

    UPDATES: ClassVar = updates(none="min_nodes")

    min_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Fewest nodes that it goes on with, until others are there; default: all that it requests."""

    @property
    def fewest_nodes(self) -> int | None:
        """See `min_nodes`."""
        return self.min_nodes


Workload: TypeAlias = (
    TorchrunWorkload
    | TorchrunElasticWorkload
    | AccelerateWorkload
    | DeepspeedWorkload
    | MegatronWorkload
    | NemoWorkload
    | TorchtitanWorkload
    | JaxWorkload
    | RayWorkload
    | MpiWorkload
    | CommandWorkload
)
"""Any workload; `framework:` chooses the branch."""
