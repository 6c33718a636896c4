"""Destroys a cluster: everything it created is removed, then the sites are searched again."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from ...schemas.diagnostics import Diagnostic, Severity
from ...stacks.provider import Leftover, SiteEvent
from ..cluster import places
from ..cluster.cluster import Cluster
from ..cluster.index import set_ended
from ..cluster.open_site import OpenSite, at_each
from ..cluster.outcome import Exit, failure
from ..cluster.progress import Finding, Reporter, StageFinished, StageProgress, StageStarted
from ..cluster.remains import refuse_lost
from ..cluster.shared_credentials import stored_host_keys
from ..cluster.sites import open_sites
from ..kubernetes.managed import release
from ..kubernetes.managed.nodes import reach
from ..nodes.ssh import SshSession
from ..operations.burst.lock import LOCK as BURST_LOCK
from ..operations.etcd_state import saved_objects
from ..operations.repair.queue import forget as forget_repairs
from ..secrets import makers as passphrase
from ..state import HeldLock, acquire
from ..state.audit.artifacts import stored_artifacts
from ..up.run import Run
from .data import check_free, check_names, priced
from .expiry.running_work import query_jobs


class DownResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `down` did."""

    cluster: str
    nothing_there: bool
    removed: dict[str, int]
    """Kind -> how many are gone: {"node": 5, "network": 1, "key": 1}."""
    untouched: tuple[str, ...]
    """Sites whose machines gcluster did not make and leaves as they are."""
    leftovers: tuple[Leftover, ...]
    kept: tuple[Leftover, ...] = ()
    """Data that is kept and continues to cost, and the resource that holds it."""
    exit_code: Exit


def down(
    cluster: Cluster,
    report: Reporter,
    *,
    confirm: Callable[[tuple[Leftover, ...]], bool],
    delete_data: Iterable[str] = (),
    skip_kubernetes: bool = False,
) -> DownResult:
    """Destroy every resource of the cluster but its data; safe to repeat, safe to kill.

    Args:
        cluster: as it was last applied.
        report: receives the progress.
        confirm: receives what exists; if it returns False, nothing is changed.
        delete_data: storage of the spec whose data goes too.
        skip_kubernetes: a cloud's control plane is not queried for what it created outside the
            stack.

    Raises:
        LifecycleError: the lock is held, it was not confirmed, or a name is of no storage; a
            cloud's control plane can't be queried (GC1044), or the cloud doesn't delete it
            (GC1045); the state is lost, and resources of the cluster exist (GC1165).
    """
    named = tuple(dict.fromkeys(delete_data))
    untouched = tuple(n for n, s in cluster.spec.sites.items() if not s.makes_machines)
    seen = len(cluster.events.read())
    sites = open_sites(cluster, lambda event: report(_progress(event)), delete_data=named)
    refuse_lost(cluster, sites, by_tag=True)
    existing = priced(cluster, _existing(cluster, sites))
    check_names(cluster, named, existing)
    if not existing and not cluster.was_applied:
        return _nothing(cluster, untouched)
    check_free(existing, named)
    kept = tuple(item for item in existing if item.kept_data)
    if len(kept) == len(existing) and not _ledger_has_more(cluster):
        names = (*cluster.spec.sites, BURST_LOCK)
        with acquire(cluster.store, names, reason="down") as lock:
            _refuse_begun(cluster, seen)
            _forget(cluster, lock, but_stacks=bool(kept))
        return _nothing(cluster, untouched, kept)
    kubectl = None if skip_kubernetes else reach(cluster.spec, sites, cluster.workdir)
    held = () if kubectl is None else release.cloud_objects(kubectl).leftovers()
    if (lost := _work_lost(cluster)) is not None:
        report(Finding(diagnostic=lost))
    if not confirm((*existing, *held)):
        raise failure("GC909", "nothing was removed", exit_code=Exit.REFUSED)
    with (
        acquire(cluster.store, (*cluster.spec.sites, BURST_LOCK), reason="down") as lock,
        Run(cluster, "down", lock) as run,
    ):
        for note in lock.notes:
            report(Finding(diagnostic=note))
        if kubectl is not None:
            release.give_back(kubectl, report)
        removed, left = _destroy(cluster, sites, existing, report)
        leftovers = tuple(item for item in left if not item.kept_data)
        kept = tuple(item for item in left if item.kept_data)
        for site in sites:
            cluster.ledger.settle(site.name, [item.provider_id for item in leftovers])
        forget_repairs(cluster.events)
        if not leftovers:
            _forget(cluster, lock, but_stacks=bool(kept))
        code = Exit.LEFTOVERS if leftovers else Exit.OK
        run.finish(code)
    return DownResult(
        cluster=cluster.name,
        nothing_there=False,
        removed=removed,
        untouched=untouched,
        leftovers=leftovers,
        kept=kept,
        exit_code=code,
    )


