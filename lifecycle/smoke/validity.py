"""What the last certificate still proves: it ends with a member that changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ...inventory.hosts import ClusterInventory
from ...schemas.derived.hostlist import expand, fold
from ..kubernetes import kubectl
from ..kubernetes.managed.login import kubectl_of
from ..kubernetes.managed.nodes import read_nodes
from ..nodes.ssh import SshSession, Unreachable

Starts: TypeAlias = Mapping[str, str]
"""Node -> id of its boot; unreachable nodes are left out."""

# A container has its host's boot id, so the start of its first process counts too.
READ = "echo $(cat /proc/sys/kernel/random/boot_id):$(awk '{print $22}' /proc/1/stat)"
"""The shell line that prints it: the kernel's boot id, and clock ticks from there to process 1."""
_NAMED = 3
"""Most deviations that are listed one by one."""


def read_starts(inventory: ClusterInventory, session: SshSession) -> dict[str, str]:
    """Query the compute nodes' boot ids, all at once."""
    compute = inventory.with_role("compute")
    requested = [host for host in compute if host.connection == "ssh" and host.address]
    answers = session.run_many(requested, READ, timeout_s=20)
    found = {
        name: answer.stdout.strip()
        for name, answer in answers.items()
        if not isinstance(answer, Unreachable) and answer.stdout.strip()
    }
    return found | _starts_by_api(inventory, session)


def _starts_by_api(inventory: ClusterInventory, session: SshSession) -> dict[str, str]:
    wanted = {host.name for host in inventory.hosts if host.connection == "api"}
    if not wanted:
        return {}
    try:
        nodes = read_nodes(kubectl_of(session, inventory))
    except (kubectl.ApiSilent, kubectl.ApiRefused):
        return {}
    return {node.name: node.boot_id for node in nodes if node.name in wanted and node.boot_id}


def members(tested: Iterable[str], starts: Starts) -> dict[str, str]:
    """Return a certificate's record of its members: node -> its boot id, "" where unknown."""
    return {name: starts.get(name, "") for ranges in tested for name in expand(ranges)}


def drift_reasons(certificate: Mapping[str, Any], seen: Mapping[str, Sequence[str]]) -> list[str]:
    """Return which members differ from when they were tested, and how; []: none does.

    Args:
        certificate: as stored; it has how its members deviated then.
        seen: node -> how it deviates now from what its steps left, of the nodes that responded.
    """
    kept, then = certificate.get("members"), certificate.get("deviations")
    tested = then if isinstance(then, Mapping) else {}
    alike: dict[str, list[str]] = {}
    for node in kept if isinstance(kept, Mapping) else ():
        before, now = set(tested.get(node, ())), set(seen.get(node, tested.get(node, ())))
        for what in (*sorted(now - before), *(f"no longer {one}" for one in sorted(before - now))):
            alike.setdefault(what, []).append(node)
    found = [f"{fold(nodes)}: drifted since ({what})" for what, nodes in alike.items()]
    more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return [*found[:_NAMED], *more]


def stale_reasons(
    certificate: Mapping[str, Any], there: Iterable[str], starts: Starts, unsettled: Iterable[str]
) -> tuple[str, ...]:
    """Return why a certificate is no longer valid for the cluster; (): it is.

    Args:
        certificate: as stored; one of an older version names no members and can't be compared.
        there: the compute nodes that are wanted and exist now.
        starts: their boot ids, of those that responded.
        unsettled: nodes that differ from the spec.
    """
    kept = certificate.get("members")
    if not isinstance(kept, Mapping):
        return ("it doesn't say which machines it is of",)
    now, without = set(there), str(certificate.get("left_out") or "")
    left_out = expand(without) if without else []
    restarted = {n for n in now & kept.keys() if kept[n] and starts.get(n, kept[n]) != kept[n]}
    found = {
        "started again or replaced since": restarted,
        "not part of it any more": kept.keys() - now,
        "new since": now - kept.keys() - set(left_out),
        "not as the spec says": set(unsettled) & kept.keys(),
    }
    return tuple(f"{fold(names)}: {why}" for why, names in found.items() if names)
