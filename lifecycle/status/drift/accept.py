"""`gcluster drift --accept`: records entries and accounts that no role wrote as accepted.

They exist for a reason unknown to gcluster: a site's own sudo rules, another tool's account. From
then on their change is drift, and not their existence.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection

from ....inventory.hosts import Host
from ....schemas.derived.hostlist import HostlistError, expand
from ...cluster.cluster import Cluster
from ...cluster.hosts import existing_hosts
from ...cluster.outcome import Exit, LifecycleError, failure
from ...nodes.converge.role_files import Traces
from ...nodes.converge.seals import DIRECTORY, read_seals_command
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from ...state import acquire
from ...up.run import Run
from .nodes import SEALED_ONCE
from .observe import find_drift
from .values import Drift

_LIMIT_S = 30


def accept_drift(cluster: Cluster, words: Collection[str]) -> tuple[Drift, ...]:
    """Seal entries and accounts in their current form; return what was accepted.

    Args:
        cluster: as it was last applied.
        words: "NODE:NAME" as `drift` names them, where NODE may be a host range.

    Raises:
        LifecycleError: GC908, nothing of that name has changed there; or it failed on a node.
    """
    found = find_drift(cluster).drifts
    chosen = tuple(dict.fromkeys(drift for word in words for drift in _chosen(word, found)))
    by_host: dict[str, list[Drift]] = defaultdict(list)
    for drift in chosen:
        by_host[drift.where].append(drift)
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(cluster.spec.sites), reason="drift --accept") as lock,
        Run(cluster, "drift --accept", lock) as run,
    ):
        hosts = {host.name: host for host in existing_hosts(cluster).hosts}
        for name, drifts in by_host.items():
            _seal(session, hosts[name], drifts)
        run.finish(Exit.OK)
    return chosen


def _chosen(word: str, drifts: Collection[Drift]) -> list[Drift]:
    where, _, name = word.partition(":")
    try:
        nodes = set(expand(where))
    except HostlistError as error:
        raise failure("GC908", str(error), exit_code=Exit.USAGE) from error
    found = [d for d in drifts if d.kind in SEALED_ONCE and d.where in nodes and d.name == name]
    if not found:
        raise _nothing(word, drifts)
    return found


def _nothing(word: str, drifts: Collection[Drift]) -> LifecycleError:
    there = [f"{d.where}:{d.name}" for d in drifts if d.kind in SEALED_ONCE]
    return failure(
        "GC908",
        f'"{word}" is no entry or account that was changed there',
        hint=f"there are: {', '.join(there)}" if there else "none was; what steps left is --fix's",
        exit_code=Exit.USAGE,
    )


def _seal(session: SshSession, host: Host, drifts: Collection[Drift]) -> None:
    lines = [reseal_command(drift.kind, drift.name) for drift in drifts]
    script = f"PATH=$PATH:/usr/sbin:/sbin; umask 077; cd {DIRECTORY} || exit 1\n" + "\n".join(lines)
    answer = session.run(host, as_root(host, ["sh", "-es"]), stdin=script, timeout_s=_LIMIT_S)
    if isinstance(answer, Unreachable):
        raise failure("GC921", f"{host.name} can't be reached: {answer.reason}")
    if answer.returncode != 0:
        raise failure("GC921", f"{host.name} did not note it: {answer.stderr.strip()}")


def reseal_command(kind: str, name: str) -> str:
    """Return the shell line that updates each seal of such entries to their current form."""
    path = name.replace("\\040", " ")
    requested = Traces(watched=(shlex.quote(path),)) if kind == "entry" else Traces(accounts=True)
    # Of variables awk would read escapes, such as that of a space.
    awk = f"kind={kind} name={shlex.quote(name)} awk"
    same = 'ENVIRON["kind"] && $NF == ENVIRON["name"]'
    return (
        f"grep -l '^{kind} ' * | while read -r seal; do "
        f"{awk} '!($1 == {same})' $seal > $seal.new; "
        f"{{ {read_seals_command(requested)}; }} | {awk} '$1 == {same}' >> $seal.new; "
        "mv $seal.new $seal; done"
    )
