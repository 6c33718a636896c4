"""Any interleaving of processes over one log gives the same result, and loses no record."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from obstore.store import MemoryStore

from gcluster.lifecycle.state import (
    EventLog,
    Journal,
    Ledger,
    RunFinished,
    RunStarted,
    StateStore,
)
from gcluster.lifecycle.state.bucket import ObstoreBucket
from gcluster.stacks.provider import Resource

NODES = [Resource(kind="node", name=f"gpu{n:03d}", pool="gpu") for n in range(1, 4)]


class Interleavings(RuleBasedStateMachine):
    """Three processes share one log; a model says what each of them must see."""

    @initialize()
    def start(self) -> None:
        """Start with three processes that know nothing of each other."""
        self.store = StateStore(ObstoreBucket(MemoryStore(), "memory"), url="memory")
        self.logs = [EventLog(self.store) for _ in range(3)]
        self.ledgers = [Ledger(log) for log in self.logs]
        self.open: dict[tuple[str, str], str] = {}
        self.ever: dict[str, tuple[str, str]] = {}
        self.existing: set[tuple[str, str, str]] = set()
        self.runs: dict[str, str] = {}
        self.ids = 0

    process = st.integers(0, 2)
    site = st.sampled_from(["a", "b"])
    node = st.sampled_from(NODES)

    @rule(process=process, site=site, node=node)
    def intend(self, process: int, site: str, node: Resource) -> None:
        """An open intent comes back; otherwise a new one is made."""
        intent = self.ledgers[process].intend(site, node)
        expected = self.open.get((site, node.key))
        assert intent == expected or (expected is None and intent not in self.ever)
        self.open[site, node.key] = intent
        self.ever[intent] = (site, node.key)

    @rule(process=process, site=site, nodes=st.lists(node, max_size=5))
    def intend_many(self, process: int, site: str, nodes: list[Resource]) -> None:
        """The same in bulk, with repetitions."""
        for key, intent in self.ledgers[process].intend_many(site, nodes).items():
            assert self.open.get((site, key), intent) == intent
            self.open[site, key] = intent
            self.ever[intent] = (site, key)

    @rule(process=process, data=st.data())
    def create(self, process: int, data: st.DataObject) -> None:
        """Any intent that ever was may turn out to have created something, also late."""
        if not self.ever:
            return
        intent = data.draw(st.sampled_from(sorted(self.ever, key=list(self.ever).index)))
        self.ids += 1
        self.ledgers[process].created(intent, f"i-{self.ids}")
        self._close(intent)
        self.existing.add((*self.ever[intent], f"i-{self.ids}"))

    @rule(process=process, data=st.data())
    def fail(self, process: int, data: st.DataObject) -> None:
        """A failure closes an intent and removes nothing that exists."""
        if not self.ever:
            return
        intent = data.draw(st.sampled_from(sorted(self.ever, key=list(self.ever).index)))
        self.ledgers[process].failed(intent, "no capacity")
        self._close(intent)

    @rule(process=process, data=st.data())
    def delete(self, process: int, data: st.DataObject) -> None:
        """What exists goes away by its id."""
        if not self.existing:
            return
        gone = data.draw(st.sampled_from(sorted(self.existing)))
        self.ledgers[process].deleted(*gone)
        self.existing.remove(gone)

    @rule(process=process)
    def begin(self, process: int) -> None:
        """A run begins in one process; what was run there before stays without an end."""
        run = f"r{len(self.runs)}"
        self.runs[run] = "interrupted"
        self.logs[process].bind(run=run, epochs={})
        self.logs[process].append(RunStarted(command="up", spec_hash=""))

    @rule(process=process)
    def finish(self, process: int) -> None:
        """The run of one process ends."""
        log = self.logs[process]
        event = log.append(RunFinished(outcome="ok", exit_code=0))
        if event.run:
            self.runs[event.run] = "finished"

    @rule(process=process)
    def restart(self, process: int) -> None:
        """A process is killed; another comes in its place and knows only the store."""
        self.logs[process] = EventLog(self.store)
        self.ledgers[process] = Ledger(self.logs[process])

    @invariant()
    def every_process_sees_the_model(self) -> None:
        """No record is lost, and all agree."""
        for ledger in self.ledgers:
            assert {(i.site, i.resource_key): i.id for i in ledger.open_intents()} == self.open
            assert {(e.site, e.key, e.provider_id) for e in ledger.existing()} == self.existing
            assert len(ledger.existing()) == len(self.existing)
        runs = {run.id: run.state for run in Journal(self.logs[0]).runs()}
        assert runs == self.runs

    @invariant()
    def the_numbers_have_no_gaps(self) -> None:
        """Each event has the number after the one before it."""
        numbers = [event.seq for event in EventLog(self.store).read()]
        assert numbers == list(range(1, len(numbers) + 1))

    def _close(self, intent: str) -> None:
        if self.open.get(self.ever[intent]) == intent:
            del self.open[self.ever[intent]]


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
