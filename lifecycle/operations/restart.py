"""Restarting nodes that no job uses, and knowing that each is back and fit.

By SSH and not by `scontrol reboot nextstate=resume`: Slurm would give a node back as soon as its
slurmd registers, before anybody has looked whether all GPUs and links came back with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...inventory.hosts import Host
from ..rolling.roll import Clock
from ..ssh import Answer, SshResult, SshSession, Unreachable

RESTART_S = 1800
"""Seconds a node may take: firmware of a GPU server trains memory and links for 10-20 minutes."""
FIT_S = 300
"""Seconds, from when it answers, until the scheduler counts it in and its health check passes."""
POLL_S = 3.0

_AS_ROOT = '$([ "$(id -u)" = 0 ] || echo sudo -n)'
# The first process's start too: a container's kernel started with its host, so its boot id stays.
STARTED = "cat /proc/sys/kernel/random/boot_id && awk '{print $22}' /proc/1/stat"
RESTART = f"{_AS_ROOT} systemctl reboot"
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
kubernetes=/usr/local/libexec/gcluster/kubernetes-check
if [ -x $kubernetes ]; then {_AS_ROOT} $kubernetes node || exit 1; else slurm; fi
[ ! -x /usr/libexec/gcluster/node-health-verify ] ||
  {_AS_ROOT} /usr/libexec/gcluster/node-health-verify
"""
"""Says in words why a node that is back is not fit; exit 0: it is."""


def restart(session: SshSession, hosts: Iterable[Host], clock: Clock) -> dict[str, str]:
    """Restart nodes at once and wait until each is back and fit; return node -> why for the others.

    The nodes must be out of service with nothing running there.
    """
    waiting = {host.name: host for host in hosts}
    before = _started(session, waiting.values())
    failed = {n: f"not restarted: {_said(a)}" for n, a in before.items() if not _ok(a)}
    waiting = {name: host for name, host in waiting.items() if name not in failed}
    # It may cut the connection: whether it restarts is seen by its start, and not by this answer.
    asked = session.run_many(waiting.values(), RESTART, timeout_s=30)
    last = {name: _said(answer) for name, answer in asked.items()}
    since = clock.now()
    back: dict[str, float] = {}
    while waiting:
        _look_who_is_back(session, waiting, back, before, clock)
        answers = session.run_many([waiting[n] for n in waiting if n in back], FIT, timeout_s=60)
        for name, answer in answers.items():
            last[name] = _said(answer)
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


def _look_who_is_back(
    session: SshSession,
    waiting: dict[str, Host],
    back: dict[str, float],
    before: dict[str, Answer],
    clock: Clock,
) -> None:
    away = [host for name, host in waiting.items() if name not in back]
    for name, answer in _started(session, away).items():
        then = before[name]
        if _ok(answer) and _words(answer) != _words(then):
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


def _words(answer: Answer) -> str:
    return answer.stdout if isinstance(answer, SshResult) else ""


def _said(answer: Answer) -> str:
    """Return the last words of a node, "" where it said nothing."""
    if isinstance(answer, Unreachable):
        return answer.reason
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    return lines[-1] if lines else f"exit {answer.returncode}"
