"""The clouds' own tunnels to a site's way in: the programs that carry SSH through them."""

from __future__ import annotations

import shutil
from typing import TypeVar

from ..schemas.diagnostics import Diagnostic, Severity

_PROGRAMS = {
    "iap": ("gcloud",),
    "instance-connect": ("aws",),
    "ssm": ("aws", "session-manager-plugin"),
}
"""Tunnel -> commands that it takes here, as `ssh.tunnel` names it."""
_INSTALL = {
    "gcloud": "https://cloud.google.com/sdk/docs/install",
    "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": "https://docs.aws.amazon.com/systems-manager/latest/userguide/"
    "session-manager-working-with-install-plugin.html",
}


def missing_programs(site: str, tunnel: str | None) -> tuple[Diagnostic, ...]:
    """Return one finding for each command that a site's tunnel takes and this machine lacks."""
    return tuple(
        Diagnostic(
            code="GC1072",
            severity=Severity.ERROR,
            summary=f'the tunnel to site "{site}" takes the command {program}, which is not here',
            hint=f"install it ({_INSTALL[program]}), or name another way in",
            path=("sites", site, "ssh", "tunnel"),
        )
        for program in _PROGRAMS.get(tunnel or "", ())
        if shutil.which(program) is None
    )


MachineT = TypeVar("MachineT")


def reached_through(
    machine: MachineT, entry: MachineT | None, *, is_public: bool, is_tunnel: bool = False
) -> MachineT | None:
    """Return what a machine is reached through: nodes know each other by private addresses.

    A machine with a public address is reached through that address of its own, and a tunnel leads
    to one machine, which then leads to itself, too.
    """
    if is_tunnel:
        return entry
    if is_public:
        return machine
    return None if entry == machine else entry
