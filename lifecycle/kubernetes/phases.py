"""What Kubernetes adds to `up`; `drift --fix` and `repair` use the same steps."""

from __future__ import annotations

from ...schemas.derived.control_planes import managed_by
from ...schemas.diagnostics import Diagnostic
from ..cluster.cluster import Cluster
from ..cluster.open_site import OpenSite
from ..cluster.outcome import Exit, LifecycleError
from ..cluster.progress import Finding, Reporter, StageProgress
from ..nodes.ssh import SshSession
from ..operations.etcd_state import bring_etcd
from ..secrets.makers import keep_passwords
from ..status.observe import Observation
from ..up.phase import Phase, SchedulerPhases, UpState
from ..up.prepare import NOTHING_TO_RESUME
from .addons.ready import ready
from .managed.joining import await_nodes, repairs_control_plane
from .managed.nodes import silence
from .members import drain, leave_etcd
from .release.source import ready_kubernetes
from .release.stack_secrets import keep_stack_secrets
from .settle import bring_followers, settle_objects


def refuse_silent(cluster: Cluster, sites: tuple[OpenSite, ...], observation: Observation) -> None:
    """Refuse to begin where a cloud's control plane exists and doesn't respond.

    Not where this `up` creates or changes the control plane itself: that may make it respond.

    Raises:
        LifecycleError: GC1043 (exit code REFUSED).
        ProviderError: the cloud can't be queried whether it still exists.
    """
    if observation.silent and not repairs_control_plane(cluster.spec, sites, observation):
        raise LifecycleError(silence(cluster.spec, observation.silent), exit_code=Exit.REFUSED)


def drain_leaving(
    cluster: Cluster, observation: Observation, session: SshSession, report: Reporter
) -> None:
    """Evict pods from nodes that the sites will remove, and remove their etcd members.

    Raises:
        LifecycleError: a control plane would go that etcd keeps as a member.
    """
    for diagnostic in drain(observation, session):
        report(Finding(diagnostic=diagnostic))
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
    late = bring_followers(observation, session, report)
    return (*late, *settle_objects(cluster, observation, session, report, prune=prune))


def _is_managed(state: UpState) -> bool:
    return managed_by(state.cluster.spec) is not None


def _check_control_plane(state: UpState) -> None:
    refuse_silent(state.cluster, state.sites, state.before)


def _has_control_plane(state: UpState) -> bool:
    return state.before.desired.has_scheduler


def _fetch_addons(state: UpState) -> None:
    folder = None if state.bundle is None else state.bundle.folder
    ready(state.cluster, state.before, state.session, state.report, folder)


def _takes_own_build(state: UpState) -> bool:
    """Return whether local nodes use our own build: what is in a bundle was checked with it."""
    at = state.cluster.kubernetes
    real = any(host.connection == "ssh" for host in state.before.desired.hosts)
    return at is not None and bool(at.root) and real and not state.plan.is_empty


def _build_kubernetes(state: UpState) -> None:
    state.cluster.kubernetes = ready_kubernetes(state.report)


def _keep_passwords(state: UpState) -> None:
    keep_passwords(state.cluster.vault, state.cluster.spec)
    keep_stack_secrets(state.cluster.vault, state.cluster.spec)


def _drain_leaving(state: UpState) -> None:
    drain_leaving(state.cluster, state.before, state.session, state.report)


def _await_nodes(state: UpState) -> None:
    state.diagnostics += await_nodes(
        state.cluster.spec,
        state.sites,
        state.before.desired.hosts,
        state.cluster.workdir,
        state.report,
    )


def _restore_etcd(state: UpState) -> None:
    bring_etcd(state.cluster, state.after.existing, state.session, state.report)


def _settle(state: UpState) -> None:
    state.settled(settle(state.cluster, state.after, state.session, state.report))


KUBERNETES_PHASES = SchedulerPhases(
    check=(Phase("check control plane", _check_control_plane, NOTHING_TO_RESUME),),
    prepare=(
        Phase(
            "fetch add-ons",
            _fetch_addons,
            "Charts are kept on this machine by their digests.",
            _has_control_plane,
        ),
        Phase(
            "build Kubernetes",
            _build_kubernetes,
            "A build is kept on this machine by the hash of its sources.",
            _takes_own_build,
        ),
    ),
    before_sites=(
        Phase(
            "keep passwords of registries and receivers",
            _keep_passwords,
            "The state keeps them, by versions.",
            _has_control_plane,
        ),
        Phase("drain leaving nodes", _drain_leaving, "A node that was drained is drained again."),
    ),
    after_sites=(
        Phase("await nodes", _await_nodes, "Nodes that have joined are ready.", _is_managed),
    ),
    before_nodes=(
        Phase(
            "restore etcd",
            _restore_etcd,
            "The state names the backup to begin with until a control plane has it.",
        ),
    ),
    after_nodes=(
        Phase("objects", _settle, "The API keeps what was applied, and what owns each field."),
    ),
)
