"""Stamps: what a node says was done to it, one small file a step, read in one SSH exec a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from gcluster.lifecycle.ssh import SshSession, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gcluster.inventory.hosts import Host

DIRECTORY = "/var/lib/gcluster/stamps"
"""On every node; a file "ROLE.PHASE" holds the digest of what the phase was compiled from."""

Stamps: TypeAlias = dict[str, str]
"""Step -> digest; WORN for a step that a restart of the node has made doubtful."""

WORN = "worn"
_END = "end of stamps"
_SEEN_AFTER_BOOT = frozenset({"join", "verify"})
"""Phases whose stamp holds only since the node was started: is it back, and does it still work?"""

# The first process's start, in seconds since 1970: a container's kernel started with its host.
_STARTED = (
    "echo started $(( $(awk '/^btime/ {print $2}' /proc/stat)"
    " + $(awk '{print $22}' /proc/1/stat) / $(getconf CLK_TCK) ))"
)
_READ = (
    f"{_STARTED}; cd {DIRECTORY} 2>/dev/null && for s in *.*; do"
    ' [ -f "$s" ] && echo "$s $(stat -c %Y "$s") $(cat "$s")"; done; '
    f"echo {_END}"
)


def read_stamps(session: SshSession, hosts: Iterable[Host]) -> dict[str, Stamps | Unreachable]:
    """Return host -> its stamps, or why it can't be asked."""
    answers = session.run_many(hosts, _READ, timeout_s=30)
    return {
        host: answer if isinstance(answer, Unreachable) else _parse(answer.stdout)
        for host, answer in answers.items()
    }


def _parse(text: str) -> Stamps | Unreachable:
    """Read the answer; one that was cut short is no answer: it would look like an empty node."""
    lines = text.splitlines()
    if not lines or lines[-1] != _END or not lines[0].startswith("started "):
        return Unreachable(reason="its stamps could not be read: the answer was cut short")
    started = int(lines[0].split()[1])
    stamps: Stamps = {}
    for line in lines[1:-1]:
        step, written, digest = line.split()
        worn = int(written) < started and step.rpartition(".")[2] in _SEEN_AFTER_BOOT
        stamps[step] = WORN if worn else digest
    return stamps


def write_command(step: str, digest: str) -> str:
    """Return the shell line that leaves a stamp, whole or not at all."""
    path = f"{DIRECTORY}/{step}"
    return (
        f"umask 022 && mkdir -p {DIRECTORY} && "
        f"printf '%s\\n' {digest} > {path}.new && mv {path}.new {path}"
    )
