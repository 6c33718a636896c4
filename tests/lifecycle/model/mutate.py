"""Takes what protects a cluster out, piece by piece: `make mutate-lifecycle`.

Without each of them the model must find a broken law. What it can't find, nothing here proves.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from unittest.mock import patch

from gcluster.lifecycle.state import EventLog, IntentsStored, Ledger
from gcluster.stacks.simulated import fleet
from gcluster.stacks.simulated.cloud import Cloud
from gcluster.stacks.simulated.provider import SimulatedProvider

from .machine import Runs
from .search import emit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from gcluster.lifecycle.state import Event, Known

    Mutation = AbstractContextManager[object]

MOST = 2000
"""Runs until a mutation counts as unnoticed."""


def _without_intents() -> Mutation:
    append = EventLog.append_decided

    def append_decided(
        log: EventLog, decide: Callable[[], Known | None], **epochs: Mapping[str, int] | None
    ) -> Event | None:
        body = decide()
        return None if isinstance(body, IntentsStored) else append(log, lambda: body, **epochs)

    return patch.object(EventLog, "append_decided", append_decided)


def _without_fence() -> Mutation:
    return patch.object(EventLog, "refuse_lost", lambda *_: None)


def _without_sweep() -> Mutation:
    return patch.object(SimulatedProvider, "sweep", lambda *_: ())


def _without_settling() -> Mutation:
    return patch.object(fleet, "settle", lambda *_, **__: None)


def _without_waiting() -> Mutation:
    return patch.object(Cloud, "catch_up", lambda *_: None)


def _without_results() -> Mutation:
    return patch.object(Ledger, "created_many", lambda *_: None)


MUTATIONS: dict[str, Callable[[], Mutation]] = {
    "the write of intents before a call": _without_intents,
    "the record of what a call made": _without_results,
    "the fencing check of every write": _without_fence,
    "the sweep at the end of down": _without_sweep,
    "the settling of what a killed run left": _without_settling,
    "the wait for a listing that lags": _without_waiting,
}


def found_without(mutation: Callable[[], Mutation], runs: int = MOST, seed: int = 1) -> str:
    """Return which law broke without a part; "": none did."""
    try:
        with mutation():
            emit(runs, seed, shrinks=False)
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


def main() -> int:
    """Print a line a mutation; exit non-zero when one could go unnoticed."""
    unnoticed = 0
    for what, mutation in MUTATIONS.items():
        answer = found_without(mutation)
        unnoticed += not answer
        run = f"run {Runs.counts['runs']}"
        sys.stdout.write(f"without {what}: {f'{run}: {answer}' if answer else 'UNNOTICED'}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(MUTATIONS)} parts, {unnoticed} of them could go unnoticed\n")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
