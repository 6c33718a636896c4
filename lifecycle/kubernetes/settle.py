"""Makes a cluster's objects and its nodes' labels what was compiled; safe to repeat and to kill.

Objects are applied by the API server (server-side apply, field manager `gcluster`), in the order of
the compiled tree. What carries the cluster's label and is compiled no more is pruned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

import msgspec

from ...inventory.compile.kubernetes_objects.objects import FIELD_MANAGER, SYSTEM_NAMESPACE, Object
from ...inventory.hosts import elastic_nodes
from ...schemas.derived.control_planes import managed_by
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..cluster.cluster import Cluster
from ..cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ..nodes.ssh import SshSession, Unreachable
from ..nodes.ssh.arguments import as_root
from ..operations.rolling.roll import Clock
from ..scheduler.accounting.plan import AccountingPlan
from ..status.observe import Observation
from ..status.slurm import last_error_line
from .addons import changes as together
from .addons.changes import AddonChanges
from .addons.notes import remaining_namespaces
from .addons.ownership import delete, read_api_resources
from .addons.step import AddonsStep
from .difference import Difference, Marks, difference
from .kubectl import ApiRefused, ApiSilent, Kubectl
from .managed.login import kubectl_of
from .objects import DesiredObjects, desired_objects
from .observe import NOTHING, read_live
from .release.logins import SecretChanges, login_changes, settle_logins
from .release.stack_secrets import settle_stack_secrets, stack_secret_changes
from .workloads import occupied

JOINED = "kubernetes.join"
"""The step whose stamp shows that a host's API server was set up."""
_ANSWERS_WITHIN_S = 90
"""An API server is back within this after its host was started again."""
_ASK_AGAIN_S = 2
_LIMIT_S = 300
_ROLLOUT_S = 60


def objects_plan(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    emit: Callable[[Diagnostic], None] = lambda _: None,
) -> AccountingPlan | None:
    """Return what `up` would change in the cluster's API; None where no API is reachable.

    Where no control plane was ever created, all of it is new. `emit` receives what `up` would
    refuse.
    """
    if not _is_real(cluster, observation):
        return None
    found = desired_objects(cluster.spec, observation.desired, cluster.catalog)
    if observation.silent:
        return AccountingPlan(problem=observation.silent)
    planes = [host.name for host in observation.desired.with_role("controller")]
    if any(name in observation.unreachable for name in planes):
        return None  # the plan names them, and that what would change there is unknown
    if not _is_up(cluster, observation):
        differs = difference(found, NOTHING, _hosts(cluster.spec, observation))
        addons, logins, stack = together.fresh(found.facts), SecretChanges(), SecretChanges()
    else:
        try:
            kubectl = kubectl_of(session, observation.existing)
            addons, more = together.observe_addons(kubectl, found.facts)
            differs = _compare(kubectl, found, observation, more)
            logins = _logins(kubectl, cluster, found, differs)
            stack = stack_secret_changes(kubectl, cluster.vault, found.facts.spec)
        except (ApiSilent, ApiRefused) as error:
            return AccountingPlan(problem=str(error))
    for diagnostic in together.without_a_program(addons):
        emit(diagnostic)
    plan = differs.plan()
    return msgspec.structs.replace(
        plan,
        changes=(*addons.lines(), *plan.changes, *logins.lines, *stack.lines),
        exact=(*plan.exact, *logins.exact, *stack.exact),
    )


def _is_up(cluster: Cluster, observation: Observation) -> bool:
    """Whether a control plane was ever made."""
    if managed_by(cluster.spec) is not None:
        return observation.existing.is_managed
    planes = [host.name for host in observation.desired.with_role("controller")]
    return any(JOINED in observation.stamps.get(name, {}) for name in planes)


