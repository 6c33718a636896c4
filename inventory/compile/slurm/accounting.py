"""Accounting: role slurmdbd with its database, and slurm.conf's settings for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ....schemas.derived.graph import AccountTree
from ....schemas.spec import ClusterSpec, SlurmScheduler
from ....schemas.spec.scheduler import Accounting
from ...accounting.desired import keeps_accounts
from ...accounting.records import GPU, ROOT, SMOKE_QOS
from ...hosts import Host
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from ..system.packages import EPEL, epel
from .packages import install_variables
from .scheduling import (
    JWT_SECRET,
    has_rest_api,
    priority_variables,
    written_partitions,
    written_settings,
)

SLURMDBD_PORT = 6819
"""DbdPort, Slurm's own default."""
MARIADB_PORT = 3306
DATABASE_SECRET = "slurmdbd"  # noqa: S105  # the secret's name
"""Name of the secret that holds the database password which gcluster makes."""
ENFORCED = ("associations", "limits", "qos")
"""A job needs an account, is subject to its limits and may only request an allowed QOS."""


def accounting_hosts(spec: ClusterSpec, hosts: Iterable[Host]) -> tuple[Host, ...]:
    """Return the hosts that run slurmdbd, the first choice first, at most two; (): there is none.

    They are the first of the pool that `accounting` names, else of the controllers.
    """
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler) or not keeps_accounts(spec):
        return ()
    named = slurm.accounting.pool if slurm.accounting else None
    found = [h for h in hosts if h.pool == named or (named is None and h.role == "controller")]
    return tuple(found[:2])


def may_run_accounting(node: NodeFacts) -> bool:
    """Whether slurmdbd may run in a pool: the one that `accounting` names, else a controller's."""
    slurm = node.spec.scheduler
    if not isinstance(slurm, SlurmScheduler):
        return False
    named = slurm.accounting.pool if slurm.accounting else None
    return node.pool.role == "controller" if named is None else node.name == named


def accounting_variables(spec: ClusterSpec, run_it: Sequence[Host]) -> dict[str, Json]:
    """Return what role slurm's controllers get of accounts; {} without a database.

    Fair share counts from then on, so the weights are written whether or not the spec changes them.

    Args:
        spec: the cluster.
        run_it: of `accounting_hosts`.
    """
    slurm = spec.scheduler
    if not run_it or not isinstance(slurm, SlurmScheduler):
        return {}
    return {
        "slurm_accounting": {
            "host": run_it[0].name,
            "backup_host": run_it[1].name if run_it[1:] else "",
            "port": SLURMDBD_PORT,
            "tres": [GPU, *_slices(spec), *_gres(spec)],
            "enforce": list(ENFORCED),
        },
        "slurm_priority": priority_variables(slurm.priority),
        "slurm_preemption": any(qos.preempts for qos in slurm.qos.values()),
    }


def gives_notice(spec: ClusterSpec) -> bool:
    """Whether jobs of some QOS have a grace time before they give way."""
    slurm = spec.scheduler
    qualities = slurm.qos.values() if isinstance(slurm, SlurmScheduler) else ()
    return any(q.grace is not None and q.preemptible != "no" for q in qualities)


def _slices(spec: ClusterSpec) -> list[str]:
    """Return the types of MIG slices that are counted apart, besides as GPUs: gres/gpu:1g.10gb."""
    profiles = {name for pool in spec.pools.values() for name in pool.gpus.mig_slices}
    return [f"{GPU}:{profile}" for profile in sorted(profiles)]


def _gres(spec: ClusterSpec) -> list[str]:
    """Return the generic resources besides GPUs: limits and records know what is counted here."""
    names = {name for pool in spec.pools.values() for name in pool.gres}
    return [f"gres/{name}" for name in sorted(names)]