def _work_lost(cluster: Cluster) -> Diagnostic | None:
    """Return the users whose work ends with the cluster; None: there is none."""
    jobs = query_jobs(cluster)
    if jobs.problem:
        what = f"it is unknown whether jobs run on {cluster.name}: {jobs.problem}"
    elif jobs.running or jobs.waiting:
        what = f"{jobs.running} running and {jobs.waiting} pending jobs end with {cluster.name}"
    else:
        return None
    return Diagnostic(code="GC1172", severity=Severity.WARNING, summary=what)


def _destroy(
    cluster: Cluster, sites: tuple[OpenSite, ...], existing: tuple[Leftover, ...], report: Reporter
) -> tuple[dict[str, int], tuple[Leftover, ...]]:
    began = time.monotonic()
    report(StageStarted(name="remove", total=len(existing)))
    with SshSession(cluster.workdir) as session:
        session.close()
    at_each(sites, lambda site: site.provider.destroy(site.context))
    found = at_each(sites, lambda site: site.provider.sweep(site.context))
    left = priced(cluster, (item for items in found.values() for item in items))
    leftovers = [item for item in left if not item.kept_data]
    still = {(item.kind, item.name) for item in left}
    removed = Counter(item.kind for item in existing if (item.kind, item.name) not in still)
    report(
        StageFinished(
            name="remove",
            ok=not leftovers,
            summary=_counted(removed),
            seconds=time.monotonic() - began,
        )
    )
    return dict(sorted(removed.items())), left


def _counted(removed: Mapping[str, int]) -> str:
    kinds = (f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in sorted(removed.items()))
    return ", ".join(kinds) or "nothing"


def _existing(cluster: Cluster, sites: tuple[OpenSite, ...]) -> tuple[Leftover, ...]:
    """Return what exists; where nothing was ever applied, all that carries the cluster's tag."""
    known = cluster.was_applied
    found = at_each(
        sites,
        lambda site: (site.provider.refresh if known else site.provider.sweep)(site.context),
    )
    return tuple(item for items in found.values() for item in items if item.kind != "host")


def _ledger_has_more(cluster: Cluster) -> bool:
    return bool(cluster.ledger.existing() or cluster.ledger.open_intents())


def _refuse_begun(cluster: Cluster, seen: int) -> None:
    """Refuse to delete the keys of a cluster that was changed since it was read.

    Args:
        cluster: whose locks are held.
        seen: number of events when it was read.
    """
    if len(cluster.events.read()) != seen:
        raise failure(
            "GC904",
            f"another run worked on {cluster.name} since this one looked: nothing was removed",
            hint="see gcluster status, then run the command again",
            exit_code=Exit.LOCKED,
        )


def _forget(cluster: Cluster, lock: HeldLock, *, but_stacks: bool) -> None:
    """Remove the secrets, the client keys and the run artifacts; the journal stays.

    Requires the locks: a run that begins elsewhere creates and reads the same keys. What is removed
    from the state is listed before the locks are checked again.

    `but_stacks`: data is kept. It is in stacks, so these and their passphrase are kept too, and the
    cluster has not ended: a later `down` finds its data, a later `up` uses it again.
    """

    def go_on() -> None:
        cluster.events.check_epochs(lock.epochs)

    store = cluster.store
    to_delete = (*saved_objects(store), *stored_host_keys(store), *stored_artifacts(store))
    cluster.vault.forget_all(go_on, but=passphrase.NAME if but_stacks else "")
    for key in to_delete:
        store.delete(key)
    go_on()
    shutil.rmtree(places.work_path(cluster.id), ignore_errors=True)
    shutil.rmtree(places.run_path(cluster.id), ignore_errors=True)
    set_ended(cluster.id, ended=not but_stacks)


def _nothing(
    cluster: Cluster, untouched: tuple[str, ...], kept: tuple[Leftover, ...] = ()
) -> DownResult:
    return DownResult(
        cluster=cluster.name,
        nothing_there=True,
        removed={},
        untouched=untouched,
        leftovers=(),
        kept=kept,
        exit_code=Exit.OK,
    )


def _progress(event: SiteEvent) -> StageProgress:
    return StageProgress(
        name="remove", done=event.done, total=event.total, detail=f"{event.site}: {event.what}"
    )
