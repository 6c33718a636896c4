"""A process of its own that works on a state: what the race and kill tests start and kill."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import EventLog, Ledger, StageDone, StateStore, acquire
from gcluster.stacks.provider import Resource


def race(url: str, rounds: str, counter: str, pause: str = "0.05") -> None:
    """Take the lock `rounds` times; inside, add 1 to a counter in a way that loses races.

    Who finds it held tries again within `pause` seconds: a server of one thread takes its time.
    """
    store = StateStore.open(url)
    left = int(rounds)
    print("ready", flush=True)  # noqa: T201 - the test waits for it
    while not Path(f"{counter}.go").exists():
        time.sleep(0.01)
    while left:
        try:
            with acquire(store, ("site",), reason="race"):
                guard = os.open(f"{counter}.guard", os.O_CREAT | os.O_EXCL)
                value = int(Path(counter).read_text())
                time.sleep(0.001)
                Path(counter).write_text(str(value + 1))
                os.close(guard)
                Path(f"{counter}.guard").unlink()
                left -= 1
        except LifecycleError as error:
            if error.exit_code is not Exit.LOCKED:
                raise
            time.sleep(random.random() * float(pause))  # noqa: S311 - no secret depends on it


def hold(url: str) -> None:
    """Take the lock, say so, and wait to be killed."""
    with acquire(StateStore.open(url), ("site",), reason="up"):
        _wait()


def churn(url: str) -> None:
    """Take and release the lock until killed."""
    store = StateStore.open(url)
    print("ready", flush=True)  # noqa: T201 - the test waits for it
    while True:
        with acquire(store, ("site",), reason="churn"):
            pass


def append(url: str, count: str) -> None:
    """Append events."""
    log = EventLog(StateStore.open(url))
    for number in range(int(count)):
        log.append(StageDone(stage=str(os.getpid()), ok=True, summary=str(number)))


def intend(url: str) -> None:
    """Intend the same ten nodes as every other process; print the ids."""
    ledger = Ledger(EventLog(StateStore.open(url)))
    nodes = [Resource(kind="node", name=f"n{number}") for number in range(10)]
    print(*(ledger.intend("site", node) for node in nodes), flush=True)  # noqa: T201 - the answer


def identify(url: str, keys: str) -> None:
    """Print the cluster's id, and make and reveal a secret."""
    store = StateStore.open(url)
    identity = store.identify("demo").id
    vault = SecretVault.open(store, None, identity, Path(keys))
    vault.ensure("munge", lambda: os.urandom(16))
    print(identity, vault.reveal("munge").hex(), flush=True)  # noqa: T201 - the answer


def materialise(url: str, keys: str) -> None:
    """Have a secret as a file, and wait to be killed."""
    vault = SecretVault.open(StateStore.open(url), None, "id", Path(keys))
    vault.ensure("munge", lambda: b"secret")
    with vault.materialise(["munge"]):
        _wait()


def _wait() -> None:
    print("ready", flush=True)  # noqa: T201 - the test waits for it
    time.sleep(600)


ACTIONS = (race, hold, churn, append, intend, identify, materialise)

if __name__ == "__main__":
    {action.__name__: action for action in ACTIONS}[sys.argv[1]](*sys.argv[2:])
