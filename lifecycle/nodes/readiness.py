"""Waits until machines that were just made can be worked on: once, for all, with a deadline.

A machine that has shown its host key is not ready: its login user may not be there yet, cloud-init
may still be at work, and the distribution's own updates hold the package manager. All of that is
awaited here, so that no role meets it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...inventory.hosts import Host
from .ssh import SshSession, Unreachable
from .ssh.arguments import as_root

_PAUSE_S = 3.0
_AT_ONCE = 64
_ASK_S = 20
"""Seconds that a node waits for cloud-init before it reports its state."""
_FINAL = ("its host key changed", "its host key is unknown", "a host key on the way")
"""How the reasons begin that no waiting helps against."""

_PROBE = f"""
if command -v cloud-init >/dev/null 2>&1; then
  said=$(timeout {_ASK_S} cloud-init status --wait 2>/dev/null)
  [ $? = 124 ] && echo "busy cloud-init"
  case "$said" in *"status: error"*) echo "failed cloud-init" ;; esac
fi
for process in /proc/[0-9]*; do
  {{ read -r name <"$process/comm"; }} 2>/dev/null || continue
  case "$name" in
  apt | apt-get | aptitude | dpkg | apt.systemd.dai | unattended-upgr | dnf | dnf-automatic | yum)
    # Ubuntu's waits for the shutdown all the time, and holds nothing.
    tr '\\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q -- -upgrade-shutdown ||
      echo "busy $name" ;;
  esac
done
tail -n 8 /var/log/cloud-init-output.log 2>/dev/null | sed 's/^/> /'
echo end
"""
"""Shell that prints what keeps a node from being worked on, and the end of cloud-init's log."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """How one node is."""

    reason: str = ""
    """Why it can't be worked on, in one line; "": it can."""
    failed: bool = False
    """cloud-init ended with an error; the node can be worked on all the same."""
    last_lines: tuple[str, ...] = ()
    """The end of cloud-init's log, where something is wrong."""


def await_ready(
    hosts: Iterable[Host],
    session: SshSession,
    *,
    limit_s: Callable[[Host], float],
    progress: Callable[[int, str], None] = lambda _done, _what: None,
    pause_s: float = _PAUSE_S,
) -> dict[str, Readiness]:
    """Return host -> its state, once each is ready or its time limit is reached.

    Args:
        hosts: machines that are reached over SSH.
        session: SSH to them.
        limit_s: seconds that a host is waited for; 0: it is queried once.
        progress: called with how many are done, and what the others wait for.
        pause_s: seconds between two polls of the same host.
    """
    everyone = list(hosts)
    if not everyone:
        return {}
    waits, mutex = dict[str, str](), threading.Lock()

    def end(host: str, why: str | None) -> None:
        with mutex:
            if why is None:
                waits.pop(host, None)
            else:
                waits[host] = why
            open_ = [f"{name}: {what}" for name, what in sorted(waits.items()) if what]
            done = len(everyone) - len(waits)
        progress(done, f"{open_[0]}" + (f" (and {len(open_) - 1} more)" if open_[1:] else "")
                 if open_ else "")  # fmt: skip

    waits |= dict.fromkeys((host.name for host in everyone), "")

    def wait_for(host: Host) -> Readiness:
        until = time.monotonic() + limit_s(host)
        while True:
            found = probe(host, session)
            over = time.monotonic() >= until or host.silent or found.reason.startswith(_FINAL)
            if not found.reason or over:
                end(host.name, None)
                return found
            end(host.name, found.reason)
            time.sleep(min(pause_s, max(0.0, until - time.monotonic())))

    with ThreadPoolExecutor(min(_AT_ONCE, len(everyone))) as pool:
        return {
            host.name: ready
            for host, ready in zip(everyone, pool.map(wait_for, everyone), strict=True)
        }


def probe(host: Host, session: SshSession) -> Readiness:
    """Check once."""
    answer = session.run(host, as_root(host, ["sh", "-c", _PROBE]), timeout_s=_ASK_S + 40)
    if isinstance(answer, Unreachable):
        return Readiness(reason=answer.reason, last_lines=host.last_lines)
    return read_probe(answer.stdout)


def read_probe(text: str) -> Readiness:
    """Read what the probe printed; an answer that was cut short is no answer."""
    lines = text.splitlines()
    if "end" not in lines:
        return Readiness(reason="how far its first start is could not be read")
    busy = sorted({line.removeprefix("busy ") for line in lines if line.startswith("busy ")})
    failed = "failed cloud-init" in lines
    log = tuple(line.removeprefix("> ") for line in lines if line.startswith("> "))
    return Readiness(
        reason=f"still at work there: {', '.join(busy)}" if busy else "",
        failed=failed,
        last_lines=log if busy or failed else (),
    )
