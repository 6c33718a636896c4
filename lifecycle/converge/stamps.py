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

_READ = f"cd {DIRECTORY} 2>/dev/null && grep -H . * 2>/dev/null || true"


def read_stamps(session: SshSession, hosts: Iterable[Host]) -> dict[str, Stamps | Unreachable]:
    """Return host -> its stamps, or why it can't be asked."""
    answers = session.run_many(hosts, _READ, timeout_s=30)
    return {
        host: answer if isinstance(answer, Unreachable) else _parse(answer.stdout)
        for host, answer in answers.items()
    }


def _parse(text: str) -> Stamps:
    pairs = (line.partition(":") for line in text.splitlines())
    return {step: digest.strip() for step, _, digest in pairs if "." in step}


def write_command(step: str, digest: str) -> str:
    """Return the shell line that leaves a stamp, whole or not at all."""
    path = f"{DIRECTORY}/{step}"
    return (
        f"umask 022 && mkdir -p {DIRECTORY} && "
        f"printf '%s\\n' {digest} > {path}.new && mv {path}.new {path}"
    )
