"""The role nccl: NCCL or RCCL, what their fabric needs, and the tests that the smoke gate runs."""

from __future__ import annotations

from ..network.rdma import rail_devices, rdma_kind, sharp_environment
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from ..system.packages import file_variables

TESTS = {"nvidia": "nccl-tests", "amd": "rccl-tests"}
"""GPU vendor -> artefact source of the tests."""


@role_compiler("nccl", components=("nccl",), after=("gdrcopy",))
def nccl_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role nccl; none without real GPUs or the library.

    RCCL comes with ROCm (role amd_gpu); here it gets its settings and its tests. So does a library
    that the nodes come with, in whichever version that is.
    """
    gpu = node.gpu
    key = None if gpu is None else {"nvidia": "nccl", "amd": "rccl"}[gpu.vendor]
    if gpu is None or key is None or not node.software.has(key):
        return []
    version = node.installs(key) or node.given_version(key)
    library: dict[str, Json] = {"nccl_vendor": gpu.vendor, "nccl_version": version}
    settings: dict[str, Json] = {"nccl_environment": node_environment(node)}
    tests = _tests(node)
    built: dict[str, Json] = {"nccl_architecture": tests.get("nccl_architecture", "")}
    return [
        _step("preflight", {"nccl_vendor": gpu.vendor} | tests),
        _step("install", library | tests | {"nccl_cuda": _cuda(node)}),
        _step("configure", {"nccl_vendor": gpu.vendor} | settings),
        # A program sees one slice of all (NVIDIA MIG user guide, "CUDA Device Enumeration").
        _step(
            "verify",
            library | settings | built | {"nccl_gpus": 1 if node.pool.is_sliced else gpu.count},
        ),
    ]


def job_environment(node: NodeFacts) -> dict[str, str]:
    """Return what jobs here are given: their fabric class's settings, then their machine's.

    A machine's are for its own fabric class: with another one only that class's hold.
    """
    fabric, machine = node.fabric, node.machine
    given = {} if fabric is None else dict(fabric.environment)
    if machine is not None and node.fabric_class == machine.fabric:
        given |= machine.environment
    given |= sharp_environment(node)
    if devices := rail_devices(node):
        given["NCCL_IB_HCA"] = f"={','.join(devices)}"  # =: exactly these, mlx5_1 isn't mlx5_10
    return given


def node_environment(node: NodeFacts) -> dict[str, str]:
    """Return the environment of jobs that the nodes themselves resolve.

    `@rails` is replaced by the rails that the health check has found, `@interface` by the interface
    of the node's own address, which no BMC, bridge or rail is; what follows is for where those
    aren't known. NCCL's sockets as transport may need several interfaces, and are left alone.
    """
    given = job_environment(node)
    if rdma_kind(node) is not None:
        given["NCCL_IB_HCA"] = f"@rails {given.get('NCCL_IB_HCA', '')}".strip()
    interfaces = given.get("NCCL_SOCKET_IFNAME", "")
    if interfaces.startswith("^") and node.fabric is not None and node.fabric.rdma:
        given["NCCL_SOCKET_IFNAME"] = f"@interface {interfaces}"
    return given


def _tests(node: NodeFacts) -> dict[str, Json]:
    """Return what the tests are built from; nothing where GPUs or toolkit aren't known."""
    gpu = node.gpu
    if gpu is None or gpu.compute_capability is None:
        return {}
    if gpu.vendor == "nvidia" and not node.software.has("cuda"):
        return {}
    source = TESTS[gpu.vendor]
    version = _tests_version(node, source)
    file = file_variables(node, source, "source", version)
    return {
        "nccl_architecture": gpu.compute_capability,
        "nccl_tests_version": version,
        "nccl_tests_url": file["url"],
        "nccl_tests_checksum": file["checksum"],
    }


def _cuda(node: NodeFacts) -> str:
    """Return the toolkit that the tests are built with; "": whichever the nodes come with."""
    return (node.version("cuda") or "") if node.software.has("cuda") else ""


def _tests_version(node: NodeFacts, source: str) -> str:
    """Return the tests' version: the lock's where its checksum is known, else the newest known.

    The tests measure and check; results of neighbouring versions are the same.
    """
    entry = node.catalog.sources[source]
    wanted = node.version(entry.component or "") or ""
    known = [path.removeprefix("v").removesuffix(".tar.gz") for path in entry.files[0].checksums]
    if (wanted and file_variables(node, source, "source", wanted)["checksum"]) or not known:
        return wanted
    return max(known, key=lambda version: [int(number) for number in version.split(".")])


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.DRIVERS, role="nccl", phase=phase, variables=variables)
