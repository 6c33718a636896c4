"""Services beside the scheduler: accounting, metrics, a directory of users."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..mend.fix import Insert, Replace
from .context import CheckContext
from .registry import Finding, check

_ACCOUNTING: PathTuple = ("scheduler", "accounting")


@check("GC551", summary="A database is named without its password, or a password without it.")
def database_half_said(context: CheckContext) -> Iterator[Finding]:
    """A database that exists needs the password of slurmdbd; one that is set up gets its own."""
    accounting = context.slurm.accounting if context.slurm is not None else None
    if accounting is None or (accounting.database is None) == (accounting.password is None):
        return
    given, missing = "database", "password"
    if accounting.database is None:
        given, missing = missing, given
    path: PathTuple = (*_ACCOUNTING, given)
    yield Finding(
        summary=f"accounting names a {given}, but no {missing}",
        path=path,
        hint="add password: env:SLURMDB_PASSWORD (a reference, never the password)"
        if missing == "password"
        else "add database: host:port, or remove password",
        relies_on=(path, (*_ACCOUNTING, missing)),
    )


@check("GC552", summary="A service runs on nodes that run jobs.")
def service_on_workers(context: CheckContext) -> Iterator[Finding]:
    """Accounting and metrics take memory from jobs, and jobs take them down.

    Let them run with the controller, or on a login pool. A pool that may have no node can't run
    them at all.
    """
    named: list[tuple[str, str | None, PathTuple]] = []
    if context.slurm is not None and context.slurm.accounting is not None:
        named.append(("accounting", context.slurm.accounting.pool, (*_ACCOUNTING, "pool")))
    if context.monitoring is not None:
        named.append(("monitoring", context.monitoring.pool, ("monitoring", "pool")))
    for who, word, path in named:
        pool = context.pools.get(word or "")
        if word is None or pool is None or pool.role != "compute":
            continue
        empty = pool.least == 0
        yield Finding(
            summary=f'{who} is to run on pool "{word}", which '
            f"{'may have no node' if empty else 'runs jobs'}",
            path=path,
            severity=Severity.ERROR if empty else Severity.WARNING,
            hint="name a controller or login pool, or leave pool out",
            relies_on=(path, ("pools", word, "role"), ("pools", word, "count")),
        )


@check("GC571", summary="Dashboards or alerts are asked for without the metrics they show.")
def metrics_missing(context: CheckContext) -> Iterator[Finding]:
    """Grafana shows, and alerts watch, what Prometheus collects.

    So `grafana`, `waste_alert` and `retention` need `prometheus: true`.
    """
    monitoring = context.monitoring
    if monitoring is None or monitoring.prometheus:
        return
    asked = {
        "grafana": monitoring.grafana,
        "waste_alert": monitoring.waste_alert is not None,
        "retention": monitoring.retention is not None,
    }
    said = [key for key, is_asked in asked.items() if is_asked]
    if said:
        path: PathTuple = ("monitoring", "prometheus")
        written = "prometheus" in (context.declared("monitoring") or ())
        yield Finding(
            summary=f"{' and '.join(said)} without the metrics of Prometheus",
            path=("monitoring", said[0]),
            at_key=True,
            hint="add prometheus: true",
            relies_on=(path, *(("monitoring", key) for key in asked)),
            fix=Replace(path, "true") if written else Insert(path[:1], "prometheus", "true"),
        )


@check("GC561", summary="A directory is asked over a connection that everybody can read.")
def plain_directory(context: CheckContext) -> Iterator[Finding]:
    """ldap:// sends names and passwords in the clear, and nothing proves who answers.

    SSSD refuses to check passwords over it unless the connection is upgraded (StartTLS). Write
    ldaps://.
    """
    directory = context.directory
    if directory is not None and directory.ldap.startswith("ldap://"):
        yield Finding(
            summary=f"{directory.ldap} is not encrypted",
            path=("users", "ldap"),
            severity=Severity.WARNING,
            hint=f"write ldaps://{directory.ldap.removeprefix('ldap://')}",
        )


@check(
    "GC562", summary="A directory is asked by somebody without a password, or by nobody with one."
)
def bind_half_said(context: CheckContext) -> Iterator[Finding]:
    """`bind_dn` and `bind_password` belong together; without both it is asked anonymously."""
    directory = context.directory
    if directory is None or (directory.bind_dn is None) == (directory.bind_password is None):
        return
    given, missing = "bind_dn", "bind_password"
    if directory.bind_dn is None:
        given, missing = missing, given
    path: PathTuple = ("users", given)
    yield Finding(
        summary=f"users names a {given}, but no {missing}",
        path=path,
        at_key=True,
        hint="add bind_password: env:LDAP_PASSWORD (a reference, never the password)"
        if missing == "bind_password"
        else "add bind_dn, or remove bind_password",
        relies_on=(path, ("users", missing)),
    )


@check("GC563", summary="Nobody says where in a directory its people are, or which ids they have.")
def directory_unclear(context: CheckContext) -> Iterator[Finding]:
    """SSSD needs a search base: `base`, else the domain of the directory's host.

    An address or a name without a domain has none. `ids` goes from `min` up to `max`.
    """
    directory = context.directory
    if directory is None:
        return
    if directory.search_base is None:
        yield Finding(
            summary=f"{directory.ldap} has no domain that tells where people are",
            path=("users", "ldap"),
            hint="add base: dc=example,dc=edu",
            relies_on=(("users", "ldap"), ("users", "base")),
        )
    ids = directory.ids
    if ids.max is not None and ids.max < ids.min:
        yield Finding(
            summary=f"ids from {ids.min} up to {ids.max} are none",
            path=("users", "ids", "max"),
            hint=f"write a number above {ids.min}, or leave max out",
            relies_on=(("users", "ids"),),
        )
