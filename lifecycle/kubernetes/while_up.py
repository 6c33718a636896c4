"""What `up` does for Kubernetes between its own steps; nothing where Slurm schedules."""

# ruff: noqa: PLC0415  # a cluster of Slurm imports none of it

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.derived.control_planes import managed_by
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import KubernetesScheduler
from ..bundle.use import Bundle
from ..outcome import Exit, LifecycleError
from ..progress import Finding, Reporter, StageProgress

if TYPE_CHECKING:
    from ..cluster import Cluster
    from ..observe import Observation
    from ..planning.changes import Plan
    from ..sites import OpenSite
    from ..ssh import SshSession


def refuse_unfit(cluster: Cluster, plan: Plan, report: Reporter) -> None:
    """Refuse what the plan says can't come up; report what it leaves out. Nothing is changed.

    Raises:
        LifecycleError: the plan has errors (exit code REFUSED).
    """
    found = [said for said in plan.diagnostics if said not in cluster.warnings]
    errors = [said for said in found if said.is_error]
    if errors:
        raise LifecycleError(*errors, exit_code=Exit.REFUSED)
    for said in found:
        report(Finding(diagnostic=said))


def refuse_silent(cluster: Cluster, sites: tuple[OpenSite, ...], observation: Observation) -> None:
    """Refuse to begin where a cloud's control plane stands and can't be asked.

    Not where this `up` makes or changes the control plane itself: that may be what lets it answer.

    Raises:
        LifecycleError: GC1043 (exit code REFUSED).
        ProviderError: the cloud can't be asked whether it still has it.
    """
    if observation.silent:
        from .managed.joining import mends, silence

        if mends(cluster.spec, sites, observation):
            return
        raise LifecycleError(silence(cluster.spec, observation.silent), exit_code=Exit.REFUSED)


def await_nodes(
    cluster: Cluster, sites: tuple[OpenSite, ...], before: Observation, report: Reporter
) -> tuple[Diagnostic, ...]:
    """Wait for the nodes that a cloud's control plane runs; return which pools lack some."""
    if managed_by(cluster.spec) is None:
        return ()
    from .managed.joining import await_nodes

    planned = before.desired.hosts
    return await_nodes(cluster.spec, sites, planned, cluster.workdir, report)


def ready_bundle(cluster: Cluster, observation: Observation, report: Reporter) -> None:
    """Have the build of local nodes be there and whole, before anything is changed.

    What comes in a bundle with everything else was looked at with it.

    Raises:
        LifecycleError: it can't be built, or it was damaged.
    """
    real = any(host.connection == "ssh" for host in observation.desired.hosts)
    if cluster.kubernetes is not None and cluster.kubernetes.root and real:
        from .source import ready_kubernetes

        cluster.__dict__["kubernetes"] = ready_kubernetes(report)


def ready_addons(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    report: Reporter,
    bundle: Bundle | None = None,
) -> None:
    """Fetch and render the add-ons that are about to change, before anything is.

    Raises:
        LifecycleError: one can't be had or rendered (exit code REFUSED).
    """
    if observation.desired.has_scheduler and isinstance(
        cluster.spec.scheduler, KubernetesScheduler
    ):
        from .addons.ready import ready

        folder = None if bundle is None else bundle.folder
        ready(cluster, observation, session, report, folder)


def drain_leaving(
    cluster: Cluster, observation: Observation, session: SshSession, report: Reporter
) -> None:
    """Have pods leave the nodes that the sites are about to remove, and etcd forget its members.

    Raises:
        LifecycleError: a control plane would go that etcd keeps as a member.
    """
    if isinstance(cluster.spec.scheduler, KubernetesScheduler):
        from .leave import drain
        from .members import leave_etcd

        for said in drain(observation, session):
            report(Finding(diagnostic=said))
        if managed_by(cluster.spec) is not None:
            return  # etcd is the cloud's
        for name in leave_etcd(cluster.spec, observation, session):
            report(StageProgress(name="nodes", done=0, total=0, detail=f"{name} left etcd"))


def settle(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    report: Reporter,
    *,
    prune: bool = True,
) -> tuple[Diagnostic, ...]:
    """Make objects and labels what was compiled; return what went wrong and what was kept."""
    if not isinstance(cluster.spec.scheduler, KubernetesScheduler):
        return ()
    from .followers import bring_followers
    from .settle import settle_objects

    late = bring_followers(observation, session, report)
    return (*late, *settle_objects(cluster, observation, session, report, prune=prune))
