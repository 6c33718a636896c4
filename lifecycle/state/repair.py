"""Repairs a damaged state: from its events, this machine's index and the sites.

Nothing that can be read is changed, and no event is rewritten: a lost one is accepted by another
event, and what it may have recorded is queried from the sites. What only a backup has is named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from ...inventory.hosts import pool_host_names
from ...schemas.load import load_text
from ...schemas.spec import ClusterSpec
from ...stacks.provider import Resource
from ..cluster.cluster import Cluster, SpecError, StatePlace, find_state
from ..cluster.index import forget, remembered
from ..cluster.open_site import OpenSite
from ..cluster.outcome import Exit, LifecycleError, failure
from ..cluster.remains import find_remains
from ..cluster.sites import open_sites
from ..operations.burst.lock import LOCK as BURST_LOCK
from ..secrets.ciphertexts import SEALED
from .check import ENCRYPTED, Damage, check_state, damage_of, lost_epochs
from .event_types import DamageAccepted
from .events import EventLog, event_key, event_number
from .journal import REWRITTEN, Applied, Journal, applied_key, applied_number, store_applied
from .lock import RELEASED, acquire, epoch_key, lock_state, restore_epoch, write_end_again
from .store import FORMAT_KEY, IDENTITY_KEY, ClusterIdentity, DamagedObjectError, StateStore, digest


class StateRepair(msgspec.Struct, frozen=True, kw_only=True):
    """What `gcluster state repair` did."""

    target: str
    """The cluster, as commands name it."""
    state: str
    """URL."""
    done: dict[str, str]
    """Object -> what was done about it."""
    adopted: tuple[str, ...]
    """"SITE: KIND/NAME" of what the sites have and the ledger had lost."""
    left: tuple[Damage, ...]
    """What only a backup, an `unlock` or giving it up puts right."""

    @property
    def exit_code(self) -> Exit:
        """FAILED where damage is left."""
        return Exit.FAILED if self.left else Exit.OK


def repair_state(
    target: str, *, confirm: Callable[[tuple[Damage, ...]], bool], discard: Iterable[str] = ()
) -> StateRepair:
    """Rebuild what is damaged or missing; safe to repeat, safe to kill.

    Args:
        target: path of the cluster's spec, or its name.
        confirm: receives the damage; if it returns False, nothing is changed.
        discard: keys of damaged objects that are given up: they are moved to `damaged/`.

    Raises:
        LifecycleError: the lock is held, it was not confirmed, a key isn't damaged (GC908), or what
            is needed is unknown: the spec (GC906), or which cluster it is (GC1165).
        ProviderError: a site can't be queried.
    """
    place = find_state(target)
    store = StateStore.open(place.state_url, target=target, checks_format=False)
    check = check_state(store)
    given_up = _given_up(check.damage, discard)
    work = _Repair(place, store, {item.key: item for item in check.damage})
    if not work.damage and store.identity() is not None:
        return work.result()
    identity = work.find_identity()
    if identity is None:
        for entry in remembered(place.state_url):
            forget(entry.id)
        return work.result()
    if not confirm(tuple(work.damage.values())):
        raise failure("GC909", "nothing was changed", exit_code=Exit.REFUSED)
    work.run(identity, given_up)
    return work.result()


def _given_up(damage: Iterable[Damage], discard: Iterable[str]) -> frozenset[str]:
    known = {item.key for item in damage}
    for key in discard:
        if key not in known:
            hint = f"damaged are: {', '.join(sorted(known)) or 'none'}"
            raise failure(
                "GC908", f"state object {key} is not damaged", hint=hint, exit_code=Exit.USAGE
            )
    return frozenset(discard)


def _with_secrets(given_up: Collection[str], keys: Iterable[str]) -> set[str]:
    """Return what is given up, of a data key all that is encrypted for it too (pure)."""
    numbers = {
        key.removeprefix("keyring/").partition(".")[0]
        for key in given_up
        if key.startswith("keyring/")
    }
    needing = {
        key
        for key in keys
        if (found := ENCRYPTED.fullmatch(key)) is not None and found["key"] in numbers
    }
    return {*given_up, *needing}


class _Repair:
    """The steps of one repair."""

    def __init__(self, place: StatePlace, store: StateStore, damage: dict[str, Damage]) -> None:
        self._place = place
        self._store = store
        self.damage = damage
        self._log = EventLog(store, tolerates_damage=True)
        self._applied = _readable_spec(store)
        self._done: dict[str, str] = {}
        self._adopted: list[str] = []

    def find_identity(self) -> ClusterIdentity | None:
        """Return the identity of the state's cluster; None: there is nothing of any cluster.

        Raises:
            LifecycleError: there are objects of several clusters (GC1165).
        """
        try:
            found = self._store.read(IDENTITY_KEY, ClusterIdentity)
        except DamagedObjectError:
            found = None
        if found is not None:
            return found
        events = self._log.read()
        ids = {event.cluster for event in events if event.cluster}
        ids = ids or {entry.id for entry in remembered(self._place.state_url)}
        cluster = self._cluster("")
        if not ids or not events:
            sites = open_sites(cluster, repairing=True)
            remains = find_remains(cluster, sites, by_tag=True)
            if not remains and not self.damage:
                return None
            if not self.damage:  # the whole state is gone
                count = sum(len(each.items) for each in remains)
                problem = f"it is missing, and sites have {count} things of the cluster"
                self.damage[IDENTITY_KEY] = damage_of(IDENTITY_KEY, problem, self._store.target)
            ids = {each.cluster_id for each in remains} or ids or {cluster.id}
        if len(ids) > 1:
            raise failure(
                "GC1165",
                f"things of {len(ids)} clusters called {cluster.name} are there: "
                f"{', '.join(sorted(ids))}",
                hint="restore cluster.json from a backup of the state: it says which is this one",
            )
        made = min((event.time for event in events if event.actor), default=self._log.now())
        return ClusterIdentity(id=ids.pop(), name=cluster.name, created=made)

    def run(self, identity: ClusterIdentity, given_up: Collection[str]) -> None:
        """Repair; the cluster's sites are locked while anything but the identity is changed."""
        if FORMAT_KEY in self.damage or not self._store.get(FORMAT_KEY):
            self._store.write_format_again()
            self._note(FORMAT_KEY, "written again")
        if IDENTITY_KEY in self.damage:
            self._store.set_aside(IDENTITY_KEY)
            self._store.found(identity)
            self._note(IDENTITY_KEY, f"written again: this is cluster {identity.id}")
        for name, epoch in lost_epochs(self._log).items():
            if restore_epoch(self._store, name, epoch):
                self._note(epoch_key(name, epoch), "its number is kept")
        self._repair_locks()
        cluster = self._cluster(identity.id)
        names = (*cluster.spec.sites, BURST_LOCK)
        with acquire(self._store, names, reason="state repair") as lock:
            self._log.bind(run="", epochs=lock.epochs)
            self._set_aside(given_up)
            self._store_spec(cluster)
            self._accept()
            for site in open_sites(cluster, repairing=True):
                if not site.provider.has_stack:
                    self._adopt(cluster, site)

    def result(self) -> StateRepair:
        """Return what was done, and what is still damaged."""
        left = check_state(self._store).damage
        return StateRepair(
            target=self._store.target,
            state=self._store.url,
            done=dict(sorted(self._done.items())),
            adopted=tuple(self._adopted),
            left=left,
        )

    def _note(self, key: str, what: str) -> None:
        self._done[key] = what

    def _cluster(self, identity: str) -> Cluster:
        """Return the cluster as its newest readable spec, or else the file, has it."""
        spec, text, catalogs = self._spec()
        cluster = Cluster(
            spec=spec,
            text=text,
            spec_path=self._place.path,
            state_url=self._place.state_url,
            catalogs=catalogs,
        )
        cluster.store, cluster.events = self._store, self._log
        cluster.id = identity or digest(self._place.state_url, b"")[:16]
        return cluster

    def _spec(self) -> tuple[ClusterSpec, str, dict[str, bytes]]:
        applied, loaded = self._applied, self._place.loaded
        if applied is not None and (loaded is None or not self._lacks_spec()):
            old = load_text(applied.spec, file=f"{self._place.state_url}/spec.yaml", check=False)
            if old.spec is not None:
                return old.spec, applied.spec, applied.catalogs
        if loaded is None:
            raise failure(
                "GC906",
                f"the spec of the cluster is lost: neither the state nor {self._place.path} has it",
                hint=f"write {self._place.path} as it was applied, or restore applied/ from a "
                "backup of the state",
            )
        if loaded.spec is None:
            raise SpecError(loaded)
        catalogs = {f"{n:02d}.yaml": file.read_bytes() for n, file in enumerate(loaded.catalogs)}
        return loaded.spec, loaded.whole_text, catalogs

    def _lacks_spec(self) -> bool:
        number = applied_number(self._store)
        stored = Journal(self._log).stored_spec()
        return applied_key(number) in self.damage or (stored is not None and number < stored.number)

    def _repair_locks(self) -> None:
        """Write ends again; move aside what is no longer read. One that is held is kept."""
        for key in [key for key in self.damage if key.startswith("lock/")]:
            site, _, name = key.removeprefix("lock/").rpartition("/")
            number = name.removesuffix(RELEASED)
            if name.endswith(RELEASED) and number.isdecimal():
                write_end_again(self._store, site, int(number))
                self._note(key, "written again")
                continue
            state = lock_state(self._store, site)
            is_held = name.isdecimal() and state.held and int(name) == state.epoch
            if not is_held and key in self._store.list(f"lock/{site}"):
                self._note(key, f"moved to {self._store.set_aside(key)}")

    def _set_aside(self, given_up: Collection[str]) -> None:
        there = [key for prefix in ("secrets", *SEALED) for key in self._store.list(prefix)]
        for key in sorted(_with_secrets(given_up, there)):
            self._note(key, f"given up: moved to {self._store.set_aside(key)}")
        for key, item in self.damage.items():
            if item.remedy == "set aside" and key not in self._done:
                self._note(key, f"moved to {self._store.set_aside(key)}; {item.then}")

    def _store_spec(self, cluster: Cluster) -> None:
        """Store the spec again where the newest is gone, once all sites of the ledger are in it."""
        lost = self._lacks_spec()
        for key in [key for key in self.damage if key.startswith("applied/")]:
            is_there = key in self._store.list("applied")
            self._note(key, f"moved to {self._store.set_aside(key)}" if is_there else "given up")
        may_be_lost = any(key == IDENTITY_KEY or key.startswith("events/") for key in self.damage)
        if not lost and (self._applied is not None or not may_be_lost):
            return
        known = {item.site for item in cluster.ledger.existing()}
        known |= {intent.site for intent in cluster.ledger.open_intents()}
        if missing := sorted(known - cluster.spec.sites.keys()):
            raise failure(
                "GC906",
                f"{cluster.spec_path} lacks site {missing[0]}, where the cluster has resources",
                hint="write the site into it as it was applied, then repair again",
            )
        stored = Journal(self._log).stored_spec()
        applied = Applied(spec=cluster.spec_text, catalogs=dict(sorted(cluster.catalogs.items())))
        is_same = stored is not None and stored.sha256 == digest(
            applied_key(stored.number), msgspec.json.encode(applied)
        )
        store_applied(self._log, applied)
        key = applied_key(applied_number(self._store))
        source = cluster.spec_path if self._place.loaded is not None else "an earlier one"
        how = "what was applied last" if is_same else "which may differ from what was applied last"
        self._note(key, f"{REWRITTEN} from {source}, {how}")

    def _accept(self) -> None:
        """Let the log go on without the events that are lost."""
        lost = (event_number(key) for key in self.damage if key.startswith("events/"))
        events = {n: self.damage[event_key(n)].problem for n in lost if n is not None}
        objects = {key: what for key, what in self._done.items() if event_number(key) is None}
        if events or objects:
            self._log.append(DamageAccepted(events=events, objects=objects))
        for key in [key for key in self.damage if key.startswith("events/")]:
            self._note(key, "the log goes on without it")

    def _adopt(self, cluster: Cluster, site: OpenSite) -> None:
        """Write into the ledger what the site has of the cluster and the ledger lost."""
        known = cluster.ledger.known(site.name)
        pools = {
            node: name
            for name, pool in cluster.spec.pools.items()
            for node in pool_host_names(name, pool)
        }
        lost = [
            (Resource(kind=item.kind, name=item.name, pool=pools.get(item.name)), item.provider_id)
            for item in site.provider.sweep(site.context)
            if item.kind != "host" and item.provider_id not in known
        ]
        cluster.ledger.adopt(site.name, (("", resource, place) for resource, place in lost))
        self._adopted += [f"{site.name}: {resource.key}" for resource, _ in lost]


def _readable_spec(store: StateStore) -> Applied | None:
    """Return the newest applied spec that can be read."""
    for number in range(applied_number(store), 0, -1):
        try:
            if found := store.read(applied_key(number), Applied):
                return found
        except LifecycleError:
            continue
    return None
