"""`gcluster reboot`: nodes restarted in waves, each drained first and given back when it is fit.

By SSH and not by `scontrol reboot nextstate=resume`: Slurm would give a node back as soon as its
slurmd registers, before anybody has checked whether all GPUs and links came back with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.spec import ClusterSpec
from ..cluster.cluster import Cluster
from ..cluster.hosts import existing_hosts
from ..cluster.open_site import OpenSite
from ..cluster.outcome import Exit, failure
from ..cluster.progress import Reporter, StageProgress
from ..cluster.sites import open_sites
from ..nodes.ssh import Answer, SshResult, SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT
from ..scheduler.base import Scheduler, SchedulerSilent
from ..scheduler.select import scheduler_of
from ..state import acquire
from ..up.run import Run
from .rolling import Window, roll
from .rolling.roll import Clock
from .selection import chosen
from .service import silent

RESTART_S = 1800
"""Seconds a node may take: firmware of a GPU server trains memory and links for 10-20 minutes."""
FIT_S = 300
"""Seconds, from when it answers, until the scheduler counts it in and its health check passes."""
POLL_S = 3.0

# The first process's start too: a container's kernel started with its host, so its boot id stays.
STARTED = "cat /proc/sys/kernel/random/boot_id && awk '{print $22}' /proc/1/stat"
RESTART = f"{AS_ROOT} systemctl reboot"
FIT = f"""
slurm() {{
state=$(systemctl is-active slurmd) || {{ echo "slurmd is $state"; exit 1; }}
node=$(hostname)
seen=$(scontrol --oneliner show node "$node" 2>&1) || {{ echo "$seen"; exit 1; }}
seen=$(printf '%s\\n' "$seen" | sed -n 's/.* State=\\([^ ]*\\).*/\\1/p')
case $seen in
  *DOWN* | *NOT_RESPONDING* | *UNKNOWN* | *INVAL* | *FAIL*)
    echo "the controller counts it as $seen"; exit 1 ;;
esac
}}
kubernetes=/usr/local/libexec/gcluster/kubernetes-check.py
if [ -x $kubernetes ]; then {AS_ROOT} $kubernetes node || exit 1; else slurm; fi
[ ! -x /usr/libexec/gcluster/node-health-verify ] ||
  {AS_ROOT} /usr/libexec/gcluster/node-health-verify
"""
"""Prints why a restarted node is not healthy; exit 0: it is."""


PowerOn: TypeAlias = Callable[[Collection[str]], None]
"""Has the sites start those of the nodes that are off."""


def restart(
    session: SshSession, hosts: Iterable[Host], clock: Clock, power_on: PowerOn
) -> dict[str, str]:
    """Restart nodes at once and wait until each is back and fit; return node -> why for the others.

    The nodes must be out of service with nothing running there.
    """
    waiting = {host.name: host for host in hosts}
    before = _started(session, waiting.values())
    failed = {n: f"not restarted: {_last_output(a)}" for n, a in before.items() if not _ok(a)}
    waiting = {name: host for name, host in waiting.items() if name not in failed}
    # It may cut the connection: whether it restarts is seen by its start, and not by this answer.
    requested = session.run_many(waiting.values(), RESTART, timeout_s=30)
    last = {name: _last_output(answer) for name, answer in requested.items()}
    since = clock.now()
    back: dict[str, float] = {}
    while waiting:
        power_on([name for name in waiting if name not in back])
        _find_rebooted(session, waiting, back, before, clock)
        answers = session.run_many([waiting[n] for n in waiting if n in back], FIT, timeout_s=60)
        for name, answer in answers.items():
            last[name] = _last_output(answer)
            if _ok(answer):
                del waiting[name]
        for name in _late(waiting, back, since, clock.now()):
            del waiting[name]
            failed[name] = (
                f"it restarted and is not fit: {last[name]}"
                if name in back
                else f"it did not come back within {RESTART_S // 60} minutes: {last[name]}"
            )
        if waiting:
            clock.sleep(POLL_S)
    return failed


def _find_rebooted(
    session: SshSession,
    waiting: dict[str, Host],
    back: dict[str, float],
    before: dict[str, Answer],
    clock: Clock,
) -> None:
    away = [host for name, host in waiting.items() if name not in back]
    for name, answer in _started(session, away).items():
        then = before[name]
        if _ok(answer) and _describe(answer) != _describe(then):
            back[name] = clock.now()


def _late(waiting: Collection[str], back: dict[str, float], since: float, now: float) -> list[str]:
    return [
        name
        for name in waiting
        if (now - back[name] >= FIT_S if name in back else now - since >= RESTART_S)
    ]


def _started(session: SshSession, hosts: Iterable[Host]) -> dict[str, Answer]:
    return session.run_many(hosts, STARTED, timeout_s=15)


def _ok(answer: Answer) -> bool:
    return isinstance(answer, SshResult) and answer.returncode == 0


def _describe(answer: Answer) -> str:
    return answer.stdout if isinstance(answer, SshResult) else ""


def _last_output(answer: Answer) -> str:
    """Return the last line of a node's output, "" where there is none."""
    if isinstance(answer, Unreachable):
        return answer.reason
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    return lines[-1] if lines else f"exit {answer.returncode}"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool's nodes are restarted; shown before the confirmation."""

    pool: str
    nodes: tuple[str, ...]
    at_once: int
    wait_s: float
    """Seconds that the jobs of a drained node are waited for."""
    requeues: bool
    """Its jobs are put back in line instead."""
    jobs: int
    """Jobs that hold these nodes now."""


