"""The ledger: no record lost, intents come first, and any interleaving gives the same result."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.state import (
    EventLog,
    Ledger,
    StateStore,
    acquire,
    unlock,
)
from gcluster.lifecycle.state.bucket import ObstoreBucket
from gcluster.lifecycle.state.ledger import LedgerFold
from gcluster.stacks import provider

NODES = [provider.Resource(kind="node", name=f"gpu{n:03d}", pool="gpu") for n in range(1, 4)]


@pytest.fixture
def ledger(store: StateStore) -> provider.Ledger:
    return Ledger(EventLog(store))


def _memory() -> StateStore:
    return StateStore(ObstoreBucket(MemoryStore(), "memory"), url="memory")


def test_the_ledger_is_what_providers_take(ledger: provider.Ledger) -> None:
    intent = ledger.intend("site", NODES[0])
    ledger.created(intent, "id-1")
    ledger.deleted("site", NODES[0].key, "id-1")


def test_an_open_intent_is_returned_again_also_to_another_process(store: StateStore) -> None:
    first, second = Ledger(EventLog(store)), Ledger(EventLog(store))
    intent = first.intend("site", NODES[0])
    assert second.intend("site", NODES[0]) == intent
    assert first.intend("site", NODES[0]) == intent
    assert first.intend("other-site", NODES[0]) != intent
    assert first.intend("site", NODES[1]) != intent


def test_an_intent_is_in_the_store_before_intend_returns(store: StateStore) -> None:
    Ledger(EventLog(store)).intend("site", NODES[0])
    (open_intent,) = Ledger(EventLog(store)).open_intents()
    assert (open_intent.resource_key, open_intent.pool) == ("node/gpu001", "gpu")


def test_a_created_resource_exists_until_it_is_deleted(store: StateStore) -> None:
    ledger = Ledger(EventLog(store))
    ledger.created(ledger.intend("site", NODES[0]), "i-1")
    (found,) = ledger.existing()
    assert (found.key, found.provider_id, found.site) == ("node/gpu001", "i-1", "site")
    assert ledger.open_intents() == ()
    ledger.deleted("site", "node/gpu001", "i-1")
    assert ledger.existing() == ()


def test_a_replacement_exists_together_with_what_it_replaces(store: StateStore) -> None:
    ledger = Ledger(EventLog(store))
    ledger.created(ledger.intend("site", NODES[0]), "old")
    intent = ledger.intend("site", NODES[0])
    ledger.deleted("site", "node/gpu001", "old")
    assert [i.id for i in ledger.open_intents()] == [intent]
    ledger.created(intent, "new")
    assert [e.provider_id for e in ledger.existing()] == ["new"]


def test_what_was_created_by_a_killed_run_is_closed_by_its_deletion(store: StateStore) -> None:
    ledger = Ledger(EventLog(store))
    ledger.intend("site", NODES[0])
    ledger.deleted("site", "node/gpu001", "i-1")
    assert ledger.open_intents() == ()


def test_a_failed_intent_is_closed_and_the_next_one_is_new(store: StateStore) -> None:
    ledger = Ledger(EventLog(store))
    intent = ledger.intend("site", NODES[0])
    ledger.failed(intent, "no capacity")
    assert ledger.open_intents() == ()
    assert ledger.intend("site", NODES[0]) != intent


def test_failing_after_creating_does_not_lose_the_resource(store: StateStore) -> None:
    ledger = Ledger(EventLog(store))
    intent = ledger.intend("site", NODES[0])
    ledger.created(intent, "i-1")
    ledger.failed(intent, "it did not come up")
    assert [e.provider_id for e in ledger.existing()] == ["i-1"]


def test_a_result_without_an_intent_is_refused(store: StateStore) -> None:
    ledger = Ledger(EventLog(store))
    with pytest.raises(ValueError, match="no such intent: made-up"):
        ledger.created("made-up", "i-1")
    with pytest.raises(ValueError, match="no such intent: made-up"):
        ledger.failed("made-up", "why")
    assert EventLog(store).read() == ()


def test_settling_a_site_closes_all_but_what_is_left_there(store: StateStore) -> None:
    ledger = Ledger(EventLog(store))
    intents = ledger.intend_many("site", NODES)
    ledger.created_many({intents[NODES[0].key]: "i-1", intents[NODES[1].key]: "i-2"})
    elsewhere = ledger.intend("other", NODES[0])
    ledger.settle("site", left=["i-2"])
    assert [e.provider_id for e in ledger.existing()] == ["i-2"]
    assert [i.id for i in ledger.open_intents()] == [elsewhere]
    written = len(EventLog(store).read())
    ledger.settle("site", left=["i-2"])
    assert len(EventLog(store).read()) == written


def test_ten_thousand_nodes_are_intended_and_created_in_two_objects() -> None:
    store = _memory()
    ledger = Ledger(EventLog(store))
    nodes = [provider.Resource(kind="node", name=f"n{number}") for number in range(10_000)]
    intents = ledger.intend_many("site", nodes)
    ledger.created_many({intent: key for key, intent in intents.items()})
    assert len(store.list("events")) == 2
    assert len(Ledger(EventLog(store)).existing()) == 10_000


def test_what_threads_report_while_an_event_is_written_goes_into_one_event() -> None:
    class Slow(ObstoreBucket):
        def create(self, key: str, data: bytes) -> None:
            time.sleep(0.02)
            super().create(key, data)

    store = StateStore(Slow(MemoryStore(), "slow"), url="slow")
    ledger = Ledger(EventLog(store))
    together = threading.Barrier(50)

    def make(number: int) -> str:
        together.wait()
        intent = ledger.intend("site", provider.Resource(kind="node", name=f"n{number}"))
        ledger.created(intent, f"i-{number}")
        return f"i-{number}"

    with ThreadPoolExecutor(50) as threads:
        made = set(threads.map(make, range(50)))
    assert {e.provider_id for e in Ledger(EventLog(store)).existing()} == made
    assert len(store.list("events")) < 50


def test_an_error_of_the_writer_reaches_the_caller_and_the_next_call_works(
    store: StateStore,
) -> None:
    log = EventLog(store)
    ledger = Ledger(log)
    with acquire(store, ["site"], reason="up") as lock:
        log.bind(run="r", epochs=lock.epochs)
        unlock(store, "site", 1)
        with pytest.raises(LifecycleError):
            ledger.intend("site", NODES[0])
    with acquire(store, ["site"], reason="up") as lock:
        log.bind(run="r", epochs=lock.epochs)
        assert ledger.intend("site", NODES[0])


def test_processes_that_race_get_the_same_intents(
    url: str, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    actors = [start_actor("intend", url) for _ in range(5)]
    answers = {actor.communicate()[0] for actor in actors}
    assert [actor.returncode for actor in actors] == [0] * 5
    assert len(answers) == 1
    assert len(Ledger(EventLog(StateStore.open(url))).open_intents()) == 10


@given(cuts=st.lists(st.integers(0, 12)), again=st.integers(0, 12))
@settings(max_examples=50)
def test_folding_in_pieces_or_twice_gives_the_same_as_folding_at_once(
    cuts: list[int], again: int
) -> None:
    log = EventLog(_memory())
    ledger = Ledger(log)
    for node in NODES:
        ledger.created(ledger.intend("a", node), node.name)
        ledger.intend("b", node)
        ledger.deleted("a", node.key, node.name)
    events = log.read()
    whole, pieces = LedgerFold(), LedgerFold()
    whole.apply(events)
    begin = 0
    for end in [*sorted(cuts), len(events)]:
        pieces.apply(events[begin:end])
        begin = end
    pieces.apply(events[:again])
    assert (pieces.open, pieces.existing, pieces.seq) == (whole.open, whole.existing, whole.seq)
