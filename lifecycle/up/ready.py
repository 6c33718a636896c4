"""The phase of `up` that waits for machines; what doesn't get ready is left to the quorum."""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec.structs import replace

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic, Severity
from ..cluster.open_site import at_each
from ..cluster.progress import Finding, StageFinished, StageProgress, StageStarted
from ..nodes.readiness import Readiness, await_ready
from ..status.observe import Observation
from .phase import UpState

_KNOWN_LIMIT_S = 60.0
"""Longest wait for a machine that was there before and gave no answer then: it may be starting."""


def await_machines(state: UpState) -> None:
    """Wait for the machines without a stamp, with their providers' time limit."""
    found = at_each(state.sites, lambda site: site.provider.hosts(site.context))
    wanted = {host.name for host in state.before.desired.hosts}
    new = [
        host
        for hosts in found.values()
        for host in hosts
        if host.connection == "ssh"
        and host.name in wanted
        and not state.before.stamps.get(host.name)
        and host.name not in state.before.aside
    ]
    if not new:
        return
    limits = {site.name: site.provider.ready_limit_s for site in state.sites}

    def limit_s(host: Host) -> float:
        most = limits[host.site]
        return min(most, _KNOWN_LIMIT_S) if host.name in state.before.unreachable else most

    began = time.monotonic()
    state.report(StageStarted(name="ready", total=len(new)))
    state.ready = await_ready(
        new,
        state.session,
        limit_s=limit_s,
        progress=lambda done, what: state.report(
            StageProgress(name="ready", done=done, total=len(new), detail=what)
        ),
    )
    fit = [name for name, ready in state.ready.items() if not ready.reason]
    for name, ready in state.ready.items():
        if ready.failed and not ready.reason:
            state.report(Finding(diagnostic=_failed(name, ready)))
    state.report(
        StageFinished(
            name="ready",
            ok=len(fit) == len(new),
            summary=f"{len(fit)}/{len(new)} ready",
            seconds=time.monotonic() - began,
        )
    )


def with_readiness(observation: Observation, ready: Mapping[str, Readiness]) -> Observation:
    """Return the observation, nodes that didn't get ready in it as those that can't be reached."""
    late = {name: found for name, found in ready.items() if found.reason}
    return replace(
        observation,
        unreachable=observation.unreachable | {name: found.reason for name, found in late.items()},
        last_lines=observation.last_lines | {n: f.last_lines for n, f in late.items()},
        stamps={name: s for name, s in observation.stamps.items() if name not in late},
    )


def _failed(name: str, ready: Readiness) -> Diagnostic:
    return Diagnostic(
        code="GC1071",
        severity=Severity.WARNING,
        summary=f"cloud-init ended with an error on {name}",
        detail="\n".join(("the last lines of its log:", *ready.last_lines)),
        hint=f"gcluster ssh {name} cloud-init status --long says which module; `up` goes on",
    )