def settle_objects(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    report: Reporter,
    *,
    prune: bool = True,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Diagnostic, ...]:
    """Apply, label, prune; return what went wrong and what was kept. () where Slurm schedules.

    Without `prune` only what is compiled is put back: nothing is removed.
    """
    if not _is_real(cluster, observation):
        return ()
    began = clock()
    report(StageStarted(name="objects"))
    kubectl = kubectl_of(session, observation.desired)
    found = desired_objects(cluster.spec, observation.desired, cluster.catalog)
    go_on = f"gcluster up {cluster.spec_path}"
    try:
        differs, addons = _awaited(kubectl, found, observation, clock, sleep)
        if not prune:
            differs = msgspec.structs.replace(differs, pruned=(), forgotten=(), kept={})
            addons = addons.only_put_back()
        step = AddonsStep(kubectl, found.facts, found.objects, report, clock=Clock(clock, sleep))
        nodes = _awaited_nodes(found, observation, addons)
        late = _settle(kubectl, found, differs, addons, step, cluster=cluster, nodes=nodes)
        logins = _logins(kubectl, cluster, found, differs)
        settle_logins(kubectl, cluster.vault, found.facts, logins, prune=prune)
        late += (
            () if any(diagnostic.is_error for diagnostic in late) else _rolled_out(kubectl, found)
        )
    except ApiSilent as silent:
        diagnostic = _error("GC1005", f"no API server answers: {silent}", go_on)
        report(StageFinished(name="objects", ok=False, summary="", seconds=clock() - began))
        return (diagnostic,)
    except ApiRefused as refused:
        diagnostic = _error("GC1006", f"Kubernetes refused: {refused}", go_on, refused.words)
        report(StageFinished(name="objects", ok=False, summary="", seconds=clock() - began))
        return (diagnostic,)
    summary = f"{len(found.objects)} applied, {len(differs.pruned)} removed"
    if addons.pending or addons.gone:
        summary += f"; add-ons: {len(addons.pending)} applied, {len(addons.gone)} removed"
    ok = not any(diagnostic.is_error for diagnostic in late)
    report(StageFinished(name="objects", ok=ok, summary=summary, seconds=clock() - began))
    return (*late, *remaining_namespaces(differs.kept))


def _logins(
    kubectl: Kubectl, cluster: Cluster, found: DesiredObjects, differs: Difference
) -> SecretChanges:
    """Compare the registry logins; nothing is queried where none is wanted or was applied."""
    named = found.facts.scheduler.registries
    if not named and all(key.kind != "ServiceAccount" for key in differs.other):
        return SecretChanges()
    return login_changes(kubectl, cluster.vault, found.facts)


def _is_real(cluster: Cluster, observation: Observation) -> bool:
    """Whether Kubernetes is the scheduler, and of machines that run something."""
    is_kubernetes = isinstance(cluster.spec.scheduler, KubernetesScheduler)
    return is_kubernetes and observation.desired.has_scheduler


def _hosts(cluster: ClusterSpec, observation: Observation) -> frozenset[str]:
    """Return the nodes that the spec has or may have: those that come and go are the agent's."""
    coming = (name for names in elastic_nodes(cluster).values() for name in names)
    return frozenset({*(host.name for host in observation.desired.hosts), *coming})


def _compare(
    kubectl: Kubectl, found: DesiredObjects, observation: Observation, more: Collection[str]
) -> Difference:
    live = read_live(kubectl, found.facts.spec.name, found.facts.release, more)
    hosts = _hosts(found.facts.spec, observation)
    if observation.desired.is_managed:
        hosts |= live.nodes.keys()  # a cloud removes the nodes of its machines itself
    differs = difference(found, live, hosts)
    return differs.keeping(occupied(kubectl, differs.emptied)) if differs.emptied else differs


