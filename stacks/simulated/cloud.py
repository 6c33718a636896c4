"""The simulated site itself: a file that answers as a provider's API would.

Every call takes the site's latency, and goes wrong as often as the spec's faults say. The draws
depend only on the seed and on how many creations came before, so a run can be repeated.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from gcluster.schemas.decoding import decode_json
from gcluster.stacks import atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gcluster.schemas.spec import SimulatedSite


class Node(msgspec.Struct, frozen=True):
    """A node of the simulated site."""

    id: str
    name: str
    pool: str
    role: str
    machine: str | None
    token: str
    """The idempotency token it was created with."""
    address: str
    booted: bool
    elastic: str = ""
    """Token of the grow that made it; "" for nodes of the graph."""
    confirmed: bool = False
    """A tag: the ledger knows that it exists."""


class Order(msgspec.Struct, frozen=True):
    """One node to create."""

    name: str
    pool: str
    role: str
    machine: str | None
    token: str
    elastic: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What a bulk create answered."""

    ids: dict[str, str]
    """Node name -> id, for those that are known to exist."""
    errors: dict[str, str]
    """Node name -> what the API said. A lost response looks like a refusal: list to know."""


class _File(msgspec.Struct):
    """What is stored. `creations` counts every create ever asked for: the seed of each draw."""

    cluster: str
    cluster_id: str
    creations: int = 0
    nodes: dict[str, Node] = {}


class Cloud:
    """One simulated site, shared by all processes that open the same file."""

    def __init__(self, path: Path, site: SimulatedSite, cluster: str, cluster_id: str) -> None:
        """Open the site in the file at `path`; it need not exist."""
        self._path = path
        self._site = site
        self._owner = (cluster, cluster_id)

    def list(self) -> dict[str, Node]:
        """Return all nodes by name."""
        self._wait()
        return self._load().nodes

    def create(self, orders: Iterable[Order]) -> Answer:
        """Create nodes in one call; a token that was used before creates nothing again."""
        self._wait()
        ids: dict[str, str] = {}
        errors: dict[str, str] = {}
        with self._changed() as stored:
            by_token = {node.token: node for node in stored.nodes.values()}
            for order in orders:
                known = by_token.get(order.token) or stored.nodes.get(order.name)
                if known is not None:
                    ids[order.name] = known.id
                    continue
                error = self._create_one(stored, order)
                if error:
                    errors[order.name] = error
                else:
                    ids[order.name] = stored.nodes[order.name].id
        return Answer(ids, errors)

    def _create_one(self, stored: _File, order: Order) -> str:
        """Add a node, or don't; return what the API answers: "" for success."""
        stored.creations += 1
        faults = self._site.faults
        draw = random.Random(f"{faults.seed}/{stored.creations}")  # noqa: S311  # faults, not keys
        full = self._site.max_nodes is not None and len(stored.nodes) >= self._site.max_nodes
        if full or draw.random() < faults.create_failure_rate:
            return "insufficient capacity"
        lost = draw.random() < faults.lost_response_rate
        number = stored.creations
        stored.nodes[order.name] = Node(
            id=f"sim-{stored.cluster_id}-{number:08d}",
            name=order.name,
            pool=order.pool,
            role=order.role,
            machine=order.machine,
            token=order.token,
            address=f"10.{192 + (number >> 16) % 64}.{number >> 8 & 255}.{number & 255}",
            booted=draw.random() >= faults.boot_failure_rate,
            elastic=order.elastic,
        )
        return "the connection was reset" if lost else ""

    def confirm(self, names: Iterable[str]) -> None:
        """Tag nodes as known to the ledger, in one call."""
        with self._changed() as stored:
            for name in names:
                tagged = msgspec.structs.replace(stored.nodes[name], confirmed=True)
                stored.nodes[name] = tagged

    def delete(self, names: Iterable[str]) -> Mapping[str, str]:
        """Delete nodes in one call; return name -> id of those that were there."""
        self._wait()
        with self._changed() as stored:
            return {name: stored.nodes.pop(name).id for name in names if name in stored.nodes}

    def _wait(self) -> None:
        if self._site.latency is not None:
            time.sleep(self._site.latency.value)

    def _load(self) -> _File:
        try:
            stored = decode_json(self._path.read_bytes(), _File)
        except FileNotFoundError:
            return _File(*self._owner)
        # A file of another cluster that has this one's name is none of our business.
        return stored if (stored.cluster, stored.cluster_id) == self._owner else _File(*self._owner)

    @contextmanager
    def _changed(self) -> Iterator[_File]:
        with atomic.locked(self._path.with_suffix(".lock")):
            stored = self._load()
            yield stored
            atomic.write(self._path, msgspec.json.encode(stored))
