"""Drivers and toolkits of GPUs: roles nvidia_driver, amd_gpu, cuda, gdrcopy and dcgm."""

from __future__ import annotations

from ....schemas.spec import KubernetesScheduler
from ..node import NodeFacts
from ..roles import role_compiler
from ..slurm.topology import in_order
from ..steps import Json, Phase, Stage, Step

BEFORE_TURING = ("7.0",)
"""Compute capabilities that NVIDIA's open modules don't drive (azhpc-images
components/install_nvidiagpudriver.sh: V100 takes the proprietary ones; read 2026-11)."""


FIRST_THAT_REPORTS = (9, 0)
"""Least compute capability of a GPU that reports whether it joined the NVLink fabric (NVML
reference, `nvmlDeviceGetGpuFabricInfo`: Hopper or newer; read 2026-11)."""


# After ofed: nvidia-peermem is compiled against the RDMA drivers that are there (plugins,
# kernel_modules.load_peer_memory), and the fabric manager of NVLink 5 needs ib_umad.
@role_compiler(
    "nvidia_driver",
    sources=("nvidia-cuda",),
    components=("driver", "fabric_manager"),
    after=("ofed",),
)
def nvidia_driver_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role nvidia_driver; none without NVIDIA's GPUs or a driver of the nodes.

    A version that the spec sets may be older than what a node has: that is how to downgrade. One
    that `auto` resolves to never downgrades a node. A driver of the nodes' image is left alone: its
    GPUs are configured and verified.
    """
    if not node.has_gpu_of("nvidia") or node.gpu is None:
        return []
    if node.comes_with("driver"):
        return _driver_of_nodes(node)
    version = node.installs("driver")
    if version is None:
        return []
    driver: dict[str, Json] = {
        "nvidia_driver_version": version,
        "nvidia_driver_rollback": node.is_version_given("driver"),
    }
    daemons: dict[str, Json] = {
        "nvidia_driver_fabric_manager": node.installs("fabric_manager") or "",
    }
    imex: dict[str, Json] = {"nvidia_driver_imex": node.installs("imex") or ""}
    gpus = node.pool.gpus
    proprietary = node.gpu.compute_capability in BEFORE_TURING
    modules: dict[str, Json] = {
        "nvidia_driver_modules": "proprietary" if proprietary else gpus.modules
    }
    peer_memory: dict[str, Json] = {"nvidia_driver_peer_memory": gpus.peer_memory}
    packages: dict[str, Json] = {"nvidia_driver_packages": list(node.software.packages)}
    loaded = daemons | peer_memory | packages
    state = loaded | {"nvidia_driver_version": version} | _gpu_settings(node)
    if proprietary:
        state |= modules
    return [
        _nvidia_driver_step("preflight", driver | modules),
        _nvidia_driver_step("install", driver | modules | daemons | imex | packages),
        _nvidia_driver_step("configure", loaded | _imex_of_pods(node)),
        _nvidia_driver_step("join", state | _restarts(node)),
        _nvidia_driver_step("verify", state),
    ]


def _imex_of_pods(node: NodeFacts) -> dict[str, Json]:
    """Return whether pods run IMEX, so that the node's own service must not."""
    in_pods = node.installs("imex") is not None and _is_kubernetes(node)
    return {"nvidia_driver_imex_in_pods": True} if in_pods else {}


def _is_kubernetes(node: NodeFacts) -> bool:
    return isinstance(node.spec.scheduler, KubernetesScheduler)


@role_compiler("imex", after=("nvidia_driver",))
def imex_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role imex: where the driver's role installs it, except under Kubernetes.

    Under Kubernetes NVIDIA's DRA driver runs it for each workload. Its list of nodes is that of one
    NVLink domain, so that here nodes have each other's addresses; one more changes the file of its
    own domain alone, and IMEX restarts where it changed.
    """
    if node.installs("imex") is None or _is_kubernetes(node):
        return []
    hosts = in_order(node.spec, node.cluster.by_pool.get(node.name, ()))
    nodes = [
        {
            "name": host.name,
            "address": host.address,
            "domain": host.placement.block or node.name,
        }
        for host in hosts
    ]
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("configure", {"imex_nodes": nodes}),
        ("join", {"imex_nodes": nodes}),  # it restarts where the file changed
        ("verify", {}),
    )
    return [
        Step(stage=Stage.DRIVERS, role="imex", phase=phase, variables=variables, spares_jobs=True)
        for phase, variables in phases
    ]


def _driver_of_nodes(node: NodeFacts) -> list[Step]:
    """Return the steps that configure and verify GPUs whose driver is in the nodes' image."""
    state: dict[str, Json] = {
        "nvidia_driver_from_image": True,
        "nvidia_driver_version": node.given_version("driver"),
    }
    state |= _gpu_settings(node)
    return [
        _nvidia_driver_step("join", state | _restarts(node)),
        _nvidia_driver_step("verify", state),
    ]


def _restarts(node: NodeFacts) -> dict[str, Json]:
    return {"nvidia_driver_reboot": node.pool.boot.reboot}


def _gpu_settings(node: NodeFacts) -> dict[str, Json]:
    gpus = node.pool.gpus
    settings: dict[str, Json] = {
        "nvidia_driver_gpus": 0 if node.gpu is None else node.gpu.count,
        "nvidia_driver_mig": "enabled" if node.pool.is_sliced else gpus.mig,
        "nvidia_driver_ecc": gpus.ecc,
        "nvidia_driver_fabric": _fabric_state(node),
    }
    if node.pool.is_sliced:
        settings["nvidia_driver_slices"] = dict(sorted(gpus.mig_slices.items()))
    return settings


