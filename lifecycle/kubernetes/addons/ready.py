"""Add-ons that `up` is about to bring are fetched and rendered once before anything is changed."""

from __future__ import annotations

import time
from pathlib import Path

from ....schemas.diagnostics import Diagnostic
from ...bundle.active import command_for
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, LifecycleError
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ...nodes.ssh import SshSession
from ...status.observe import Observation
from ..kubectl import ApiRefused, ApiSilent
from ..managed.login import kubectl_of
from ..objects import DesiredObjects, desired_objects
from . import changes as together
from .artefact import artefact
from .changes import AddonChanges
from .notes import BundledImages, bundled_images
from .rendering import rendered


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
        report: receives an event for each add-on.
        bundle: folder of the bundle that it uses.

    Raises:
        LifecycleError: one finding for each that can't be had or rendered (exit code REFUSED).
    """
    found = desired_objects(cluster.spec, observation.desired, cluster.catalog)
    changes = _changes(found, observation, session)
    fetch_and_render(found, changes, report, bundle, _bundled(cluster, bundle))


def fetch_and_render(
    found: DesiredObjects,
    changes: AddonChanges,
    report: Reporter,
    bundle: Path | None = None,
    held: BundledImages | None = None,
) -> None:
    """Do so for pending add-ons; with a bundle for all, since it must serve every node.

    Args:
        found: the wanted add-ons.
        changes: the state of its add-ons.
        report: receives an event for each add-on.
        bundle: folder of the bundle that it is to live on.
        held: the images that nodes find; None: they pull what isn't there.

    Raises:
        LifecycleError: as `ready`, and for each image that isn't held.
    """
    pending = changes.rendered if bundle is None else changes.wanted
    if not pending:
        return
    facts = found.facts
    began = time.monotonic()
    findings: list[Diagnostic] = []
    report(StageStarted(name="add-ons", total=len(pending)))
    for done, one in enumerate(pending):
        name = one.chosen.addon.name
        report(StageProgress(name="add-ons", done=done, total=len(pending), detail=name))
        try:
            content = artefact(one.chosen.addon, bundle)
            made = rendered(one.chosen, content, facts.spec.name, facts.release, found.objects)
            if held is not None:
                findings += held.lacking(name, made.images)
        except LifecycleError as error:
            findings += error.diagnostics
    took = time.monotonic() - began
    summary = f"{len(changes.rendered)} to bring"
    report(StageFinished(name="add-ons", ok=not findings, summary=summary, seconds=took))
    if findings:
        raise LifecycleError(*findings, exit_code=Exit.REFUSED)


def _bundled(cluster: Cluster, folder: Path | None) -> BundledImages | None:
    """Return the images of the cluster's bundle, where its nodes pull no others."""
    at = cluster.kubernetes
    if cluster.bundle is None or at is None or at.root:
        return None
    return bundled_images(cluster.bundle, command_for(cluster, folder))


def _changes(found: DesiredObjects, observation: Observation, session: SshSession) -> AddonChanges:
    fresh = together.fresh(found.facts)
    if not fresh.rendered or not observation.existing.has_scheduler:
        return fresh
    try:
        kubectl = kubectl_of(session, observation.existing)
        return together.observe_addons(kubectl, found.facts, thorough=True)[0]
    except (ApiSilent, ApiRefused):
        return fresh
