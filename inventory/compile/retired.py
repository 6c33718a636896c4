"""Roles that end on hosts whose spec asks for them no longer: their phase `remove` (pure).

Of a tunnel between sites and the routes to it nobody is to find remains. What other roles leave
behind is in the open: packages stay, and a daemon of Slurm is told by slurm.conf to serve no more.
"""

from __future__ import annotations

from collections.abc import Collection

from .steps import Stage, Step

ENDING = tuple(
    Step(stage=Stage.BASE, role=role, phase="remove", variables={}, spares_jobs=True)
    for role in ("site_routes", "wireguard")
)
"""The steps, routes before the tunnels that they lead to. They need no variable of the spec."""


def ends(step: Step, asked: Collection[str], carried: Collection[str]) -> bool:
    """Whether a host must run one of `ENDING`.

    Args:
        step: the step.
        asked: the roles that the host's pool is compiled to.
        carried: steps whose stamps the host has.
    """
    return step.role not in asked and f"{step.role}.configure" in carried