class RebootResult(msgspec.Struct, frozen=True, kw_only=True):
    """How `reboot` ended, node by node."""

    cluster: str
    rebooted: tuple[str, ...]
    failed: dict[str, str]
    """Node -> why; it stays out of service."""
    held: dict[str, str]
    """Node -> why it was not restarted; it is in service as before."""
    exit_code: Exit
    """FAILED when a node failed, PENDING when one was held back by its jobs."""


def reboot(
    cluster: Cluster,
    words: Collection[str],
    report: Reporter,
    *,
    confirm: Callable[[tuple[Pace, ...]], bool],
    at_once: int | None = None,
    requeue: bool = False,
) -> RebootResult:
    """Drain, restart, verify and resume nodes; the pools' `update` sets pace and timeouts.

    Killed anywhere, it leaves nodes drained with gcluster's mark: the next `up` or `reboot`
    continues with them.

    Args:
        cluster: the running cluster.
        words: nodes and pools.
        report: receives what is waited for.
        confirm: receives what will be done; if it returns False, nothing is changed.
        at_once: nodes of a pool that are out at a time; None: as the spec says.
        requeue: requeue jobs, whatever the spec says.

    Raises:
        LifecycleError: no such nodes, the scheduler doesn't respond, or it was declined.
    """
    hosts = existing_hosts(cluster)
    nodes = chosen(hosts, words)
    paces_of = paced(cluster.spec, at_once=at_once, requeue=requeue)
    with SshSession(cluster.workdir) as session:
        service = scheduler_of(cluster.spec, hosts, session)
        if not confirm(_paces(paces_of, hosts, nodes, service)):
            raise failure("GC909", "nothing was restarted", exit_code=Exit.REFUSED)
        cluster.identify()
        with (
            acquire(cluster.store, tuple(cluster.spec.sites), reason="reboot") as lock,
            Run(cluster, "reboot", lock) as run,
        ):
            result = reboot_nodes(
                hosts,
                nodes,
                paces_of,
                service,
                session,
                report,
                why=f"reboot, run {run.id}",
                power_on=_power_on(open_sites(cluster), hosts),
            )
            run.finish(result.exit_code)
            return result


def reboot_nodes(  # noqa: PLR0917  # the parts of one reboot
    hosts: ClusterInventory,
    nodes: ClusterInventory,
    spec: ClusterSpec,
    service: Scheduler,
    session: SshSession,
    report: Reporter,
    *,
    why: str,
    power_on: PowerOn,
    clock: Clock | None = None,
) -> RebootResult:
    """Restart the nodes in windows of their pools; see `reboot`."""
    by_name = {host.name: host for host in nodes.hosts}
    clock = clock or Clock()

    def emit(detail: str) -> None:
        report(StageProgress(name="reboot", done=0, total=0, detail=detail))

    def work(ready: Collection[str]) -> Mapping[str, str]:
        emit(f"restarting {', '.join(ready)}")
        return restart(session, [by_name[name] for name in ready], clock, power_on)

    windows = tuple(
        Window(
            [host.name for host in nodes.in_pool(pool)],
            pool_spec.update,
            pool_size=len(hosts.in_pool(pool)),
        )
        for pool, pool_spec in spec.pools.items()
        if nodes.in_pool(pool)
    )
    done = roll(windows, service, work, why=why, emit=emit, clock=clock)
    code = Exit.FAILED if done.failed else Exit.PENDING if done.held else Exit.OK
    return RebootResult(
        cluster=hosts.cluster,
        rebooted=done.changed,
        failed=done.failed,
        held=done.held,
        exit_code=code,
    )


def _power_on(sites: Iterable[OpenSite], hosts: ClusterInventory) -> PowerOn:
    """Return a query of each node's own site."""
    site_of = {host.name: host.site for host in hosts.hosts}

    def power_on(names: Collection[str]) -> None:
        for site in sites:
            mine = [name for name in names if site_of[name] == site.name]
            if mine:
                site.provider.power_on(site.context, mine)

    return power_on


def paced(spec: ClusterSpec, *, at_once: int | None, requeue: bool) -> ClusterSpec:
    """Return the spec with the requested pace in every pool."""
    changes: dict[str, object] = {} if at_once is None else {"max_unavailable": at_once}
    if requeue:
        changes["jobs"] = "requeue"
    pools = {
        name: msgspec.structs.replace(pool, update=msgspec.structs.replace(pool.update, **changes))
        for name, pool in spec.pools.items()
    }
    return msgspec.structs.replace(spec, pools=pools)


def _paces(
    spec: ClusterSpec, hosts: ClusterInventory, nodes: ClusterInventory, service: Scheduler
) -> tuple[Pace, ...]:
    try:
        uses = service.nodes([host.name for host in nodes.hosts])
    except SchedulerSilent as error:
        raise silent(error) from error
    found = []
    for pool, pool_spec in spec.pools.items():
        names = tuple(host.name for host in nodes.in_pool(pool))
        if names:
            jobs = {job for name in names if name in uses for job in uses[name].jobs}
            found.append(
                Pace(
                    pool=pool,
                    nodes=names,
                    at_once=min(len(names), pool_spec.update.at_once(len(hosts.in_pool(pool)))),
                    wait_s=pool_spec.update.wait_s,
                    requeues=pool_spec.update.jobs == "requeue",
                    jobs=len(jobs),
                )
            )
    return tuple(found)