def partition_access(spec: ClusterSpec) -> dict[str, dict[str, Json]]:
    """Return partition -> the accounts and QOS that it is for; only with a database.

    A partition that names accounts is for their parts too: Slurm compares names, not the tree. Root
    may use all of them, and `SMOKE_QOS`: gcluster's own jobs are charged to its account.
    """
    tree = AccountTree(spec.scheduler.accounts)
    return {
        name: {
            "accounts": [ROOT, *sorted(tree.with_parts(one.accounts))] if one.accounts else [],
            "qos": sorted({*one.qos, SMOKE_QOS}) if one.qos else [],
        }
        for name, one in written_partitions(spec).items()
        if one.accounts or one.qos
    }


def slurmdbd_variables(spec: ClusterSpec, run_it: Sequence[Host]) -> dict[str, Json]:
    """Return the variables of role slurmdbd; the password is a secret and not among them.

    A database that exists is reached at its address with the password that the spec refers to;
    else one is set up on the first of the hosts, with a password that gcluster makes and keeps
    encrypted (`DATABASE_SECRET`).
    """
    slurm = spec.scheduler
    if not run_it or not isinstance(slurm, SlurmScheduler):
        return {}
    accounting = slurm.accounting or Accounting()
    settings = written_settings(slurm.settings.slurmdbd)
    host, _, port = (accounting.database or "").partition(":")
    days = (
        0
        if accounting.purge_after is None
        else max(1, round(accounting.purge_after.value / 86_400))
    )
    return {
        "slurmdbd_cluster": spec.name,
        "slurmdbd_hosts": [{"name": one.name, "address": one.address} for one in run_it],
        "slurmdbd_port": SLURMDBD_PORT,
        "slurmdbd_database_host": host or run_it[0].address or run_it[0].name,
        "slurmdbd_database_port": int(port or MARIADB_PORT),
        "slurmdbd_database_name": f"slurm_acct_{spec.name.replace('-', '_')}",
        "slurmdbd_database_made": not host,
        "slurmdbd_purge_days": days,
        **({"slurmdbd_settings": settings} if settings else {}),
    }


SIMULATED_BUFFER_POOL_MIB = 128
"""Default for a database with simulated nodes on one machine: MariaDB's own."""

_PREFLIGHT = (
    "slurmdbd_hosts",
    "slurmdbd_database_host",
    "slurmdbd_database_port",
    "slurmdbd_database_made",
)


@role_compiler("slurmdbd", sources=EPEL, chosen=epel, after=("munge", "slurm_packages"))
def slurmdbd_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role slurmdbd for the hosts of a pool; none where none of them runs it.

    They come before role slurm's: a slurmctld ends without the database that it is configured with.
    Further hosts of their pool have its packages alone.
    """
    spec = node.spec
    run_it = accounting_hosts(spec, node.cluster.hosts) if may_run_accounting(node) else ()
    if node.name not in {host.pool for host in run_it}:
        return []
    variables, install = slurmdbd_variables(spec, run_it), install_variables(node, "slurmdbd")
    pages: dict[str, Json] = (
        {"slurmdbd_buffer_pool_mib": SIMULATED_BUFFER_POOL_MIB} if node.cluster.simulated else {}
    )
    known = {key: variables[key] for key in ("slurmdbd_cluster", "slurmdbd_hosts")}
    made = {"slurmdbd_database_made": variables["slurmdbd_database_made"]}
    secrets = {"slurmdbd_password_file": DATABASE_SECRET}
    if has_rest_api(spec):
        secrets["slurmdbd_jwt_key_file"] = JWT_SECRET
    return [
        _step("preflight", {key: variables[key] for key in _PREFLIGHT}),
        msgspec.structs.replace(_step("install", install), from_mirror="slurmdbd_built" in install),
        _step("configure", variables | pages, secrets=secrets),
        _step("verify", known | made | pages),
    ]


def _step(
    phase: Phase, variables: dict[str, Json], *, secrets: dict[str, str] | None = None
) -> Step:
    """Return a step; slurmctld buffers records while slurmdbd is down."""
    return Step(
        stage=Stage.SCHEDULER,
        role="slurmdbd",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )
