"""The simulated site itself: a file that behaves like a provider's API.

Every call takes the site's latency, and fails as often as the spec's faults say. The draws depend
only on the seed and on how many creations came before, so a run can be repeated.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import ClassVar

import msgspec

from ...schemas.spec import SimulatedSite
from ...schemas.structure.decoding import decode_json
from ..io import atomic
from ..provider import provider_error

_ATTEMPTS = 8
"""How often a call is made that the site refuses because too many requests."""
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_LOST = "the connection was reset"


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
    made: float = 0.0
    """Seconds since 1970."""


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
    """Node name -> the API's message of those that it refused: nothing is left of them."""
    unclear: frozenset[str] = frozenset()
    """Names of nodes whose response got lost: retry with the same token, or list them."""


class _File(msgspec.Struct):
    """What is stored. The counters count all requests: they seed the draws."""

    cluster: str
    cluster_id: str
    creations: int = 0
    deletions: int = 0
    nodes: dict[str, Node] = {}


class Cloud:
    """One simulated site, shared by all processes that open the same file."""

    def __init__(self, path: Path, site: SimulatedSite, cluster: str, cluster_id: str) -> None:
        """Open the site in the file at `path`; it need not exist."""
        self._path = path
        self._site = site
        self._owner = (cluster, cluster_id)

    def list(self) -> dict[str, Node]:
        """Return all nodes by name; those made within the site's listing lag may be missing."""
        self._call()
        nodes = self._load().nodes
        lag = self.listing_lag_s
        if not lag:
            return nodes
        now = self._now()
        return {name: node for name, node in nodes.items() if node.made + lag <= now}

    @property
    def listing_lag_s(self) -> float:
        """Seconds that a new node may be missing from a listing."""
        lag = self._site.faults.listing_lag
        return 0.0 if lag is None else lag.value

    def catch_up(self) -> None:
        """Wait until everything that was made before now is listed."""
        if self.listing_lag_s:
            self._pause(self.listing_lag_s)

    def create(self, orders: Iterable[Order]) -> Answer:
        """Create nodes in one call; a token that was used before creates nothing again."""
        self._call()
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
        unclear = frozenset(name for name, error in errors.items() if error == _LOST)
        refused = {name: error for name, error in errors.items() if name not in unclear}
        return Answer(ids, refused, unclear)

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
            made=self._now(),
        )
        return _LOST if lost else ""

    def delete(self, ids: Iterable[str]) -> None:
        """Delete nodes in one call; a listing shows whether they are gone."""
        self._call()
        with self._changed() as stored:
            names = {node.id: node.name for node in stored.nodes.values()}
            for identifier in ids:
                if identifier in names and self._deletes_one(stored):
                    del stored.nodes[names[identifier]]

    def _deletes_one(self, stored: _File) -> bool:
        stored.deletions += 1
        faults = self._site.faults
        draw = random.Random(f"{faults.seed}/deletion/{stored.deletions}")  # noqa: S311  # as above
        return draw.random() >= faults.delete_failure_rate

    _calls: ClassVar = count()

    def _call(self) -> None:
        """Wait for the latency of a call; retry with backoff while it is throttled.

        Raises:
            ProviderError: the site keeps refusing.
        """
        faults = self._site.faults
        for attempt in range(_ATTEMPTS):
            if self._site.latency is not None:
                self._pause(self._site.latency.value)
            draw = random.Random(f"{faults.seed}/call/{next(self._calls)}")  # noqa: S311  # as above
            if draw.random() >= faults.throttle_rate:
                return
            self._pause(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt))
        raise provider_error(
            "GC918",
            f"the simulated site refused {_ATTEMPTS} calls in a row: too many requests",
            hint="run the same command again",
        )

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def _now(self) -> float:
        return time.time()

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
