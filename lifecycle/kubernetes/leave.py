"""Nodes that are about to go: their pods leave first, as far as they do so in time."""

from __future__ import annotations

from collections.abc import Sequence

from ...schemas.diagnostics import Diagnostic, Severity
from ..observe import Observation
from ..planning.guards import gone_nodes
from ..ssh import SshSession
from .kubectl import ApiRefused, ApiSilent, Kubectl, kubectl_of

_LEAVE_WITHIN_S = 120
"""Pods have this long to end, their grace included."""


def drain(observation: Observation, session: SshSession) -> tuple[Diagnostic, ...]:
    """Drain the nodes that the sites are about to remove or replace; return who was in the way.

    A node that is gone from the API already, and an API that is silent, hold nothing up: the plan
    that was agreed to says that the nodes go.
    """
    leaving = [*(node.name for node in gone_nodes(observation.sites)), *observation.leaving]
    if not leaving:
        return ()
    return drain_nodes(kubectl_of(session, observation.existing), leaving)


def drain_nodes(kubectl: Kubectl, names: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Cordon these nodes and have their pods leave, as far as the API knows them."""
    try:
        known = kubectl.text("get", "nodes", "--output=name").split()
        there = [name for name in names if f"node/{name}" in known]
        if there:
            kubectl.text(
                *("drain", *there, "--ignore-daemonsets", "--delete-emptydir-data", "--force"),
                f"--timeout={_LEAVE_WITHIN_S}s",
                timeout_s=_LEAVE_WITHIN_S + 30,
            )
    except (ApiSilent, ApiRefused) as error:
        words = error.words if isinstance(error, ApiRefused) else ""
        return (
            Diagnostic(
                code="GC1008",
                severity=Severity.WARNING,
                summary=f"nodes go with pods on them: {error}",
                detail=words,
            ),
        )
    return ()
