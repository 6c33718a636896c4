"""What AllReduces the gate starts: in which partition, on which nodes, what each rank runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ...inventory.accounting.desired import keeps_accounts
from ...inventory.accounting.records import SMOKE_QOS
from ...inventory.hosts import Host
from ...schemas.catalog import Catalog
from ...schemas.derived.floor import ELEMENT_BYTES, message_sizes
from ...schemas.spec import ClusterSpec
from .domains import fabric_domains, machine_of

PAYLOAD = "/usr/libexec/gcluster/allreduce"
"""Where the role allreduce puts the program on every node."""

RAILS = Path(__file__).parent / "launching" / "rails.sh"
"""Runs the ranks' program, found on nodes with GPUs where role nccl builds it, and counts what each
rail carries meanwhile."""

GATE_IMAGE = "/usr/local/share/gcluster/gate.sqsh"
"""An image without programs; role enroot_pyxis makes it on every node that runs containers."""

ONLY_PARTITION = "main"
"""The partition with every compute pool, when the spec names none."""


WARM_UPS = 5
"""Runs before the timed ones, as in Google's tests (cluster-toolkit 104708037, -w 5); nccl-tests
themselves begin with one since 2.14, and the first runs open connections."""
_SLOWEST = "3"
"""nccl-tests' -a: the time of the slowest rank, so that no group hides behind the others."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One AllReduce over nodes of one partition and one fabric domain."""

    job: str
    """Name of the job: unique, so that this one and no other is cancelled."""
    label: str
    """Distinguishes the runs of one command, in the names of their logs."""
    partition: str
    nodes: tuple[str, ...]
    min_bytes: int
    max_bytes: int
    iterations: int

    gpus: int = 0
    """GPUs of a node, each with a rank of nccl-tests; 0: none that are real and whole, so our own
    payload runs on the processors, one rank a node."""
    qos: str = ""
    """The QOS of the job; "": the cluster has no accounts."""
    environment: tuple[tuple[str, str], ...] = ()
    """More variables for the ranks, such as the NICs to use."""
    apart: bool = False
    """Each GPU of a node reduces with its peers of the other nodes alone, all at the same time:
    then NVLink carries nothing, and the slowest rail is the result."""

    container: str = ""
    """Image on the nodes in which the ranks run, as jobs do under pyxis; "": in none."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.nodes) * max(1, self.gpus)

    @property
    def can_split(self) -> bool:
        """Whether nccl-tests can take a node's GPUs apart: by a mask of the ranks' numbers."""
        return self.gpus > 1 and self.gpus & (self.gpus - 1) == 0

    @property
    def groups(self) -> int:
        """Number of communicators, each with one GPU of every node where they are apart."""
        return self.gpus if self.apart else 1

    def program(self) -> list[str]:
        """Return what each rank runs."""
        least, most, factor = str(self.min_bytes), str(self.max_bytes), str(FACTOR)
        timed = str(self.iterations)
        counted = ["sh", "-c", _rails(), "rails"]
        if not self.gpus:
            sizes = ["--min-bytes", least, "--max-bytes", most, "--factor", factor]
            return [*counted, PAYLOAD, *sizes, "--iterations", timed]
        sizes = ["-b", least, "-e", most, "-f", factor]
        timing = ["-w", str(WARM_UPS), "-n", timed, *(["-a", _SLOWEST] if self.apart else [])]
        return [*counted, "all_reduce_perf", *sizes, "-g", "1", "-c", "1", *timing]

    def variables(self) -> dict[str, str]:
        """Return the ranks' variables: a rank that waits lets others run, for lack of cores."""
        given = {"OMPI_MCA_mpi_yield_when_idle": "1"} if not self.gpus else {"NCCL_DEBUG": "INFO"}
        if self.apart:
            given["NCCL_TESTS_SPLIT_MASK"] = hex(self.gpus - 1)
        return given | dict(self.environment)


@cache
def _rails() -> str:
    return RAILS.read_text(encoding="utf-8")


_IN_CONTAINER = {
    "OMPI_MCA_pmix_base_async_modex": "1",
    "PMIX_MCA_pmix_base_async_modex": "1",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
}
"""What role mpi writes into /etc of nodes, and what images with CUDA set for NVIDIA's hook."""


