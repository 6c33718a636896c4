"""Operations on nodes in the background: create, place, join, remove; each recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from .....schemas.derived.hostlist import fold as folded
from .calls import AgentEvent, CallPool
from .decide import grouped
from .ledger import BurstFold, BurstLedger, NodeRecord
from .scheduler import BurstScheduler, Seen
from .work import ProviderWork


class NodeOperations:
    """Runs the operations on nodes. What it knows beyond the ledger is queried after a kill."""

    def __init__(
        self,
        *,
        scheduler: BurstScheduler,
        work: ProviderWork,
        ledger: BurstLedger,
        call_pool: CallPool,
        say: Callable[[AgentEvent], None],
    ) -> None:
        """Set the parts; nothing is queried yet."""
        self._scheduler = scheduler
        self._work = work
        self._ledger = ledger
        self._call_pool = call_pool
        self._report = say
        self._places = Places()
        self._joined_ok: set[tuple[str, str]] = set()

    def go_on(self, records: tuple[NodeRecord, ...]) -> None:
        """Start the call that continues nodes from their state in the ledger."""
        work = {"requested": self._grow, "made": self._join, "leaving": self._shrink}
        converged = {(record.node, record.burst) for record in records} <= self._joined_ok
        if records[0].step == "made" and converged:
            return  # it only has to register
        self._begin(records, work[records[0].step])

    def place(self, seen: Seen) -> None:
        """Update the scheduler's addresses of nodes where they differ."""
        fold = self._ledger.read()
        wrong = self._places.wrong(fold, seen)
        if wrong:
            self._scheduler.place(wrong)
        busy = self._call_pool.busy()
        unknown = [each for each in self._places.unknown(fold) if each.node not in busy]
        for group in grouped(unknown):
            self._begin(group, self._query_addresses)

    def step(
        self,
        records: Collection[NodeRecord],
        step: str,
        reason: str = "",
        *,
        alone: bool | None = None,
    ) -> None:
        """Record a step of nodes, and report it."""
        self._ledger.step(records, step, reason, alone=alone)  # type: ignore[arg-type]  # a BurstStep
        names = folded([record.node for record in records])
        pool, option = (next(iter(records)).pool, next(iter(records)).option)
        self._report(AgentEvent(what=step, nodes=names, pool=pool, option=option, reason=reason))

    def _grow(self, records: tuple[NodeRecord, ...]) -> None:
        first, names = records[0], [record.node for record in records]
        made = self._work.grow(first.site, first.pool, names, first.option, first.burst)
        if made.unsure:
            self._report(AgentEvent(what="unsure", nodes=folded(names), reason=made.refusal))
            return
        there = [record for record in records if record.node in made.exist]
        missing = [record for record in records if record.node not in made.exist]
        if there:
            self.step(there, "made")
        if missing:
            self.step(missing, "refused", made.refusal, alone=not first.alone)
        if there:
            self._join(tuple(there))

    def _join(self, records: tuple[NodeRecord, ...]) -> None:
        addresses = self._query_addresses(records)
        if not addresses:
            return
        self._scheduler.place(addresses)
        failed = self._work.join(records[0].site, list(addresses))
        for name, reason in failed.items():
            self._report(AgentEvent(what="not-joined-yet", nodes=name, reason=reason))
        done = addresses.keys() - failed.keys()
        self._joined_ok |= {(r.node, r.burst) for r in records if r.node in done}

    def _shrink(self, records: tuple[NodeRecord, ...]) -> None:
        names = [record.node for record in records]
        if self._work.shrink(records[0].site, names):
            self._joined_ok -= {(record.node, record.burst) for record in records}
            self.step(records, "gone", records[0].reason)
            self._scheduler.end_power_down(names)

    def _query_addresses(self, records: tuple[NodeRecord, ...]) -> dict[str, str]:
        site, names = records[0].site, [record.node for record in records]
        addresses = self._work.addresses(site, names)
        self._places.learn(records, addresses)
        return addresses

    def _begin(
        self, records: tuple[NodeRecord, ...], call: Callable[[tuple[NodeRecord, ...]], object]
    ) -> None:
        self._call_pool.start([record.node for record in records], lambda: call(records))


class Places:
    """What the providers returned for each machine that was queried."""

    def __init__(self) -> None:
        """Start empty: a restarted agent queries again."""
        self._addresses: dict[str, tuple[str, str]] = {}
        """Node -> (burst, address); background calls add to it."""

    def learn(self, records: Collection[NodeRecord], addresses: Mapping[str, str]) -> None:
        """Store what a provider returned for nodes that it created."""
        for record in records:
            if record.node in addresses:
                self._addresses[record.node] = (record.burst, addresses[record.node])

    def unknown(self, fold: BurstFold) -> tuple[NodeRecord, ...]:
        """Return the nodes that take jobs and whose provider was not queried."""
        return tuple(
            record
            for record in fold.nodes.values()
            if record.step == "joined"
            and self._addresses.get(record.node, ("",))[0] != record.burst
        )

    def wrong(self, fold: BurstFold, seen: Seen) -> dict[str, str]:
        """Return node -> its address, of those whose address in the scheduler differs."""
        found: dict[str, str] = {}
        for name, (burst, address) in list(self._addresses.items()):
            record, node = fold.nodes.get(name), seen.nodes.get(name)
            is_it = record is not None and record.burst == burst
            if is_it and node is not None and node.state == "here" and node.address:
                found |= {name: address} if node.address != address else {}
        return found
