"""The role slurmdbd: Slurm's accounting daemon and its database, before a controller needs them."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .slurm import AUTO
from .slurm_accounting import (
    DATABASE_SECRET,
    accounting_hosts,
    may_run_accounting,
    slurmdbd_variables,
)
from .steps import Json, Phase, Stage, Step

SIMULATED_BUFFER_POOL_MIB = 128
"""Of a database beside simulated nodes, which share one machine: MariaDB's own default."""

_PREFLIGHT = (
    "slurmdbd_hosts",
    "slurmdbd_database_host",
    "slurmdbd_database_port",
    "slurmdbd_database_made",
)


@role_compiler("slurmdbd", after=("munge",))
def slurmdbd_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role slurmdbd for the hosts of a pool; none where none of them runs it.

    They come before role slurm's: a slurmctld ends without the database that it is configured with.
    Further hosts of their pool have its packages alone.
    """
    spec = node.spec
    run_it = accounting_hosts(spec, node.cluster.hosts) if may_run_accounting(node) else ()
    if node.name not in {host.pool for host in run_it}:
        return []
    said, version = slurmdbd_variables(spec, run_it), spec.software.slurm
    pages: dict[str, Json] = (
        {"slurmdbd_buffer_pool_mib": SIMULATED_BUFFER_POOL_MIB} if node.cluster.simulated else {}
    )
    known = {key: said[key] for key in ("slurmdbd_cluster", "slurmdbd_hosts")}
    made = {"slurmdbd_database_made": said["slurmdbd_database_made"]}
    return [
        _step("preflight", {key: said[key] for key in _PREFLIGHT}),
        _step("install", {} if version == AUTO else {"slurmdbd_version": version}),
        _step("configure", said | pages, secrets={"slurmdbd_password_file": DATABASE_SECRET}),
        _step("verify", known | made | pages),
    ]


def _step(
    phase: Phase, variables: dict[str, Json], *, secrets: dict[str, str] | None = None
) -> Step:
    """Return a step; slurmctld keeps what slurmdbd misses and tells it afterwards."""
    return Step(
        stage=Stage.SCHEDULER,
        role="slurmdbd",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )
