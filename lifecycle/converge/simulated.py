"""Convergence of simulated nodes: every step is marked as done, and nothing runs anywhere."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...stacks.provider import SiteContext
from ...stacks.simulated.stamps import write_stamps
from ..progress import Reporter, StageFinished, StageStarted

if TYPE_CHECKING:
    from .pending import Pending


def converge_simulated(
    pending: Pending, context: SiteContext, hosts: Iterable[Host], report: Reporter
) -> None:
    """Write the stamps of the pending steps for the simulated hosts of one site."""
    names = frozenset(host.name for host in hosts)
    mine = pending.for_hosts(names)
    if not mine.total:
        return
    began = time.monotonic()
    report(StageStarted(name="converge", total=mine.total))
    stamps: dict[str, dict[str, str]] = {}
    for item in mine.steps:
        for host in item.hosts:
            stamps.setdefault(host, {})[item.step.key] = item.digest
    for host, steps in stamps.items():
        write_stamps(context, host, steps)
    summary = f"{mine.total} steps simulated: nothing ran"
    report(
        StageFinished(name="converge", ok=True, summary=summary, seconds=time.monotonic() - began)
    )
