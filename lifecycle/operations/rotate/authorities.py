"""`gcluster rotate certificate-authority`: other authorities for Kubernetes, etcd and front proxy.

In three rounds over all nodes, in the order of kubernetes.io's "Manual Rotation of CA Certificates"
(read 2026-11): everyone trusts the new authorities too; then all certificates are made again by
them; then the old ones are trusted no more. Control planes take turns, one after the other, and
nodes too, a tenth at once: pods go on while a kubelet restarts, but their node is not ready for
some seconds. So no one meets a certificate that they can't verify.

What reads the API in a pod reads whom it trusts once, at its start (client-go 1.35, transport:
certificates and tokens are reloaded, this is not). Pods of the cluster's own services are made
again after the first round; the second one waits for those of accounts, unless it is not to.

The hosts' files say where a rotation ended that was killed; the next one goes on from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.structure.decoding import decode_json
from ...cluster.outcome import Exit
from ...cluster.progress import Reporter, StageProgress
from ...kubernetes.managed.login import kubectl_of
from ...nodes.ssh import Answer, SshSession
from ...nodes.ssh.arguments import AS_ROOT
from ...up.run import Run
from .control_planes import answered, control_planes
from .kept import Rotated, compiled_for
from .pods_trust import pods_of_before

LIBEXEC = f"{AS_ROOT} /usr/local/libexec/gcluster"
TOOL = f"{LIBEXEC}/kubernetes-authorities.py"
NODE_TOOL = f"{LIBEXEC}/kubernetes-node-authority.py"
TRUSTED = f"{AS_ROOT} cat /etc/kubernetes/pki/ca.crt"
_THERE = f"test -x {NODE_TOOL.removeprefix(AS_ROOT).strip()}"
_SHARE = 10
"""A tenth of the nodes at once."""
_LIMIT_S = 900
"""A control plane's programs restart, and its kubelet."""
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", re.DOTALL)


class Authorities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The authorities of one control plane, by their fingerprints."""

    signs: str
    next: str
    """That are to sign; "" where no rotation is under way."""


def rotate_authorities(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter, *, now: bool = False
) -> Rotated:
    """Exchange the certificate authorities.

    Args:
        run: of the command.
        hosts: the cluster's.
        session: SSH to them.
        report: gets each host that is done.
        now: don't wait for pods that started before the new authorities were trusted.

    Raises:
        LifecycleError: the cluster has no control planes of its own (GC908); a node can't be
            reached, or doesn't take them (GC999): run it again, which goes on.
    """
    spec = run.cluster.spec
    planes = control_planes(spec, hosts)
    rounds = _Rounds(planes, _nodes(run, hosts), session, report)
    rounds.require()
    if not rounds.signs():
        rounds.trust()
        waits_for = pods_of_before(kubectl_of(session, hosts), rounds.newest(), spec, report)
        if waits_for and not now:
            return Rotated(
                cluster=spec.name, changed=(), waits_for=waits_for, exit_code=Exit.PENDING
            )
        rounds.use()
    rounds.certify()
    rounds.drop()
    return Rotated(cluster=spec.name, changed=rounds.names, exit_code=Exit.OK)


def _nodes(run: Run, hosts: ClusterInventory) -> list[Host]:
    """Return the nodes, control planes among them."""
    groups = compiled_for(run.cluster, hosts).groups
    names = {
        name
        for group in groups
        for step in group.steps
        if step.role == "kubernetes"
        for name in group.hosts
    }
    return [host for host in hosts.hosts if host.name in names and host.connection == "ssh"]


class _Rounds:
    """The rounds over the hosts. Each may be killed, and done again."""

    def __init__(
        self, planes: Sequence[Host], nodes: Sequence[Host], session: SshSession, report: Reporter
    ) -> None:
        mine = {plane.name for plane in planes}
        self._planes = planes
        self._workers = [node for node in nodes if node.name not in mine]
        self._session, self._report = session, report
        self._following = ""
        """The next authorities, as a control plane printed them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return all hosts."""
        return tuple(host.name for host in (*self._planes, *self._workers))

    def require(self) -> None:
        """Require that every node answers, and has the programs."""
        everyone = [*self._planes, *self._workers]
        answers = self._session.run_many(everyone, _THERE)
        for host in everyone:
            _answered(host, answers[host.name])

    def signs(self) -> bool:
        """Return whether all control planes sign by the next authorities; make those if need be."""
        states = [decode_json(self._on(plane).encode(), Authorities) for plane in self._planes]
        under_way = [p for p, state in zip(self._planes, states, strict=True) if state.next]
        self._following = self._on((under_way or self._planes)[0], "--make")
        following = {state.next for state in states} - {""}
        return bool(following) and {state.signs for state in states} == following

    def trust(self) -> None:
        """Have everyone trust the next authorities too."""
        self._in_turns("--trust", "trusts the new authorities too", self._following)
        self._give(self._workers, self._bundle(), "trusts the new authorities too")

    def newest(self) -> str:
        """Return the certificate of the next authority of the cluster."""
        following: dict[str, list[str]] = msgspec.json.decode(self._following)
        return following["ca"][0]

    def use(self) -> None:
        """Have control planes sign by the next authorities, and make their certificates again."""
        self._in_turns("--use", "signs by the new authorities")

    def certify(self) -> None:
        """Have kubelets request certificates by the next authorities."""
        everyone = [*self._planes, *self._workers]
        self._give(everyone, self._bundle(), "has new certificates", "--certificates")

    def drop(self) -> None:
        """Have everyone trust the next authorities alone; control planes come last."""
        first = _CERTIFICATE.findall(self._bundle())[0]
        self._give(self._workers, first, "trusts the new authorities alone")
        self._in_turns("--drop", "trusts the new authorities alone")

    def _bundle(self) -> str:
        plane = self._planes[0]
        return _answered(plane, self._session.run(plane, TRUSTED))

    def _on(self, plane: Host, option: str = "", given: str | None = None) -> str:
        line = f"{TOOL} {option}".strip()
        return _answered(plane, self._session.run(plane, line, stdin=given, timeout_s=_LIMIT_S))

    def _in_turns(self, option: str, what: str, given: str | None = None) -> None:
        for plane in self._planes:
            self._on(plane, option, given)
            self._done(plane, what)

    def _give(self, hosts: Sequence[Host], bundle: str, what: str, option: str = "") -> None:
        line = f"{NODE_TOOL} {option}".strip()
        at_once = max(1, len(hosts) // _SHARE)
        for first in range(0, len(hosts), at_once):
            some = hosts[first : first + at_once]
            answers = self._session.feed_many(some, line, bundle, timeout_s=_LIMIT_S)
            for host in some:
                _answered(host, answers[host.name])
                self._done(host, what)

    def _done(self, host: Host, what: str) -> None:
        detail = f"{host.name} {what}"
        self._report(StageProgress(name="rotate", done=0, total=0, detail=detail))


_answered: Callable[[Host, Answer], str] = partial(
    answered,
    refused="doesn't take other certificate authorities",
    detail="all that was trusted before is trusted still",
    again="gcluster rotate certificate-authority",
)
