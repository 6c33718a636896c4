"""The model's two places: a store of objects and a cloud of machines, both in memory, both honest.

Each is opened by one process, whose faults strike at every write and every call. What really is
there is seen past all of them.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from gcluster.lifecycle.state.bucket import AlreadyExists
from gcluster.stacks.simulated.cloud import Answer, Cloud, Node, Order, _File

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gcluster.schemas.spec import SimulatedSite

    from .faults import Process
    from .world import World


class Objects:
    """The store, as one process reaches it."""

    def __init__(self, objects: dict[str, bytes], process: Process | None = None) -> None:
        """Open it; without a process nothing goes wrong."""
        self._objects = objects
        self._process = process

    def create(self, key: str, data: bytes) -> None:
        """Write a new object."""
        if self._process:
            self._process.before("write")
        if key in self._objects:
            raise AlreadyExists(key)
        self._objects[key] = data
        if self._process:
            self._process.after("write")

    def replace(self, key: str, data: bytes) -> None:
        """Write an object whole."""
        if self._process:
            self._process.before("write")
        self._objects[key] = data

    def get(self, key: str) -> bytes | None:
        """Read one."""
        if self._process:
            self._process.raise_if_killed()
        return self._objects.get(key)

    def list(self, prefix: str, after: str | None = None) -> list[str]:
        """Return the keys below a prefix."""
        if self._process:
            self._process.raise_if_killed()
        return sorted(
            key
            for key in self._objects
            if key.startswith(f"{prefix}/") and (after is None or key > after)
        )

    def delete(self, key: str) -> None:
        """Remove one."""
        if self._process:
            self._process.before("delete")
        self._objects.pop(key, None)


class Machines(Cloud):
    """The simulated site in memory, as one process reaches it; its clock is the world's."""

    def __init__(self, world: World, process: Process, site: SimulatedSite, owner: str) -> None:
        """Open it."""
        super().__init__(Path("nowhere"), site, "trial", owner)
        self._world = world
        self._process = process
        self._calls = world.calls

    def list(self) -> dict[str, Node]:
        """Return the nodes."""
        self._process.before("list")
        return dict(super().list())

    def create(self, orders: Iterable[Order]) -> Answer:
        """Create nodes, once the world has checked who requests what."""
        requested = list(orders)
        self._process.before("create")
        self._world.judge(self._process, requested)
        answer = super().create(requested)
        self._process.after("create")
        return answer

    def delete(self, ids: Iterable[str]) -> None:
        """Delete nodes."""
        self._process.before("call")
        super().delete(list(ids))
        self._process.after("call")

    def _load(self) -> _File:
        return self._world.machines

    @contextmanager
    def _changed(self) -> Iterator[_File]:
        yield self._world.machines

    def _pause(self, seconds: float) -> None:
        self._world.now += seconds

    def _now(self) -> float:
        return self._world.now


def empty(owner: str) -> _File:
    """Return a site without machines."""
    return _File("trial", owner)


def counter() -> Iterator[int]:
    """Return what numbers the calls."""
    return count()