def _fabric_state(node: NodeFacts) -> str:
    """Return the NVLink fabric state expected of GPUs, also where the switches manage it (NVL72).

    For a cloud's machines only the GPUs' own state counts: part of a board may have no fabric.
    Slices of GPUs reach each other over none (NVIDIA MIG user guide, "Deployment Considerations").
    """
    if node.pool.is_sliced or node.gpu is None:
        return "none"
    if node.machine is None or node.machine.nvlink is None:
        return "none"
    capability = tuple(int(part) for part in (node.gpu.compute_capability or "0").split("."))
    in_cloud = node.spec.sites[node.pool.site].is_cloud
    return "required" if capability >= FIRST_THAT_REPORTS and not in_cloud else "reported"


def _nvidia_driver_step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.DRIVERS, role="nvidia_driver", phase=phase, variables=variables)


@role_compiler(
    "amd_gpu", sources=("amdgpu", "rocm"), components=("rocm", "rccl"), after=("nvidia_driver",)
)
def amd_gpu_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role amd_gpu; none without AMD's GPUs or ROCm.

    The driver is the one that AMD publishes with that release. Of ROCm that the nodes come with
    only the groups of its devices are ours.
    """
    if not node.has_gpu_of("amd") or node.gpu is None:
        return []
    rocm = node.installs("rocm")
    users: dict[str, Json] = {"amd_gpu_users": [user.name for user in node.spec.local_users]}
    if not isinstance(node.spec.users, list):
        users["amd_gpu_everyone"] = True  # a directory's people are in no group of the node's
    if node.comes_with("rocm"):
        verified: dict[str, Json] = {
            "amd_gpu_rocm": node.given_version("rocm"),
            "amd_gpu_gpus": node.gpu.count,
        }
        return [_amd_gpu_step("configure", users), _amd_gpu_step("verify", verified)]
    if rocm is None:
        return []
    release: dict[str, Json] = {"amd_gpu_rocm": rocm}
    packages: dict[str, Json] = release | {
        "amd_gpu_driver": node.catalog.sources["amdgpu"].own_version(rocm),
        "amd_gpu_rccl": node.installs("rccl") or "",
    }
    state: dict[str, Json] = release | {"amd_gpu_gpus": node.gpu.count}
    return [
        _amd_gpu_step("preflight", {}),
        _amd_gpu_step("install", packages),
        _amd_gpu_step("configure", users),
        _amd_gpu_step("join", state),
        _amd_gpu_step("verify", state),
    ]


def _amd_gpu_step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.DRIVERS, role="amd_gpu", phase=phase, variables=variables)


@role_compiler(
    "cuda",
    sources=("nvidia-cuda",),
    components=("cuda",),
    after=("nvidia_driver", "amd_gpu"),
)
def cuda_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role cuda; none without NVIDIA's GPUs or a known version."""
    version = node.installs("cuda")
    if not node.has_gpu_of("nvidia") or version is None:
        return []
    toolkit: dict[str, Json] = {"cuda_version": version}
    return [
        _cuda_step("install", toolkit | {"cuda_rollback": node.is_version_given("cuda")}),
        _cuda_step("configure", toolkit),
        _cuda_step("verify", toolkit),
    ]


def _cuda_step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.DRIVERS, role="cuda", phase=phase, variables=variables)


_PHASES: tuple[Phase, ...] = ("install", "join", "verify")


@role_compiler("gdrcopy", sources=("nvidia-cuda",), after=("cuda",))
def gdrcopy_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role gdrcopy; none without NVIDIA's GPUs or a known version."""
    version = node.installs("gdrcopy")
    if not node.has_gpu_of("nvidia") or version is None:
        return []
    variables: dict[str, Json] = {"gdrcopy_version": version}
    return [
        Step(stage=Stage.DRIVERS, role="gdrcopy", phase=phase, variables=variables)
        for phase in _PHASES
    ]


FIRST_OF_CUDA_13 = 580
"""Driver branch from which on CUDA is 13 (CUDA release notes, table of drivers; read 2026-11)."""


@role_compiler("dcgm", sources=("nvidia-cuda",), after=("nccl",))
def dcgm_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role dcgm; none without NVIDIA's GPUs or a known version.

    DCGM's packages are those for the driver's CUDA version, regardless of the toolkit's. For a
    driver of the nodes' image in any version it is queried there.
    """
    version, driver = node.installs("dcgm"), node.version("driver")
    if not node.has_gpu_of("nvidia") or node.gpu is None or version is None:
        return []
    major = 0
    if driver is not None:
        major = 13 if int(driver.split(".")[0]) >= FIRST_OF_CUDA_13 else 12
    dcgm: dict[str, Json] = {"dcgm_version": version}
    return [
        _dcgm_step("install", dcgm | {"dcgm_cuda_major": major}),
        _dcgm_step("configure", {}),
        _dcgm_step("verify", dcgm | {"dcgm_gpus": node.gpu.count}),
    ]


def _dcgm_step(phase: Phase, variables: dict[str, Json]) -> Step:
    """Return a step; jobs may be profiled through the host engine, so none is spared."""
    return Step(stage=Stage.DRIVERS, role="dcgm", phase=phase, variables=variables)
