"""Stamps: records on a node of the steps done to it, one file per step, read by one SSH command."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

from ....inventory.compile.steps import PHASES, Step
from ....inventory.hosts import Host
from ...cluster.open_site import OpenSite
from ..ssh import SshSession, Unreachable

DIRECTORY = "/var/lib/gcluster/stamps"
"""On every node; a file "ROLE.PHASE" holds the digest of what the phase was compiled from."""

Stamps: TypeAlias = dict[str, str]
"""Step -> digest; WORN for a step that a restart of the node has made doubtful."""

WORN = "worn"
DOUBTED = "doubted"
"""Placeholder for a digest to ignore: the step is run again."""
CHANGED_HERE = "changed on the node: "
"""Prefix of the placeholder digest of a step whose traces differ; the rest names them."""
_END = "end of stamps"
_SEEN_AFTER_BOOT = frozenset({"join", "verify"})
"""Phases whose stamp holds only since the node was started: is it back, and does it still work?"""

# The first process's start, in seconds since 1970: a container's kernel started with its host.
_STARTED = (
    "echo started $(( $(awk '/^btime/ {print $2}' /proc/stat)"
    " + $(awk '{print $22}' /proc/1/stat) / $(getconf CLK_TCK) ))"
)
READ = (
    f"{_STARTED}; cd {DIRECTORY} 2>/dev/null"
    " && { stat -c '%n %Y' *.*; grep -H . *.*; } 2>/dev/null;"
    f" echo {_END}"
)
"""The shell line that prints a node's start and its stamps."""
_WRITTEN = re.compile(rf"(\w+\.(?:{'|'.join(PHASES)})) (\d+)")
_DIGEST = re.compile(rf"(\w+\.(?:{'|'.join(PHASES)})):([0-9a-f]{{64}})")


def read_stamps(session: SshSession, hosts: Iterable[Host]) -> dict[str, Stamps | Unreachable]:
    """Return host -> its stamps, or why it can't be reached."""
    answers = session.run_many(hosts, READ, timeout_s=30)
    return {
        host: answer if isinstance(answer, Unreachable) else parse(answer.stdout)
        for host, answer in answers.items()
    }


def kept_stamps(sites: Iterable[OpenSite], hosts: Iterable[Host]) -> dict[str, Stamps]:
    """Return host -> its stamps, of those whose provider keeps them: nothing runs there."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        names[host.site].append(host.name)
    kept = (site.provider.kept_stamps(site.context, names[site.name]) for site in sites)
    return {host: dict(stamps) for found in kept for host, stamps in found.items()}


def parse(text: str) -> Stamps | Unreachable:
    """Parse what `READ` printed; truncated output is an error, as it would look like an empty node.

    A file that holds no digest is no stamp: its step runs again.
    """
    lines = text.splitlines()
    if not lines or lines[-1] != _END or not lines[0].startswith("started "):
        return Unreachable(reason="its stamps could not be read: the answer was cut short")
    started = int(lines[0].split()[1])
    written = {m[1]: int(m[2]) for m in map(_WRITTEN.fullmatch, lines) if m}
    return {
        step: WORN if _is_worn(step, written.get(step, 0), started) else digest
        for step, digest in (m.groups() for m in map(_DIGEST.fullmatch, lines) if m)
    }


def _is_worn(step: str, written: int, started: int) -> bool:
    return step.rpartition(".")[2] in _SEEN_AFTER_BOOT and written < started


def done_command(step: Step, digest: str) -> str:
    """Return the shell line that marks a step as done on a node.

    It writes the step's stamp. Phase `remove` deletes the role's stamps instead, except for what is
    still installed.
    """
    if step.phase == "remove":
        return end_command(DIRECTORY, step.role)
    return write_command(step.key, digest)


def end_command(directory: str, role: str) -> str:
    """Return the shell line that removes a role's files from a folder, but that of its install."""
    ended = (phase for phase in PHASES if phase != "install")
    return "rm -f " + " ".join(f"{directory}/{role}.{phase}" for phase in ended)


def write_command(step: str, digest: str) -> str:
    """Return the shell line that leaves a stamp, whole or not at all."""
    path = f"{DIRECTORY}/{step}"
    return (
        f"umask 022 && mkdir -p {DIRECTORY} && "
        f"printf '%s\\n' {digest} > {path}.new && mv {path}.new {path}"
    )
