"""The gate at the end of `up`: the AllReduce must pass; the certificate says what was proven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...inventory.compile.node import pulls
from ...inventory.hosts import ClusterInventory
from ...schemas.spec import SlurmScheduler
from ...schemas.structure.decoding import decode_json
from ..cluster.cluster import CERTIFICATE_KEY, Cluster
from ..cluster.hosts import existing_hosts
from ..cluster.outcome import Exit, failure
from ..cluster.progress import Finding, Reporter
from ..down.expiry.expiry_guard import refuse_late_test
from ..nodes.ssh import SshSession
from ..state import SmokeFinished, acquire
from ..status.drift.node_reports import see_deviations
from ..up.figures import publish
from ..up.run import Run
from .certificate import certificate
from .launching.slurm import LONGEST_MINUTES
from .run import SmokeResult, run_allreduce
from .validity import drift_reasons, read_starts, stale_reasons

_ENDED_KEY = "certificate-ended.json"
"""State key of what drift ended the certificate of the time that it names."""


def last_certificate(cluster: Cluster) -> dict[str, object] | None:
    """Return the certificate of the last gate, passed or not; None when there was none."""
    content = cluster.store.get(CERTIFICATE_KEY)
    if content is None:
        return None
    return decode_json(content, dict[str, object])


def cached_verdict(
    cluster: Cluster, existing: ClusterInventory, session: SshSession
) -> dict[str, object] | None:
    """Return the verdict of the last gate if it passed for this very spec, on every node.

    Args:
        cluster: whose gate.
        existing: the hosts that exist: a restarted or new one invalidates the certificate.
        session: SSH to them.
    """
    certificate = last_certificate(cluster)
    if certificate is None or certificate.get("spec_hash") != cluster.spec_hash:
        return None
    if certificate.get("left_out") or reasons_against(cluster, certificate, existing, session):
        return None
    verdict = certificate.get("verdict")
    return verdict if isinstance(verdict, dict) and verdict.get("verdict") == "pass" else None


def reasons_against(
    cluster: Cluster,
    certificate: dict[str, object],
    existing: ClusterInventory,
    session: SshSession,
    unsettled: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return why a certificate is no longer valid for the existing nodes; (): it is.

    Nodes that converge themselves are too many to query: their names are compared, and the result
    of `drift` counts.
    """
    compute = existing.real.with_role("compute")
    requested = {} if pulls(cluster.spec, existing) else read_starts(existing, session)
    stale = stale_reasons(certificate, (host.name for host in compute), requested, unsettled)
    return (*stale, *_ended_by_drift(cluster, certificate))


def note_drift(cluster: Cluster, seen: Mapping[str, Sequence[str]]) -> None:
    """Invalidate the certificate where members differ from when they were tested.

    It stays invalid, whatever becomes of the drift, until the gate is passed again. Needs no lock:
    a concurrent writer records the same.

    Args:
        cluster: whose certificate.
        seen: node -> how it deviates, of those that responded (`drift.node_reports.deviations`).
    """
    certificate = last_certificate(cluster)
    if certificate is None or _ended_by_drift(cluster, certificate):
        return
    reasons = drift_reasons(certificate, seen)
    if reasons:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        end = {"certificate": certificate.get("time"), "seen": now, "reasons": reasons}
        cluster.store.put(_ENDED_KEY, msgspec.json.encode(end))


def _ended_by_drift(cluster: Cluster, certificate: dict[str, object]) -> tuple[str, ...]:
    """Return what was noted of this very certificate's end."""
    content = cluster.store.get(_ENDED_KEY)
    end = {} if content is None else decode_json(content, dict[str, Any])
    if not end or end["certificate"] != certificate.get("time"):
        return ()
    return (*end["reasons"][:-1], f"{end['reasons'][-1]} (seen {end['seen']})")


def pass_gate(
    run: Run, fit: ClusterInventory, session: SshSession, report: Reporter, *, bisect: bool = True
) -> SmokeResult | None:
    """Run the AllReduce over all fit compute nodes and write the certificate.

    Returns None when the cluster has only simulated nodes: nothing can run there.

    Raises:
        LifecycleError: the cluster ends before Slurm would let the AllReduce run (GC1141).
    """
    cluster = run.cluster
    nodes = fit.real
    if not nodes.with_role("compute"):
        return None
    if isinstance(cluster.spec.scheduler, SlurmScheduler):
        refuse_late_test(cluster, LONGEST_MINUTES)
    session.trust([host for host in nodes.hosts if host.connection == "ssh"])
    different = see_deviations(cluster, nodes, session)
    spec, catalog = cluster.spec, cluster.catalog
    result = run_allreduce(
        spec, nodes, session, run.directory, report, catalog=catalog, bisect=bisect
    )
    document = certificate(cluster.spec_hash, nodes, result, session)
    document["deviations"] = {node: what for node, what in different.items() if what}
    cluster.store.put(CERTIFICATE_KEY, msgspec.json.format(msgspec.json.encode(document)))
    verdict = result.verdict
    cluster.events.append(
        SmokeFinished(verdict=verdict.verdict, busbw=verdict.busbw, simulated=verdict.simulated)
    )
    return result


def run_gate(cluster: Cluster, report: Reporter, *, bisect: bool = True) -> SmokeResult:
    """Run the gate by itself on a running cluster (`gcluster smoke`)."""
    nodes = existing_hosts(cluster)
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(cluster.spec.sites), reason="smoke") as lock,
        Run(cluster, "smoke", lock) as run,
    ):
        result = pass_gate(run, nodes, session, report, bisect=bisect)
        if result is None:
            raise failure("GC930", "simulated nodes run no jobs: there is nothing to test")
        unwritten = publish(cluster, nodes, session, last_certificate(cluster))
        if unwritten is not None:
            report(Finding(diagnostic=unwritten))
        run.finish(Exit.OK if result.passed else Exit.REFUSED)
        return result