def _awaited(
    kubectl: Kubectl,
    found: DesiredObjects,
    observation: Observation,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[Difference, AddonChanges]:
    """Compare as soon as an API server answers."""
    until = clock() + _ANSWERS_WITHIN_S
    while True:
        try:
            addons, more = together.observe_addons(kubectl, found.facts, thorough=True)
            return _compare(kubectl, found, observation, more), addons
        except ApiSilent:
            if clock() >= until:
                raise
            sleep(_ASK_AGAIN_S)


def _settle(
    kubectl: Kubectl,
    found: DesiredObjects,
    differs: Difference,
    addons: AddonChanges,
    step: AddonsStep,
    *,
    cluster: Cluster,
    nodes: Collection[str],
) -> tuple[Diagnostic, ...]:
    """Apply everything, which also reverts manual changes; return the messages.

    `nodes` become ready with what is applied. Add-ons define the kinds of the last objects. Where
    one fails, those objects wait for the next run.
    """
    last = found.last if together.has_addons(found.facts) else frozenset()
    _apply(kubectl, (made for key, made in found.objects.items() if key not in last))
    stack = stack_secret_changes(kubectl, cluster.vault, found.facts.spec)
    settle_stack_secrets(kubectl, cluster.vault, found.facts.spec, stack)
    for alike in _by_labels(differs.marks):
        mark_nodes(kubectl, alike, differs.marks[alike[0]])
    diagnostics = step.bring(addons)
    if nodes and not any(one.is_error for one in diagnostics):
        diagnostics += step.await_nodes(nodes)
    if any(one.is_error for one in diagnostics):
        return diagnostics
    if last:
        those = [made for key, made in found.objects.items() if key in last]
        step.retried(lambda: _apply(kubectl, those))
    _remove(kubectl, differs, wait=None if addons.gone else False)
    return (*diagnostics, *step.remove(addons))


def _awaited_nodes(
    found: DesiredObjects, observation: Observation, addons: AddonChanges
) -> frozenset[str]:
    """Return the nodes that get ready with the pod network that comes: none that are down."""
    if not together.moves_network(addons):
        return frozenset()
    return frozenset(found.nodes) - observation.aside.keys() - observation.unreachable.keys()


def _remove(kubectl: Kubectl, differs: Difference, *, wait: bool | None) -> None:
    """Remove what is no longer compiled, and nodes that the spec dropped.

    `wait` None: custom objects are waited for, since their add-on may be removed too.
    """
    if differs.pruned:
        resources = read_api_resources(kubectl)
        custom = [key for key in differs.pruned if resources.is_custom(key)]
        delete(kubectl, custom, resources, wait=wait)
        delete(kubectl, [key for key in differs.pruned if key not in custom], resources, wait=False)
    if differs.forgotten:
        kubectl.text("delete", "node", "--ignore-not-found", "--wait=false", *differs.forgotten)


def _rolled_out(kubectl: Kubectl, found: DesiredObjects) -> tuple[Diagnostic, ...]:
    """Wait until gcluster's own pods are ready on every node; one that is down makes a warning."""
    if not any(key.kind == "DaemonSet" for key in found.objects):
        return ()
    try:
        kubectl.text(
            *("rollout", "status", "daemonset", f"--namespace={SYSTEM_NAMESPACE}"),
            f"--timeout={_ROLLOUT_S}s",
            timeout_s=_LIMIT_S,
        )
    except ApiRefused as refused:
        return (
            Diagnostic(
                code="GC1006",
                severity=Severity.WARNING,
                summary=f"not every node has gcluster's own pods: {refused}",
                detail=refused.words,
                hint=f"kubectl --namespace={SYSTEM_NAMESPACE} get pods, on a control plane",
            ),
        )
    return ()


def _apply(kubectl: Kubectl, objects: Iterable[Object]) -> None:
    """Apply objects in their order, in one call."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl.text(
        *("apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}"),
        *("--validate=strict", "--filename=-"),
        stdin=msgspec.json.encode(listed).decode(),
        timeout_s=_LIMIT_S,
    )


def _by_labels(marks: dict[str, Marks]) -> list[list[str]]:
    """Return the nodes that get the same labels and taints, together."""
    groups: list[list[str]] = []
    for name, own in marks.items():
        group = next((g for g in groups if marks[g[0]] == own), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return groups


def mark_nodes(kubectl: Kubectl, nodes: list[str], marks: Marks) -> None:
    """Label and taint nodes, which get the same; raises ApiRefused or ApiSilent."""
    if marks.labels:
        words = (f"{k}-" if value is None else f"{k}={value}" for k, value in marks.labels.items())
        kubectl.text("label", "node", "--overwrite", *nodes, *words)
    if marks.taints:
        kubectl.text("taint", "node", "--overwrite", *nodes, *marks.taints)


def _error(code: str, summary: str, go_on: str, detail: str = "") -> Diagnostic:
    return Diagnostic(
        code=code,
        severity=Severity.ERROR,
        summary=summary,
        detail=detail,
        hint=f"fix it, then resume with: {go_on}",
    )


UPGRADED = "/etc/kubernetes/gcluster/upgraded-to"
"""Is there on control planes that have come to another version since they were made."""
PROGRAM = "/usr/local/libexec/gcluster/kubernetes-upgrade.py"
_FOLLOW_S = 600
"""kubeadm calls the API server a few times, and two rollouts are waited for two minutes each."""


def bring_followers(
    observation: Observation, session: SshSession, report: Reporter
) -> tuple[Diagnostic, ...]:
    """Have them follow where a control plane was upgraded and no node is behind it any more.

    Returns:
        What went wrong: an error for each control plane that could not (GC1006).
    """
    late = []
    for host in observation.desired.with_role("controller"):
        if host.connection != "ssh" or JOINED not in observation.stamps.get(host.name, {}):
            continue
        line = f"[ ! -e {UPGRADED} ] || exec {PROGRAM} --addons"
        answer = session.run(host, as_root(host, ["sh", "-c", line]), timeout_s=_FOLLOW_S)
        if isinstance(answer, Unreachable):
            why = answer.reason
        elif answer.returncode != 0:
            why = last_error_line(answer)
        else:
            if text := answer.stdout.strip():
                report(StageProgress(name="converge", done=0, total=0, detail=text))
            continue
        late.append(
            Diagnostic(
                code="GC1006",
                severity=Severity.ERROR,
                summary=f"kube-proxy and CoreDNS stay at the version before: {host.name}: {why}",
                hint="run the same command again: it goes on",
            )
        )
    return tuple(late)
