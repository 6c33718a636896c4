"""The world of the model: what runs in it is the lifecycle itself, `up`, `down`, growth and all."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.operations.burst.lock import LOCK as BURST_LOCK
from gcluster.lifecycle.state import (
    EventLog,
    StateStore,
    acquire,
    lock_state,
    newest_applied,
    unlock,
)
from gcluster.lifecycle.state import lock as locks
from gcluster.lifecycle.state.ledger import LedgerFold
from gcluster.lifecycle.up.up import up
from gcluster.schemas.spec import SimulatedSite
from gcluster.schemas.spec.sites import SimulatedFaults
from gcluster.stacks.provider import ProviderError

from .faults import Fault, Killed, Process
from .places import Objects, counter, empty
from .spec import ELASTIC, SPEC, parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gcluster.stacks.provider import Provider, SiteContext
    from gcluster.stacks.simulated.cloud import Node, Order

_ALLOWED = frozenset({"pool:gpu", "pool:head", "controller:head"})
_MOST_TRIES = 4
"""Creations that one process may request per node (`_TRIES` of the provider)."""
_SITES = ("lab", BURST_LOCK)


class Broken(AssertionError):  # noqa: N818  # reads as the fact that it is
    """One of the laws doesn't hold."""


class World:
    """One cluster's store and site, and all processes that ever worked on it."""

    def __init__(self, folder: Path, lab: SimulatedSite) -> None:
        """Begin with nothing; `simulated_site` has the faults."""
        self.folder = folder
        self.lab = lab
        self.objects: dict[str, bytes] = {}
        self.now = 1_900_000_000.0
        self.calls = counter()
        self.processes: list[Process] = []
        self.is_fair = False
        """Whether the site's faults have ended: everything that is requested comes."""
        self.happened: Counter[str] = Counter()
        self.late: set[str] = set()
        """Tokens of calls that were under way when their process lost its lock."""
        self._running: list[Process] = []
        self._owners: dict[int, tuple[object, Process]] = {}
        self._store = StateStore(Objects(self.objects), url="memory")
        self._log = EventLog(self._store)
        self._fold = LedgerFold()
        self.machines = empty(self._store.identify("trial").id)

    @property
    def began(self) -> bool:
        """Whether an `up` was ever begun."""
        return newest_applied(self._store) is not None

    # What processes do

    def up(self, count: int, fault: Fault | None = None) -> Exit | None:
        """Run `up` for so many nodes; None: the process was killed."""
        return self._run(fault, lambda process: self._up(process, count))

    def down(self, fault: Fault | None = None) -> Exit | None:
        """Run `down`."""
        return self._run(fault, self._down)

    def grow(self, names: Iterable[str], fault: Fault | None = None) -> Exit | None:
        """Make elastic nodes as the burst agent does."""
        wanted = tuple(names)
        return self._agent(
            fault, lambda site, context: site.grow(context, "spill", wanted, "-".join(wanted))
        )

    def shrink(self, names: Iterable[str], fault: Fault | None = None) -> Exit | None:
        """Remove elastic nodes as the burst agent does."""
        wanted = tuple(names)
        return self._agent(fault, lambda site, context: site.shrink(context, wanted))

    def take_over(self, process: Process, count: int | None) -> None:
        """Have others take the locks of a process that is paused, and work."""
        self.happened["paused"] += 1
        for site in _SITES:
            state = lock_state(self._store, site)
            if state.held:
                process.has_lost_its_lock = True
                unlock(self._store, site, state.epoch)
        if count is None:
            self.down()
        else:
            self.up(count)
        self._look()
        process.overtaken_at = self._fold.seq

    def lose(self, number: int) -> None:
        """Have a machine go away by itself."""
        names = sorted(self.machines.nodes)
        del self.machines.nodes[names[number % len(names)]]

    def clear_up(self) -> None:
        """Have nothing go wrong from now on; a listing lags as before."""
        calm = SimulatedFaults(listing_lag=self.lab.faults.listing_lag)
        self.lab = msgspec.structs.replace(self.lab, faults=calm, max_nodes=None)
        self.is_fair = True
        # A late elastic node is found by the agent that requests its name, or by `down`; not by up.
        nodes = self.machines.nodes.values()
        unseen = {node.token for node in nodes if not self._is_listed(node)}
        self.late &= unseen | {node.token for node in nodes if node.name in ELASTIC}

    def at_work(self) -> int:
        """Return the number of the process that is at work; 0: none is."""
        return self._running[-1].number if self._running else 0

    def owner(self, ledger: object) -> Process:
        """Return the process that a ledger belongs to."""
        return self._owners[id(ledger)][1]

    # What must hold at each request

    def judge(self, process: Process, orders: list[Order]) -> None:
        """Look at an order of machines before it is carried out."""
        self._look()
        by_name = {node.name: node for node in self.machines.nodes.values()}
        process.calls += len(orders)
        for order in orders:
            if order.token not in self._fold.intents:
                raise Broken(f"{order.name} is asked for, and no intent is on record")
            if process.has_lost_its_lock:
                self.late.add(order.token)
            there = by_name.get(order.name)
            both = {order.token} if there is None else {order.token, there.token}
            if len(both) > 1 and not both & self.late:
                raise Broken(f"{order.name} is there, and a second one is asked for")
        if process.calls > _MOST_TRIES * 2 * len(self._wanted(4)):
            raise Broken(f"process {process.number} asked for {process.calls} machines")

    # What must hold between two runs

    def check(self) -> None:
        """Look at all that is on record, and at what is there."""
        self._look()
        numbers = [event.seq for event in self._log.known()]
        if numbers != list(range(1, len(numbers) + 1)):
            raise Broken("an event is missing")
        known = {item.provider_id for item in self._fold.existing.values()}
        for node in self.machines.nodes.values():
            if node.token not in self._fold.intents:
                raise Broken(f"{node.name} has no intent")
            place = ("lab", f"node/{node.name}")
            is_open = self._fold.open.get(place)
            is_meant = is_open is not None and is_open.id == node.token
            if node.id not in known and not is_meant and node.token not in self.late:
                raise Broken(f"{node.name} is on no record: an orphan")
        if self.machines.nodes.keys() - self._wanted(4):
            raise Broken(f"more is there than was ever asked for: {sorted(self.machines.nodes)}")

    def settled(self, count: int) -> None:
        """Look closer, after an `up` that says that all is well: one node a pool is enough."""
        self._look()
        nodes = self.machines.nodes.values()
        unseen = {n.name for n in nodes if n.token in self.late and not self._is_listed(n)}
        fixed = {node.name for node in nodes if node.name not in ELASTIC}
        all_of_them = {"head", *(f"gpu{n:03d}" for n in range(1, count + 1))}
        fixed -= unseen - all_of_them
        if fixed - all_of_them or len(fixed) < 2 or (self.is_fair and fixed != all_of_them):
            raise Broken(f"up ended well with {sorted(fixed)}")
        booked = {e.key.removeprefix("node/"): e.provider_id for e in self._fold.existing.values()}
        there = {node.name: node.id for node in self.machines.nodes.values()}
        for name in fixed:
            if booked.get(name) != there[name]:
                raise Broken(f"up ended well, and {name} is not on record")
        if extra := booked.keys() - there.keys() - {*ELASTIC}:
            raise Broken(f"up ended well, and the ledger has what isn't there: {sorted(extra)}")
        if left := [i.resource_key for i in self._fold.open.values() if i.pool != "spill"]:
            raise Broken(f"up ended well, and intents are open: {left}")

    def gone(self) -> None:
        """Look closer, after a `down` that says that nothing is left."""
        self._look()
        left = [n.name for n in self.machines.nodes.values() if n.token not in self.late]
        if left:
            raise Broken(f"down ended well, and {left} are there")
        if not self.late and (self._fold.existing or self._fold.open):
            raise Broken("down ended well, and the ledger doesn't know")

    def _is_listed(self, node: Node) -> bool:
        lag = self.lab.faults.listing_lag
        return lag is None or node.made + lag.value <= self.now

    def _look(self) -> None:
        self._fold.apply(self._log.read(since=self._fold.seq))

    def _wanted(self, count: int) -> set[str]:
        return {"head", *(f"gpu{n:03d}" for n in range(1, count + 1)), *ELASTIC}

    # How processes are run

    def _run(self, fault: Fault | None, act: Callable[[Process], Exit]) -> Exit | None:
        process = Process(self, len(self.processes) + 1, fault)
        self.processes.append(process)
        self._break_locks_of_killed()
        self._running.append(process)
        self.happened["runs"] += 1
        try:
            return act(process)
        except Killed:
            self.happened["killed"] += 1
            return None
        except LifecycleError as error:
            return error.exit_code
        except ProviderError:
            return Exit.FAILED
        finally:
            self._running.pop()
            self.happened["moments"] += process.passed

    def _up(self, process: Process, count: int) -> Exit:
        cluster = self._open(process, SPEC.format(count=count))
        code = up(cluster, silent, confirm=lambda _: True, allow=_ALLOWED).exit_code
        if code is Exit.OK and self._did(process):
            self.settled(count)
        return code

    def _down(self, process: Process) -> Exit:
        applied = newest_applied(self._store)
        text = SPEC.format(count=1) if applied is None else applied.spec
        if self.is_fair:
            self.late.clear()
        code = down(self._open(process, text), silent, confirm=lambda _: True).exit_code
        if code is Exit.OK and self._did(process):
            self.gone()
        return code

    def _did(self, process: Process) -> bool:
        """Whether what is there is of this process: no other took its lock or worked later."""
        self._look()
        return not process.has_lost_its_lock and process.overtaken_at != self._fold.seq

    def _agent(
        self, fault: Fault | None, act: Callable[[Provider, SiteContext], object]
    ) -> Exit | None:
        def work(process: Process) -> Exit:
            applied = newest_applied(self._store)
            if applied is None:
                return Exit.REFUSED
            cluster = self._open(process, applied.spec)
            with acquire(cluster.store, [BURST_LOCK], reason="burst agent") as lock:
                cluster.events.bind(run="", epochs=lock.epochs)
                (site,) = open_sites(cluster)
                act(site.provider, site.context)
            return Exit.OK

        return self._run(fault, work)

    def _open(self, process: Process, text: str) -> Cluster:
        spec = msgspec.structs.replace(parsed(text), sites={"lab": self.lab})
        cluster = Cluster(
            spec=spec, text=text, spec_path=self.folder / "trial.yaml", state_url="file:///nowhere"
        )
        store = StateStore(Objects(self.objects, process), url="memory")
        applied = newest_applied(self._store)
        cluster.__dict__["store"] = store
        clock = lambda: datetime.fromtimestamp(self.now, UTC)  # noqa: E731
        cluster.__dict__["events"] = EventLog(store, clock=clock)
        cluster.__dict__["applied_spec"] = None if applied is None else parsed(applied.spec)
        self._owners[id(cluster.ledger)] = (cluster.ledger, process)
        return cluster

    def _break_locks_of_killed(self) -> None:
        """Do what a person does who knows that a process of another machine is dead."""
        if self._running:
            return
        for site in _SITES:
            state = lock_state(self._store, site)
            if locks.is_held(self._store, site, state.epoch):
                unlock(self._store, site, state.epoch)
