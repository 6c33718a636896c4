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
"""Step -> digest."""

_END = "end of stamps"
_READ = f"{{ cd {DIRECTORY} && grep -H . *; }} 2>/dev/null; echo {_END}"


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
    if not lines or lines[-1] != _END:
        return Unreachable(reason="its stamps could not be read: the answer was cut short")
    pairs = (line.partition(":") for line in lines[:-1])
    return {step: digest.strip() for step, _, digest in pairs if "." in step}


def write_command(step: str, digest: str) -> str:
    """Return the shell line that leaves a stamp, whole or not at all."""
    path = f"{DIRECTORY}/{step}"
    return (
        f"umask 022 && mkdir -p {DIRECTORY} && "
        f"printf '%s\\n' {digest} > {path}.new && mv {path}.new {path}"
    )
