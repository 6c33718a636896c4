"""Add-ons that `up` is about to bring are fetched and rendered once before anything is changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gcluster.lifecycle.kubernetes.addons import together
from gcluster.lifecycle.kubernetes.addons.artefact import artefact
from gcluster.lifecycle.kubernetes.addons.rendered import rendered
from gcluster.lifecycle.kubernetes.kubectl import ApiRefused, ApiSilent, kubectl_of
from gcluster.lifecycle.kubernetes.objects import wanted
from gcluster.lifecycle.outcome import Exit, LifecycleError
from gcluster.lifecycle.progress import StageFinished, StageProgress, StageStarted

if TYPE_CHECKING:
    from pathlib import Path

    from gcluster.lifecycle.cluster import Cluster
    from gcluster.lifecycle.kubernetes.addons.standing import Standing
    from gcluster.lifecycle.kubernetes.objects import Wanted
    from gcluster.lifecycle.observe import Observation
    from gcluster.lifecycle.progress import Reporter
    from gcluster.lifecycle.ssh import SshSession
    from gcluster.schemas.diagnostics import Diagnostic


def ready(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    report: Reporter,
    bundle: Path | None = None,
) -> None:
    """Have everything here that the pending add-ons are made of, and hold that it can be rendered.

    Args:
        cluster: the cluster.
        observation: what there is of it; where no API server answers, all add-ons are pending.
        session: to its control planes.
        report: told of each add-on.
        bundle: folder of the bundle that it is to live on.

    Raises:
        LifecycleError: one finding for each that can't be had or rendered (exit code REFUSED).
    """
    found = wanted(cluster.spec, observation.desired, cluster.catalog)
    fetch_and_render(found, _standing(found, observation, session), report, bundle)


def fetch_and_render(
    found: Wanted, standing: Standing, report: Reporter, bundle: Path | None = None
) -> None:
    """Do so for what is brought whole; raises as `ready` does."""
    pending = standing.rendered
    if not pending:
        return
    began = time.monotonic()
    findings: list[Diagnostic] = []
    report(StageStarted(name="add-ons", total=len(pending)))
    for done, one in enumerate(pending):
        name = one.chosen.addon.name
        report(StageProgress(name="add-ons", done=done, total=len(pending), detail=name))
        try:
            content = artefact(one.chosen.addon, bundle)
            rendered(one.chosen, content, found.facts.spec.name, found.facts.release, found.objects)
        except LifecycleError as error:
            findings += error.diagnostics
    took = time.monotonic() - began
    summary = f"{len(pending)} to bring"
    report(StageFinished(name="add-ons", ok=not findings, summary=summary, seconds=took))
    if findings:
        raise LifecycleError(*findings, exit_code=Exit.REFUSED)


def _standing(found: Wanted, observation: Observation, session: SshSession) -> Standing:
    fresh = together.fresh(found.facts)
    if not fresh.rendered or not observation.existing.has_scheduler:
        return fresh
    try:
        kubectl = kubectl_of(session, observation.existing)
        return together.look(kubectl, found.facts, thorough=True)[0]
    except (ApiSilent, ApiRefused):
        return fresh
