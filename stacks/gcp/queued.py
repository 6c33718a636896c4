"""Names for machines that came out of Google's queue: a group calls them as it likes.

Each gets a name of the pool as its label, once, and keeps it: hosts are called by their labels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..pulumi.labels import HOST, label_value
from .api import Api, Body, Operation
from .hosts import ALIVE, Instance
from .layout import SiteLayout
from .pools import PoolPlan


def name_queued(api: Api, plan: SiteLayout, machines: Sequence[Instance]) -> int:
    """Label the queued machines that have no name yet; return how many. May be repeated."""
    named = 0
    for pool in plan.pools:
        for machine, host in new_names(pool, machines):
            path = f"{api.in_zone(machine.zone_name)}/instances/{machine.name}/setLabels"
            labels = {**machine.labels, HOST: label_value(host)}
            body: Body = {"labels": labels, "labelFingerprint": machine.label_fingerprint}
            api.wait(api.ask(Operation, path, method="POST", body=body), resource=machine.name)
            named += 1
    return named


def new_names(pool: PoolPlan, machines: Sequence[Instance]) -> list[tuple[Instance, str]]:
    """Return (machine, name) of those without one: free names in order, machines by theirs."""
    if not any(rung.market == "flex-start" for rung in pool.rungs):
        return []
    mine = [m for m in machines if m.pool == label_value(pool.name) and not m.token]
    taken = {machine.labels[HOST] for machine in mine if HOST in machine.labels}
    free = [host for host in pool.hosts if host not in taken]
    nameless = [m for m in mine if HOST not in m.labels and m.status in ALIVE]
    return list(zip(sorted(nameless, key=lambda m: m.name), free, strict=False))