def in_container(launch: Launch, vendor: str) -> Launch:
    """Return the largest message of a launch again, inside a container of the gate's own image.

    Args:
        launch: the AllReduce outside of one.
        vendor: of the GPUs.
    """
    given = {
        name: value
        for name, value in _IN_CONTAINER.items()
        if vendor == "nvidia" or not name.startswith("NVIDIA_")
    }
    return msgspec.structs.replace(
        launch,
        job=f"{launch.job}-container",
        label=f"{launch.label}-container",
        min_bytes=launch.max_bytes,
        environment=(*launch.environment, *given.items()),
        container=GATE_IMAGE,
    )


def launches(
    spec: ClusterSpec, compute: tuple[Host, ...], job: str, catalog: Catalog
) -> tuple[Launch, ...]:
    """Return what to start so that every host takes part: an AllReduce for each fabric domain.

    A job runs in one partition, so a domain over pools that share none is tested in parts.

    Args:
        spec: the cluster.
        compute: the hosts to test.
        job: stem of the jobs' names.
        catalog: has the hosts' fabric, and the number of their GPUs.
    """
    found: list[Launch] = []
    for domain in fabric_domains(spec, catalog, compute):
        for partition, pools in _cover(spec, {host.pool for host in domain}):
            hosts = tuple(host for host in domain if host.pool in pools)
            machines = [machine_of(catalog, host) for host in hosts]
            least, most = message_sizes(spec.smoke.allreduce.sizes, machines)
            found.append(
                Launch(
                    job=f"{job}-{partition}-{len(found) + 1}",
                    label=f"{partition}-{len(found) + 1}",
                    partition=partition,
                    nodes=tuple(host.name for host in hosts),
                    min_bytes=least,
                    max_bytes=most,
                    iterations=spec.smoke.allreduce.iterations,
                    gpus=_gpus(spec, hosts, catalog),
                    qos=SMOKE_QOS if keeps_accounts(spec) else "",
                )
            )
    return tuple(found)


def _gpus(spec: ClusterSpec, hosts: tuple[Host, ...], catalog: Catalog) -> int:
    """Return the GPUs that each of these hosts has, the fewest of them; 0: none that are real.

    Nor where they are cut into MIG slices: between these there is no peer-to-peer, over PCI Express
    or NVLink (NVIDIA MIG user guide, "Deployment Considerations").
    """
    if any(spec.pools[host.pool].is_sliced for host in hosts):
        return 0
    machines = [machine_of(catalog, host) for host in hosts]
    counts = [m.gpu.count if m and m.gpu and not m.simulated else 0 for m in machines]
    return min(counts, default=0)


def _cover(spec: ClusterSpec, pools: set[str]) -> list[tuple[str, set[str]]]:
    """Return partitions, with their pools, that together hold all pools: the fullest first."""
    written = spec.scheduler.partitions
    if not written:
        return [(ONLY_PARTITION, pools)]
    inside = {name: pools & set(partition.pools) for name, partition in written.items()}
    chosen: list[tuple[str, set[str]]] = []
    missing = set(pools)
    while missing:
        name = max(sorted(inside), key=lambda n: (len(inside[n] & missing), written[n].default))
        if not inside[name] & missing:
            break
        chosen.append((name, inside[name]))
        missing -= inside[name]
    return chosen


FACTOR = 2
"""Each message of a sweep is this many times the one before it."""


def algbw(size: int, seconds: float) -> float:
    """Return the algorithm bandwidth in GB/s (10^9 bytes) of `size` bytes in `seconds`."""
    return size / seconds / 1e9


Collective: TypeAlias = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"
]
"""As nccl-tests names its programs: all_gather_perf."""
ONE_SIDED: frozenset[Collective] = frozenset({"alltoall", "sendrecv"})
"""Those whose in-place half nccl-tests doesn't check (`reportErrors` in its sources)."""
IN_PARTS: frozenset[Collective] = frozenset({"all_gather", "reduce_scatter", "alltoall"})
"""Those whose message is a part for each rank, so that sizes are rounded down to that."""


def busbw_factor(ranks: int, collective: Collective = "all_reduce") -> float:
    """Return busbw / algbw over `ranks`: what each link must carry (doc/PERFORMANCE.md)."""
    if collective == "sendrecv":
        return 1.0
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


def busbw(size: int, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth in GB/s, which compares with the speed of a link."""
    return algbw(size, seconds) * busbw_factor(ranks)


def sweep(
    least: int, most: int, factor: int = FACTOR, element: int = ELEMENT_BYTES
) -> tuple[int, ...]:
    """Return the message sizes in bytes: `least`, then times `factor`, none above `most`.

    Each is rounded down to whole elements of `element` bytes.
    """
    sizes = [least]
    while sizes[-1] * factor <= most:
        sizes.append(sizes[-1] * factor)
    return tuple(size // element * element for size in sizes)
