"""Waits until the nodes of each pool have joined a cloud's control plane, and are ready."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from ....inventory.hosts import Host
from ....schemas.derived.control_planes import managed_by, managed_pools
from ....schemas.derived.hostlist import fold
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ....stacks.provider import ResourceChange
from ....stacks.pulumi.engine.checkpoint import KINDS
from ....stacks.registry import managed_kubernetes
from ...cluster.open_site import OpenSite
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ...status.observe import Observation
from .login import missing_programs, refusal
from .nodes import Seen, managed_site, see, silence

STAGE = "join"
WITHIN_S = 900
"""Since the stack ended: EKS' image boots and joins within minutes, machines with eight GPUs take
up to about ten; GKE and AKS have waited for theirs already."""
_ASK_AGAIN_S = 5


def await_nodes(
    spec: ClusterSpec,
    sites: Iterable[OpenSite],
    planned: Iterable[Host],
    folder: Path,
    report: Reporter,
    *,
    ask: Callable[[], Seen] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Diagnostic, ...]:
    """Wait until each pool has as many ready nodes as the spec says.

    Args:
        spec: the cluster.
        sites: its sites, as they were applied.
        planned: the hosts of the spec.
        folder: the cluster's folder on this machine.
        report: receives how many there are.
        ask: observes the nodes; default: through the API.
        clock: seconds, of which only differences count.
        sleep: waits.

    Returns:
        A finding for each pool that lacks nodes at the time limit; its quorum decides whether `up`
        continues without them.
    """
    run = managed_pools(spec)
    wanted = Counter(host.pool for host in planned if host.pool in run)
    if not wanted:
        return ()
    opened = tuple(sites)
    look = ask or (lambda: see(spec, opened, folder))
    began, total, before = clock(), sum(wanted.values()), -1
    report(StageStarted(name=STAGE, total=total))
    while True:
        seen = look()
        ready = Counter(node.pool for node in seen.nodes if node.ready)
        there = sum(min(ready[pool], count) for pool, count in wanted.items())
        if there != before:
            detail = f"{there} of {total} nodes are ready"
            report(StageProgress(name=STAGE, done=there, total=total, detail=detail))
            before = there
        late = clock() - began >= WITHIN_S
        if there >= total or late:
            break
        sleep(_ASK_AGAIN_S)
    report(
        StageFinished(
            name=STAGE,
            ok=there >= total,
            summary=f"{there}/{total} ready",
            seconds=clock() - began,
        )
    )
    if seen.problem and there < total:
        return (silence(spec, seen.problem),)
    return tuple(
        _lacking(spec, pool, count, ready[pool], seen)
        for pool, count in wanted.items()
        if ready[pool] < count
    )


def _lacking(spec: ClusterSpec, pool: str, count: int, ready: int, seen: Seen) -> Diagnostic:
    own = [node for node in seen.nodes if node.pool == pool]
    unready = [node for node in own if not node.ready]
    reasons = [f"{count - len(own)} did not join"] if len(own) < count else []
    if unready:
        reasons.append(f"{fold([n.name for n in unready])} not ready: {unready[0].why}")
    return Diagnostic(
        code="GC1042",
        severity=Severity.ERROR,
        summary=f"pool {pool}: {ready} of {count} nodes are ready after {WITHIN_S // 60} minutes; "
        + "; ".join(reasons),
        detail="\n".join(f"{node.name}: {node.why}" for node in unready[:20]),
        path=("pools", pool),
        hint=managed_kubernetes(managed_by(spec) or "").join_hint,
    )


def repairs_control_plane(
    spec: ClusterSpec, sites: Iterable[OpenSite], observation: Observation
) -> bool:
    """Return whether `up` creates or changes a control plane that doesn't respond.

    A preview compares with the stack, so one that was deleted by others only shows when the cloud
    is queried; `up` refreshes the stack first, and recreates it.

    Raises:
        ProviderError: the cloud can't be queried.
    """
    name = managed_site(spec)
    planned = [change for site in observation.sites if site.site == name for change in site.changes]
    if any(_is_touched(change) for change in planned):
        return True
    return any(
        _is_touched(change) and change.effect == "delete"
        for site in sites
        if site.name == name
        for change in site.provider.detect_drift(site.context)
    )


def _is_touched(change: ResourceChange) -> bool:
    return change.resource.kind in KINDS and change.effect != "keep"


def managed_findings(
    spec: ClusterSpec, find: Callable[[str], str | None] = shutil.which
) -> tuple[Diagnostic, ...]:
    """Return the programs that this machine lacks; () where no cloud runs the control plane."""
    managed = managed_by(spec)
    if managed is None:
        return ()
    missing = missing_programs(managed, find)
    return (refusal(managed, missing),) if missing else ()
