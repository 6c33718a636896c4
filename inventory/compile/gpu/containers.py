"""Containers that use GPUs: roles container_toolkit and enroot_pyxis."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ..network.cloud_fabrics import HOST_PATHS
from ..network.rdma import HPCX
from ..node import NodeFacts
from ..roles import role_compiler
from ..slurm.packages import slurm_build
from ..steps import Json, Phase, Stage, Step
from ..storage.disks import scratch_folder
from ..system.packages import file_variables

COMPONENTS = {"nvidia": "container_toolkit", "amd": "amd_container_toolkit"}
"""GPU vendor -> its toolkit in the software lock."""

DAEMON_FABRICS = ("gpudirect-tcpx", "gpudirect-tcpxo", "gib-metal")
"""Fabric classes whose daemon comes as a container, so that Docker must be there."""


def container_toolkit_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the artefact source of the vendor's toolkit."""
    return ("amd-container-toolkit",) if node.has_gpu_of("amd") else ("nvidia-container-toolkit",)


@role_compiler(
    "container_toolkit",
    sources=("nvidia-container-toolkit", "amd-container-toolkit"),
    chosen=container_toolkit_sources,
    after=("dcgm",),
)
def container_toolkit_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role container_toolkit; none without GPUs or where nothing needs it.

    The software lock has a version where containers run: with pyxis, and where a fabric's daemon is
    one.
    """
    if node.gpu is None:
        return []
    version = node.installs(COMPONENTS[node.gpu.vendor])
    if version is None:
        return []
    vendor: dict[str, Json] = {"container_toolkit_vendor": node.gpu.vendor}
    docker: dict[str, Json] = {"container_toolkit_docker": node.fabric_class in DAEMON_FABRICS}
    install = vendor | docker | {"container_toolkit_version": version}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("preflight", docker),
        ("install", install),
        ("configure", vendor | docker),
        ("verify", install | {"container_toolkit_gpus": node.gpu.count}),
    )
    return [
        Step(stage=Stage.DRIVERS, role="container_toolkit", phase=phase, variables=variables)
        for phase, variables in phases
    ]


PLUGIN_LINE = (
    "required /usr/local/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis container_scope=job"
)
"""Of plugstack.conf. A node without the plugin must refuse a job that requests a container: with
`optional` it would run it outside of one."""


TASK_PROLOG_LINE = "required /usr/local/lib/slurm/spank_task_prolog.so"
"""Of plugstack.conf, before a program: what slurm.conf would name as TaskProlog. slurmstepd runs
that after pyxis, inside the container, where it isn't; from Slurm 24.11 on the task then fails
(NVIDIA/pyxis#163, read 2026-11)."""


def plugin_lines(nodes: Iterable[NodeFacts], task_prolog: str = "") -> list[str]:
    """Return the lines of plugstack.conf: pyxis, where some machines run containers.

    There is one file for all nodes, so that then all machines have the plugins.

    Args:
        nodes: the pools.
        task_prolog: program that Slurm runs for each task; "": none.
    """
    if not any(node.runs_containers for node in nodes):
        return []
    return [*([f"{TASK_PROLOG_LINE} {task_prolog}"] if task_prolog else []), PLUGIN_LINE]


_VERBS = frozenset({"infiniband", "roce", "efa"})
"""Kinds of NIC that programs reach by /dev/infiniband."""


def container_paths(node: NodeFacts) -> list[str]:
    """Return the node's paths that jobs' containers need for its fabric and its GPUs.

    enroot leaves only a few devices in a container (ENROOT_RESTRICT_DEV). NVIDIA's GPUs, GDRCopy
    and IMEX are mounted by NVIDIA's own hook (98-nvidia.sh); its hook for adapters supports mlx5
    alone, so /dev/infiniband is mounted as a whole, as in AWS' and Google's examples. AMD's GPUs
    have no hook (cluster-toolkit 1.95, awsome-distributed-training, NVIDIA/enroot 4.1; read
    2026-11).
    """
    fabric = node.fabric
    found: list[str] = []
    if node.has_gpu_of("amd"):
        found += ["/dev/kfd", "/dev/dri"]
    if fabric is not None and node.gpu is not None:
        own = ("/dev/infiniband",) if fabric.nic_kind in _VERBS else ()
        found += HOST_PATHS.get(fabric.name, own)
    return found


_EFA_LIBRARIES = ("/opt/amazon/efa", "/opt/amazon/ofi-nccl")
"""Where AWS' installer puts libfabric and NCCL's plugin (awsome-distributed-training, 2026-11)."""


def container_libraries(node: NodeFacts) -> list[str]:
    """Return folders of libraries that containers get where their image has none."""
    fabric = node.fabric
    if node.gpu is None:
        return []
    is_efa = fabric is not None and fabric.plugin == "efa"
    return [*(_EFA_LIBRARIES if is_efa else ()), *([HPCX] if node.pool.rdma.sharp else [])]


def _version(node: NodeFacts, component: str) -> str | None:
    """Return the version that a pool has, else that of the first pool that runs containers."""
    found = (each.version(component) for each in chain((node,), node.cluster.run_containers))
    return next((version for version in found if version), None)


@role_compiler("enroot_pyxis", components=("containers",))
def enroot_pyxis_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role enroot_pyxis; none where no pool of the cluster runs containers.

    All machines need pyxis, for its options and since plugstack.conf is one for all; enroot only
    compute nodes of pools that run containers. Elsewhere a job that requests one is refused.
    """
    wanted = node.runs_containers or bool(node.cluster.run_containers)
    enroot, pyxis = _version(node, "enroot"), _version(node, "pyxis")
    if not node.is_machine or not wanted or not (enroot and pyxis):
        return []
    runs_here = node.runs_containers and node.pool.is_compute
    runs: dict[str, Json] = {"enroot_pyxis_runs_containers": runs_here}
    folder = scratch_folder(node, "enroot")
    data: dict[str, Json] = {} if folder is None else {"enroot_pyxis_data": folder}
    files: dict[str, Json] = runs | {
        "enroot_pyxis_enroot_version": enroot,
        "enroot_pyxis_enroot_files": {
            family: [file_variables(node, "enroot", name, enroot) for name in names]
            for family, names in {
                "Debian": ("deb", "deb-caps"),
                "RedHat": ("rpm", "rpm-caps"),
            }.items()
        },
        "enroot_pyxis_pyxis_version": pyxis,
        "enroot_pyxis_pyxis_file": file_variables(node, "pyxis", "source", pyxis),
    }
    build = slurm_build(node)
    built: dict[str, Json] = {"enroot_pyxis_slurm_version": build.version} if build else {}
    given: dict[str, Json] = {}
    if runs_here:
        given = {
            "enroot_pyxis_paths": container_paths(node),
            "enroot_pyxis_libraries": container_libraries(node),
        }
    phases: tuple[tuple[Phase, Stage, dict[str, Json]], ...] = (
        ("preflight", Stage.SCHEDULER, files),
        ("install", Stage.SCHEDULER, files | built),
        ("configure", Stage.SCHEDULER, runs | data | given),
        # srun is queried, which has the plugin when Slurm is installed.
        ("verify", Stage.MONITORING, runs | data | given | {"enroot_pyxis_enroot_version": enroot}),
    )
    return [
        Step(
            stage=stage,
            role="enroot_pyxis",
            phase=phase,
            variables=variables,
            from_mirror=phase == "install" and bool(built),
        )
        for phase, stage, variables in phases
    ]
