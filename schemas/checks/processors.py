"""Processors and memory of nodes, which Slurm must know before it shares them out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..diagnostics import Severity
from ..spec import Pool
from .context import CheckContext
from .registry import Finding, check

if TYPE_CHECKING:
    from ..catalog import Machine

_EXAMPLES = {
    "processors": "cpu: {sockets: 2, cores: 56, threads_per_core: 2}",
    "memory": "memory: 2048 GiB",
}
"""What to write, as on a DGX H100."""


@check("GC118", summary="Nobody says what processors or memory the nodes of a pool have.")
def node_unknown(context: CheckContext) -> Iterator[Finding]:
    """Say `cpu` and `memory` of bare-metal machine types that are a board, not a server.

    An HGX board comes in servers of many makers, so the catalog can't know their processors.
    Slurm takes what its configuration says: without any it counts one CPU and next to no memory,
    and jobs that ask for more never start. `lscpu` and `free` on a node tell them.
    """
    if context.slurm is None:
        return
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if pool.role != "compute" or machine is None or not context.exists(pool.site):
            continue
        missing = _missing(pool, machine)
        if missing:
            yield Finding(
                summary=f'pool "{name}": the {" and ".join(missing)} of {machine.name} '
                f"{'is' if missing == ['memory'] else 'are'} not known",
                path=("pools", name, "machine"),
                severity=Severity.WARNING,
                hint=f"add {', '.join(_EXAMPLES[what] for what in missing)} as `lscpu` and `free` "
                "say them",
                relies_on=tuple(
                    ("pools", name, key) for key in ("machine", "site", "role", "cpu", "memory")
                ),
            )


def _missing(pool: Pool, machine: Machine) -> list[str]:
    """Return which of processors and memory neither the pool nor the catalog says."""
    missing = []
    if pool.cpu is None and (machine.cpu is None or not machine.cpu.threads):
        missing.append("processors")
    if pool.memory is None and machine.memory_gib is None:
        missing.append("memory")
    return missing
