"""How Slurm starts the AllReduce: in which partition, on which nodes, with which command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.smoke.busbw import FACTOR, parse_sizes
from gcluster.schemas.hostlist import fold

if TYPE_CHECKING:
    from gcluster.inventory.hosts import Host
    from gcluster.schemas.spec import ClusterSpec

PAYLOAD = "/usr/libexec/gcluster/allreduce"
"""Where the role allreduce puts the program on every node."""

ONLY_PARTITION = "main"
"""The partition with every compute pool, when the spec names none."""

LONGEST_MINUTES = 15
"""Slurm ends the job after this, should nobody be left to cancel it."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One AllReduce over nodes of one partition, one rank a node."""

    job: str
    """Name of the job: unique, so that this one and no other is cancelled."""
    partition: str
    nodes: tuple[str, ...]
    min_bytes: int
    max_bytes: int
    iterations: int

    def command(self) -> str:
        """Return the line for the shell on the controller; stderr joins stdout in one log."""
        srun = [
            *("srun", "--mpi=pmix", f"--job-name={self.job}", f"--partition={self.partition}"),
            *(f"--nodelist={fold(self.nodes)}", f"--nodes={len(self.nodes)}"),
            *("--ntasks-per-node=1", "--exclusive", "--kill-on-bad-exit=1"),
            *(f"--time={LONGEST_MINUTES}", PAYLOAD),
            *("--min-bytes", str(self.min_bytes), "--max-bytes", str(self.max_bytes)),
            *("--factor", str(FACTOR), "--iterations", str(self.iterations)),
        ]
        # A rank that waits lets others run: there may be fewer cores than ranks.
        return f"cd / && OMPI_MCA_mpi_yield_when_idle=1 {shlex.join(srun)} 2>&1"

    def ask(self) -> str:
        """Return the line that prints the job's state and Slurm's reason for it."""
        return f"squeue --noheader --name={self.job} --format='%T %r'"

    def cancel(self) -> str:
        """Return the line that cancels the job."""
        return f"scancel --name={self.job}"


def launches(spec: ClusterSpec, compute: tuple[Host, ...], job: str) -> tuple[Launch, ...]:
    """Return what to start so that every host takes part.

    One AllReduce over all hosts when a partition holds them all. A job runs in one partition, so
    else it is one for each partition that is needed to reach every pool.

    Args:
        spec: the cluster.
        compute: the hosts to test.
        job: stem of the jobs' names.
    """
    least, most = parse_sizes(spec.smoke.allreduce.sizes)
    return tuple(
        Launch(
            job=f"{job}-{partition}",
            partition=partition,
            nodes=tuple(host.name for host in compute if host.pool in pools),
            min_bytes=least,
            max_bytes=most,
            iterations=spec.smoke.allreduce.iterations,
        )
        for partition, pools in _cover(spec, {host.pool for host in compute})
    )


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
