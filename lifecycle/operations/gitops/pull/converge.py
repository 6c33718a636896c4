"""Convergence of a large cluster: controllers and first contacts by push, all else by the nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from .....inventory.compile import CompiledCluster
from .....inventory.hosts import ClusterInventory, Host
from ....cluster import places
from ....cluster.cluster import Cluster
from ....cluster.progress import Reporter, StageFinished, StageStarted
from ....nodes.converge.pending import Pending, PendingStep
from ....nodes.converge.run import ConvergeResult, Rolling, converge
from ....nodes.ssh import SshSession
from ...rolling.change import has_joined
from .bundle import KEY_SECRET, is_pushed, pool_bundles, runtime
from .follow import follow
from .mirror import MirrorFolder
from .reports import read_reports

SERIAL_KEY = "converge/serial"
"""In the state: the number of what was last published. A node takes no smaller one again."""

_FIRST_CONTACT = frozenset({"base", "package_sources", "package_mirror"})
"""Roles that a node needs before it can converge itself, in addition to those with a secret."""


def pushed_and_pulled(
    pending: Pending, inventory: ClusterInventory, stamps: Mapping[str, Mapping[str, str]]
) -> tuple[Pending, frozenset[str]]:
    """Return what is pushed over SSH, and the nodes that have further steps to run themselves.

    Controllers and logins are pushed to. A compute node that serves jobs gets only what a bundle
    can't bring: steps with a secret, and the rest of a role whose step with a secret it never had,
    which depends on the rest. One that has never joined also gets what it needs before it can
    converge itself.
    """
    compute = {host.name for host in inventory.hosts if host.role == "compute"}
    secret: dict[str, set[str]] = {}
    for item in pending.steps:
        if item.step.secrets:
            secret.setdefault(item.step.role, set()).add(item.step.key)
    first_contact = secret.keys() | _FIRST_CONTACT

    def is_push(host: str, item: PendingStep) -> bool:
        if host not in compute or is_pushed(item.step):
            return True
        if item.step.phase == "verify":
            return False
        has, role = stamps.get(host, {}), item.step.role
        is_new = not secret.get(role, set()) <= has.keys()
        return is_new or (not has_joined(has) and role in first_contact)

    pushed, pulled = [], set()
    for item in pending.steps:
        hosts = {h: why for h, why in item.hosts.items() if is_push(h, item)}
        pulled |= {h for h in item.hosts if h not in hosts and h in compute}
        if hosts:
            pushed.append(msgspec.structs.replace(item, hosts=hosts))
    return msgspec.structs.replace(pending, steps=tuple(pushed)), frozenset(pulled)


class PullWork:
    """One convergence in which nodes do most of the work."""

    def __init__(
        self,
        cluster: Cluster,
        compiled: CompiledCluster,
        secret_versions: Mapping[str, str],
        session: SshSession,
        report: Reporter,
    ) -> None:
        """Hold the parts; nothing is done yet."""
        self._cluster = cluster
        self._compiled = compiled
        self._secret_versions = secret_versions
        self._session = session
        self._report = report

    def converge(  # noqa: PLR0917  # as converge.run.converge, which it replaces
        self,
        pending: Pending,
        inventory: ClusterInventory,
        stamps: Mapping[str, Mapping[str, str]],
        secret_files: Mapping[str, Path],
        run_dir: Path,
        rolling: Callable[[Pending], Rolling | None],
    ) -> ConvergeResult:
        """Push what must be pushed, publish, and follow the nodes.

        Raises:
            LifecycleError: nothing could be published.
        """
        pending = pending.for_hosts(frozenset(host.name for host in inventory.hosts))
        push, pulled = pushed_and_pulled(pending, inventory, stamps)
        result = converge(
            push,
            inventory,
            self._session,
            secret_files=secret_files,
            run_dir=run_dir,
            report=self._report,
            rolling=rolling(push),
        )
        controllers = inventory.with_role("controller")
        lost = {host.name for host in controllers} & result.unchanged
        nodes = {
            h.name: h for h in inventory.hosts if h.name in pulled - result.unchanged and not lost
        }
        if not nodes:
            waiting = sorted(pulled - result.unchanged | set(result.waiting))
            return msgspec.structs.replace(
                result, waiting=tuple(waiting) if lost else result.waiting
            )
        return self._follow(result, nodes, controllers[0])

    def _follow(
        self, pushed: ConvergeResult, nodes: Mapping[str, Host], controller: Host
    ) -> ConvergeResult:
        began = time.monotonic()
        self._report(StageStarted(name="converge", total=len(nodes)))
        serial, published = self._publish(controller)
        ended = follow(
            nodes,
            self._cluster.spec,
            serial,
            published,
            lambda: read_reports(self._session, controller),
            self._report,
        )
        good = [name for name in nodes if name not in ended.failures and name not in ended.held]
        summary = f"{len(good)}/{len(nodes)} nodes converged by themselves"
        self._report(
            StageFinished(
                name="converge",
                ok=not ended.failures,
                summary=summary,
                seconds=time.monotonic() - began,
            )
        )
        failures = [*pushed.failures, *(ended.failures[name] for name in sorted(ended.failures))]
        return msgspec.structs.replace(
            pushed, failures=tuple(failures), held={**pushed.held, **ended.held}
        )

    def _publish(self, controller: Host) -> tuple[int, int]:
        """Publish under the next number; return it and when."""
        cluster = self._cluster
        pools = [name for name, pool in cluster.spec.pools.items() if pool.role == "compute"]
        bundles = pool_bundles(self._compiled, pools, self._secret_versions)
        serial = int(cluster.store.get(SERIAL_KEY) or b"0") + 1
        cluster.store.put(SERIAL_KEY, str(serial).encode())
        ansible = runtime(places.private_directory(places.cache_home()))
        mirror = MirrorFolder(self._session, controller)
        with cluster.vault.materialise([KEY_SECRET]) as files:
            when = mirror.publish(cluster.spec, bundles, ansible, serial, files[KEY_SECRET])
        return serial, when


def withdraw(cluster: Cluster, inventory: ClusterInventory, session: SshSession) -> None:
    """Have nodes that once pulled leave themselves alone, before anything is pushed to them.

    Raises:
        LifecycleError: the controller doesn't do it; pushing would then be undone by the nodes.
    """
    controllers = inventory.with_role("controller")
    if cluster.store.get(SERIAL_KEY) and controllers:
        MirrorFolder(session, controllers[0]).withdraw()
