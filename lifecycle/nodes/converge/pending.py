"""Which steps must run where: the compiled cluster against the stamps (pure).

A scope limits that to some nodes, or to some of their steps, regardless of their stamps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from ....inventory.compile import CompiledCluster, Group, Step
from ....inventory.compile.roles import must_remove, removal_steps
from ....inventory.compile.steps import PHASES, Stage
from ....inventory.hosts import AFTER_APPLY
from ...cluster.outcome import failure
from .role_files import files_digest, role_digest
from .stamps import CHANGED_HERE, DOUBTED, WORN

NEVER_RAN = "never ran here"
CHANGED = "its inputs changed"
STARTED_AGAIN = "the node was started again since"
RUNS_AGAIN = "it is run again"
NO_LONGER_WANTED = "it is no longer in the spec"


class PendingStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that must run on some hosts of one pool."""

    pool: str
    step: Step
    digest: str
    """The stamp it leaves."""
    hosts: dict[str, str]
    """Host -> why: NEVER_RAN, CHANGED, STARTED_AGAIN, RUNS_AGAIN, NO_LONGER_WANTED, or what was
    changed on it (`CHANGED_HERE`)."""
    environment: dict[str, str] = {}
    """What the step's tasks find in their environment: the hosts' proxy."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """All steps to run, in the order they run."""

    steps: tuple[PendingStep, ...]

    @property
    def total(self) -> int:
        """Number of (host, step) pairs."""
        return sum(len(pending.hosts) for pending in self.steps)

    def by_host(self) -> dict[str, tuple[str, ...]]:
        """Return host -> its steps in the order they run; hosts with none are left out."""
        found: dict[str, list[str]] = {}
        for pending in self.steps:
            for host in pending.hosts:
                found.setdefault(host, []).append(pending.step.key)
        return {host: tuple(keys) for host, keys in found.items()}

    def for_hosts(self, hosts: frozenset[str]) -> Pending:
        """Return what some of the hosts must run."""
        return self.where(lambda host, _: host in hosts)

    def without(self, done: Mapping[str, list[str]]) -> Pending:
        """Return what remains after these steps were done (host -> steps)."""
        return self.where(lambda host, key: key not in done.get(host, ()))

    def where(self, wanted: Callable[[str, str], bool]) -> Pending:
        """Return the pairs of (host, step) that are wanted."""
        kept = (
            msgspec.structs.replace(
                pending,
                hosts={h: why for h, why in pending.hosts.items() if wanted(h, pending.step.key)},
            )
            for pending in self.steps
        )
        return Pending(steps=tuple(pending for pending in kept if pending.hosts))


def pending_steps(
    compiled: CompiledCluster,
    stamps: Mapping[str, Mapping[str, str]],
    secret_versions: Mapping[str, str],
) -> Pending:
    """Compare the stamps that each host must have with those that it has.

    Args:
        compiled: the cluster as it should be.
        stamps: host -> step -> digest; a host without an entry has none.
        secret_versions: secret -> version id; a secret that isn't named has the version "new".

    Returns:
        Steps ordered by stage, then role, then phase, controllers' pools first within a phase:
        a controller is configured before the nodes that fetch their configuration from it. Roles
        that the spec no longer needs are removed first.
    """
    ending = [item for group in compiled.groups for item in _ending(group, stamps)]
    found: list[tuple[tuple[int, ...], PendingStep]] = []
    stages = list(Stage)
    roles = _roles_in_order(compiled)
    for number, group in enumerate(compiled.groups):
        for step, digest in step_digests(group, secret_versions):
            hosts = {}
            for host in group.hosts:
                carried = stamps.get(host, {}).get(step.key)
                if carried != digest:
                    hosts[host] = _reason(carried)
            if hosts:
                order = (
                    stages.index(step.stage),
                    step.order,
                    roles[step.role],
                    PHASES.index(step.phase),
                    number,
                )
                pending = PendingStep(
                    pool=group.name,
                    step=step,
                    digest=digest,
                    hosts=hosts,
                    environment=group.environment,
                )
                found.append((order, pending))
    found.sort(key=lambda item: item[0])
    return Pending(steps=(*ending, *(pending for _, pending in found)))


def refuse_unknown_addresses(pending: Pending) -> None:
    """Check that every address that nodes need is known.

    Raises:
        LifecycleError: GC1181, a cloud has not returned one.
    """
    for one in pending.steps:
        if AFTER_APPLY in msgspec.json.encode(one.step.variables).decode():
            raise failure(
                "GC1181",
                f"{one.step.key} of pool {one.pool} needs an address its cloud has not reported",
                hint="gcluster plan shows what is missing; gcluster up creates it and continues",
            )


def _ending(group: Group, stamps: Mapping[str, Mapping[str, str]]) -> Iterator[PendingStep]:
    """Yield the steps by which hosts of a group get rid of roles."""
    requested = {step.role for step in group.steps}
    for step in removal_steps():
        hosts = [h for h in group.hosts if must_remove(step, requested, stamps.get(h, {}).keys())]
        if hosts:
            digest = step.digest(role_digest(step.role, step.phase), {})
            reasons = dict.fromkeys(hosts, NO_LONGER_WANTED)
            yield PendingStep(pool=group.name, step=step, digest=digest, hosts=reasons)


def _reason(carried: str | None) -> str:
    if carried is None:
        return NEVER_RAN
    if carried.startswith(CHANGED_HERE):
        return carried
    return {WORN: STARTED_AGAIN, DOUBTED: RUNS_AGAIN}.get(carried, CHANGED)


def step_digests(group: Group, secret_versions: Mapping[str, str]) -> tuple[tuple[Step, str], ...]:
    """Return the steps of a group with the stamp each leaves.

    A verify step's stamp covers its role's earlier phases too: what was changed is verified again.
    """
    earlier: dict[str, list[str]] = {}
    result = []
    for step in group.steps:
        versions = {name: secret_versions.get(name, "new") for name in step.secrets.values()}
        digest = step.digest(files_digest(step), versions)
        before = earlier.setdefault(step.role, [])
        if step.phase == "verify":
            digest = hashlib.sha256(" ".join([digest, *before]).encode()).hexdigest()
        before.append(digest)
        result.append((step, digest))
    return tuple(result)


def _roles_in_order(compiled: CompiledCluster) -> dict[str, int]:
    """Return role -> place, such that each comes where every group has it.

    A role that only a later group has comes before those that it comes before there: slurmdbd on
    hosts of its own before the controllers' slurm.
    """
    order: list[str] = []
    for group in compiled.groups:
        roles = list(dict.fromkeys(step.role for step in group.steps))
        for place, role in enumerate(roles):
            if role not in order:
                after = [order.index(r) for r in roles[place + 1 :] if r in order]
                order.insert(min(after, default=len(order)), role)
    return {role: place for place, role in enumerate(order)}


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a convergence is limited to."""

    hosts: frozenset[str] = frozenset()
    """All that is pending on these."""
    steps: Mapping[str, frozenset[str]] = {}
    """Host -> steps that are done there."""
    again: Mapping[str, frozenset[str]] = {}
    """Host -> steps whose stamp is not believed."""

    def of(self, pending: Pending) -> Pending:
        """Return the part of the pending steps that is in it."""
        return pending.where(lambda host, step: host in self.hosts or step in self._named(host))

    def _named(self, host: str) -> Collection[str]:
        return self.steps.get(host, ())


def worn_out(stamps: Mapping[str, Mapping[str, str]], scope: Scope) -> dict[str, dict[str, str]]:
    """Return the stamps without those that the scope ignores.

    A missing stamp stays missing: a stamp shows that a node has joined, outdated or not.
    """
    return {
        host: {
            step: DOUBTED if step in scope.again.get(host, ()) else digest
            for step, digest in carried.items()
        }
        for host, carried in stamps.items()
    }
