"""Clusters whose spec is gone: they run on, unless fleet.yaml names them for removal."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from ...schemas.cost.pools import usd_per_hour
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.fleet.ordering import Fleet
from ..cluster.cluster import Cluster, open_applied
from ..cluster.outcome import LifecycleError
from ..down.expiry.jobs import ask_jobs
from .act import Acted, take_down
from .desired import last_change
from .round_record import RoundRecord


class Removed(NamedTuple):
    """Clusters that are to be taken down, because fleet.yaml says so."""

    named: dict[str, Cluster]
    record: RoundRecord

    def take_down(self) -> None:
        """Take each down that runs no jobs; data is kept."""
        for name, cluster in self.named.items():
            busy = ask_jobs(cluster).why_not
            if busy:
                self.record.note_gone(name, Acted("refused", f"not removed: {busy}"))
                continue
            cluster.why = f"commit {self.record.record.commit}"
            acted = take_down(cluster, self.record.reporter(name))
            if acted.phase == "down":
                self.record.let_go(name, acted.reason)
            else:
                self.record.note_gone(name, acted)


def see_removed(fleet: Fleet, wanted: Collection[str], record: RoundRecord) -> Removed:
    """Look at every cluster that was followed and has no spec any more."""
    named: dict[str, Cluster] = {}
    for name in [name for name in record.known if name not in wanted]:
        try:
            cluster = open_applied(record.known[name].state_url, Path(f"{name}.yaml"))
            last = last_change(cluster)
        except LifecycleError as error:
            if error.diagnostics[0].code == "GC906":  # nothing was ever made
                record.let_go(name, "its spec is gone, and it was never made")
            else:
                said = error.diagnostics[0].summary
                record.note_gone(name, Acted("failed", said, error.diagnostics))
            continue
        if last is not None and last.command == "down" and last.exit_code == 0:
            record.let_go(name, f"its spec is gone, and {last.actor} took it down")
        elif name in fleet.remove:
            named[name] = cluster
        else:
            orphan = _orphan(cluster)
            record.note_gone(name, Acted("orphaned", orphan.summary, (orphan,)))
    return Removed(named, record)


def _orphan(cluster: Cluster) -> Diagnostic:
    price = usd_per_hour(cluster.spec, cluster.catalog).usd_per_hour_now
    costs = "a price that is unknown" if price is None else f"${price:,.2f}/h"
    return Diagnostic(
        code="GC1134",
        severity=Severity.WARNING,
        summary=f"its spec is gone from the repository, and it runs on, at {costs}",
        hint=f"to remove it: name {cluster.name} under remove: in fleet.yaml, "
        f"or gcluster down {cluster.name}",
    )
