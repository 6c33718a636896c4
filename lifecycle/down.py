"""The end of a cluster: everything it made is removed, and then looked for once more."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle import places
from gcluster.lifecycle.known import set_ended
from gcluster.lifecycle.outcome import Exit, failure
from gcluster.lifecycle.progress import Reporter, StageFinished, StageProgress, StageStarted
from gcluster.lifecycle.run import Run
from gcluster.lifecycle.sites import OpenSite, at_each, open_sites
from gcluster.lifecycle.ssh import SshSession
from gcluster.lifecycle.state import acquire
from gcluster.stacks.provider import Leftover, SiteEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gcluster.lifecycle.cluster import Cluster


class DownResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `down` did."""

    cluster: str
    nothing_there: bool
    removed: dict[str, int]
    """Kind -> how many are gone: {"node": 5, "network": 1, "key": 1}."""
    untouched: tuple[str, ...]
    """Sites whose machines gcluster did not make and leaves as they are."""
    leftovers: tuple[Leftover, ...]
    exit_code: Exit


def down(
    cluster: Cluster, report: Reporter, *, confirm: Callable[[tuple[Leftover, ...]], bool]
) -> DownResult:
    """Destroy every resource of the cluster; safe to repeat, safe to kill.

    `confirm` is shown what exists; when it answers no, nothing is touched.

    Raises:
        LifecycleError: the lock is held, or the answer was no.
    """
    untouched = tuple(n for n, s in cluster.spec.sites.items() if not s.makes_machines)
    if not cluster.was_applied:
        return _nothing(cluster, untouched)
    sites = open_sites(cluster, lambda event: report(_progress(event)))
    existing = _existing(sites)
    if not existing and not cluster.ledger.existing() and not cluster.ledger.open_intents():
        _forget(cluster)
        return _nothing(cluster, untouched)
    if not confirm(existing):
        raise failure("GC909", "nothing was removed", exit_code=Exit.REFUSED)
    with (
        acquire(cluster.store, tuple(cluster.spec.sites), reason="down") as lock,
        Run(cluster, "down", lock) as run,
    ):
        removed, leftovers = _destroy(cluster, sites, existing, report)
        for site in sites:
            cluster.ledger.settle(site.name, [item.provider_id for item in leftovers])
        if not leftovers:
            _forget(cluster)
        code = Exit.LEFTOVERS if leftovers else Exit.OK
        run.finish(code)
    return DownResult(
        cluster=cluster.name,
        nothing_there=False,
        removed=removed,
        untouched=untouched,
        leftovers=leftovers,
        exit_code=code,
    )


def _destroy(
    cluster: Cluster, sites: tuple[OpenSite, ...], existing: tuple[Leftover, ...], report: Reporter
) -> tuple[dict[str, int], tuple[Leftover, ...]]:
    began = time.monotonic()
    report(StageStarted(name="remove", total=len(existing)))
    with SshSession(cluster.workdir) as session:
        session.close()
    at_each(sites, lambda site: site.provider.destroy(site.context))
    left = at_each(sites, lambda site: site.provider.sweep(site.context))
    leftovers = tuple(item for items in left.values() for item in items if not item.kept_data)
    still = {(item.kind, item.name) for item in leftovers}
    removed = Counter(item.kind for item in existing if (item.kind, item.name) not in still)
    report(
        StageFinished(
            name="remove",
            ok=not leftovers,
            summary=_counted(removed),
            seconds=time.monotonic() - began,
        )
    )
    return dict(sorted(removed.items())), leftovers


def _counted(removed: Mapping[str, int]) -> str:
    kinds = (f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in sorted(removed.items()))
    return ", ".join(kinds) or "nothing"


def _existing(sites: tuple[OpenSite, ...]) -> tuple[Leftover, ...]:
    found = at_each(sites, lambda site: site.provider.refresh(site.context))
    return tuple(item for items in found.values() for item in items if item.kind != "host")


def _forget(cluster: Cluster) -> None:
    """Remove the secrets, the client keys and the run artifacts; the journal stays."""
    cluster.vault.forget_all()
    shutil.rmtree(cluster.workdir, ignore_errors=True)
    shutil.rmtree(places.data_home() / "runs" / cluster.id, ignore_errors=True)
    set_ended(cluster.id, ended=True)


def _nothing(cluster: Cluster, untouched: tuple[str, ...]) -> DownResult:
    return DownResult(
        cluster=cluster.name,
        nothing_there=True,
        removed={},
        untouched=untouched,
        leftovers=(),
        exit_code=Exit.OK,
    )


def _progress(event: SiteEvent) -> StageProgress:
    return StageProgress(
        name="remove", done=event.done, total=event.total, detail=f"{event.site}: {event.what}"
    )
