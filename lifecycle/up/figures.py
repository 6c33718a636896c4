"""What no exporter knows of a cluster, for its Prometheus: its last AllReduce, and its end.

`up` and `smoke` write them into a file of node exporter's folder on the monitoring host, where
alerts find them (AllReduceFailed, AllReduceOld, AllReduceSlower, ClusterEnds).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ...inventory.compile.kubernetes_objects.monitoring.secrets import figures_reach
from ...inventory.compile.kubernetes_objects.monitoring.stack import FIGURES
from ...inventory.hosts import ClusterInventory
from ...schemas.derived.control_planes import watched_by_roles
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import Budget
from ..cluster.cluster import Cluster
from ..down.expiry.due import expires_at, lifetime
from ..nodes.ssh import SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT
from ..status.slurm import last_error_line
from ..status.waste.prometheus import monitoring_host

_FILE = "gcluster-cluster.prom"
"""Role prometheus removes it from a host that is no longer the monitoring host."""
_FOLDER = "/var/lib/prometheus/node-exporter"
"""Of role node_exporter. Where a chart brings the exporter, it is FIGURES, which its pod reads."""
_LIMIT_S = 30


def publish(
    cluster: Cluster,
    hosts: ClusterInventory,
    session: SshSession,
    certificate: Mapping[str, Any] | None,
) -> Diagnostic | None:
    """Write a cluster's figures to its monitoring host. Safe to repeat.

    Args:
        cluster: whose figures; nothing is written where its spec has no monitoring.
        hosts: those that exist.
        session: SSH to them.
        certificate: of the last AllReduce; None: there was none.

    Returns:
        Why they couldn't be written (GC1193, a warning); None: they were.
    """
    monitoring = cluster.spec.monitoring
    if monitoring is None or not monitoring.prometheus:
        return None
    by_chart = not watched_by_roles(cluster.spec)
    if by_chart and not figures_reach(cluster.spec):
        return None
    living = lifetime(cluster.events.read())
    began = None if living is None else living.began
    text = "".join(f"{line}\n" for line in figures(certificate, cluster.spec.budget, began))
    if by_chart:
        host, folder = hosts.with_role("controller")[0], FIGURES
    else:
        host, folder = monitoring_host(cluster.spec, hosts), _FOLDER
    answer = session.run(host, _writing(folder), stdin=text, timeout_s=_LIMIT_S)
    if isinstance(answer, Unreachable):
        return _unwritten(host.name, answer.reason)
    if answer.returncode != 0:
        return _unwritten(host.name, last_error_line(answer))
    return None


def _writing(folder: str) -> str:
    """Return a command that writes what it reads as a whole; the exporter meets no half file."""
    there = f"$root mkdir -p {folder} && " if folder == FIGURES else ""
    return (
        f"root={AS_ROOT}; {there}cd {folder} && "
        f"$root tee .{_FILE}.new >/dev/null && $root chmod 0644 .{_FILE}.new && "
        f"$root mv -f .{_FILE}.new {_FILE}"
    )


def figures(
    certificate: Mapping[str, Any] | None, budget: Budget | None, began: datetime | None
) -> Iterator[str]:
    """Yield the lines of Prometheus' text format.

    Args:
        certificate: of the last AllReduce, as `smoke.certificate` makes it.
        budget: of the spec: when the cluster ends.
        began: when it was first brought up, from which `budget.expires` counts.
    """
    if certificate is not None:
        verdict = certificate["verdict"]
        at = datetime.strptime(str(certificate["time"]), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        yield f"gcluster_allreduce_time_seconds {at.timestamp():.0f}"
        yield f"gcluster_allreduce_passed {int(verdict['verdict'] == 'pass')}"
        # How fast simulated GPUs are says nothing.
        if verdict["busbw"] is not None and not verdict["simulated"]:
            speed = f"{verdict['busbw'] * 1e9:.15g}"
            count = len(certificate.get("members") or ())
            yield f'gcluster_allreduce_busbw_bytes_per_second{{nodes="{count}"}} {speed}'
    end = None if budget is None or began is None else expires_at(budget, began)
    if budget is not None and end is not None:
        yield f"gcluster_end_time_seconds {end.timestamp():.0f}"
        yield f"gcluster_end_notice_seconds {budget.expiry_notice_s:.15g}"


def _unwritten(host: str, why: str) -> Diagnostic:
    return Diagnostic(
        code="GC1193",
        severity=Severity.WARNING,
        summary=f"alerts don't know of this AllReduce and the cluster's end: {host}: {why}",
        hint="gcluster smoke writes them again",
    )
