"""Waiting for host keys: once for each machine, as long as the provider says, and never again."""

from __future__ import annotations

from pathlib import Path

from gcluster.stacks.io.ssh import Waiting, await_host_keys

KEY = ("ssh-ed25519 AAAA",)
LONG = Waiting(patience_s=3600.0, pause_s=0.0)
SHORT = Waiting(patience_s=0.01, pause_s=0.0)


class Cloud:
    """Counts the queries of each machine; a machine returns its key from some query on."""

    def __init__(self, **tells_at: int) -> None:
        """Take machine -> number of the look that shows its key; 0: none ever does."""
        self.tells_at = tells_at
        self.calls: dict[str, int] = {}

    def read(self, machine: str) -> tuple[str, ...]:
        """Return a machine's key where it has it now."""
        self.calls[machine] = self.calls.get(machine, 0) + 1
        at = self.tells_at[machine]
        return KEY if at and self.calls[machine] >= at else ()


def test_a_machine_that_is_still_starting_is_waited_for(tmp_path: Path) -> None:
    cloud, answer = Cloud(a=1, b=3), list[tuple[int, int]]()
    waiting = Waiting(patience_s=3600.0, pause_s=0.0, progress=lambda *now: answer.append(now))
    found = await_host_keys("ab", cloud.read, cache=tmp_path / "k.json", waiting=waiting)
    assert found.keys == {"a": KEY, "b": KEY}
    assert found.silent == {}
    assert cloud.calls == {"a": 1, "b": 3}
    assert answer == [(1, 2), (1, 2), (2, 2)]


def test_one_silent_machine_takes_no_other_with_it(tmp_path: Path) -> None:
    found = await_host_keys("ab", Cloud(a=1, b=0).read, cache=tmp_path / "k.json", waiting=SHORT)
    assert found.keys == {"a": KEY}
    assert found.silent == {"b": SHORT.patience_s}


def test_a_silent_machine_is_checked_again_and_not_waited_for_again(tmp_path: Path) -> None:
    cache = tmp_path / "k.json"
    await_host_keys("b", Cloud(b=0).read, cache=cache, waiting=SHORT)
    later = Cloud(b=0)
    again = await_host_keys("b", later.read, cache=cache, waiting=LONG)
    assert again.silent == {"b": SHORT.patience_s}
    assert later.calls == {"b": 1}
    assert await_host_keys("b", Cloud(b=1).read, cache=cache, waiting=LONG).keys == {"b": KEY}
    assert await_host_keys("b", Cloud(b=0).read, cache=cache, waiting=LONG).silent == {}


def test_a_machine_in_the_place_of_a_silent_one_is_waited_for(tmp_path: Path) -> None:
    cache = tmp_path / "k.json"
    await_host_keys("b", Cloud(b=0).read, cache=cache, waiting=SHORT)
    cloud = Cloud(b=0, c=4)
    assert await_host_keys("bc", cloud.read, cache=cache, waiting=LONG).keys == {"c": KEY}
    assert cloud.calls["c"] == 4


def test_a_key_that_was_read_stays_whatever_the_machine_shows_later(tmp_path: Path) -> None:
    cache = tmp_path / "k.json"
    await_host_keys("a", Cloud(a=1).read, cache=cache)
    assert await_host_keys("a", lambda _: ("other",), cache=cache).keys == {"a": KEY}
