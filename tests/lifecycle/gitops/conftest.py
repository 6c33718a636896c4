"""A controller whose clock and chance the test has, and a repository on a real git server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.operations.gitops.git import Repository
from gcluster.lifecycle.operations.gitops.record import ControllerRecord, Followed, read_record
from gcluster.lifecycle.operations.gitops.round_record import ControllerEvent
from gcluster.lifecycle.operations.gitops.rounds import Settings, World, have_round
from gcluster.lifecycle.state import EventLog, Ledger, StateStore

from .git_server import Author, GitServer

SPEC = """\
apiVersion: gcluster/v1
name: {name}
state: file://{states}/{name}
sites: {{lab: {{provider: simulated}}}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: sim.h100x8, count: {count}}}
scheduler: {{type: slurm}}
{more}"""


class Harness:
    """One controller, and the person who merges what it follows."""

    def __init__(self, folder: Path, server: GitServer) -> None:
        """Clone the repository; nothing is merged yet."""
        self.folder = folder
        self.server = server
        self.author = Author(server, folder / "clone")
        self.answer: list[ControllerEvent] = []
        self.now = datetime.now(UTC)
        (folder / "controller").mkdir()

    def spec(self, name: str, *, count: int = 2, more: str = "") -> str:
        """Return the text of a spec."""
        return SPEC.format(name=name, states=self.folder / "states", count=count, more=more)

    def merge(self, files: dict[str, str | None], message: str = "change") -> str:
        """Merge files below specs/; return the commit."""
        return self.author.merge({f"specs/{name}": text for name, text in files.items()}, message)

    def round(self, *, most: int = 5, allow: str = "") -> Exit:
        """Run one round of a controller that was restarted; `events` has its events."""
        self.answer.clear()
        settings = Settings(
            repo=self.server.url,
            branch="main",
            path="specs",
            most_changed=most,
            allow=frozenset(tuple(each.split("/", 1)) for each in allow.split()),  # type: ignore[misc]  # two parts
        )
        world = World(
            repository=Repository(self.server.url, "main", self.folder / "controller"),
            store=self.store,
            now=lambda: self.now,
            chance=lambda: 0.5,
            emit=self.answer.append,
        )
        return have_round(settings, world)

    def later(self, **time: float) -> None:
        """Let time pass for the controller."""
        self.now += timedelta(**time)

    @property
    def store(self) -> StateStore:
        """The controller's state."""
        return StateStore.open(f"file://{self.folder / 'controller' / 'state'}")

    @property
    def record(self) -> ControllerRecord:
        """What the controller wrote last."""
        record = read_record(self.store)
        assert record is not None
        return record

    def followed(self, name: str) -> Followed:
        """Return what the controller says of a cluster."""
        return self.record.clusters[name]

    def phases(self) -> dict[str, str]:
        """Return every cluster's phase."""
        return {name: followed.phase for name, followed in self.record.clusters.items()}

    def cluster(self, name: str) -> Cluster:
        """Open a cluster as a person with a clone of the repository does."""
        return open_cluster(str(self.author.folder / "specs" / f"{name}.yaml"))

    def nodes(self, name: str) -> int:
        """Return how many nodes the ledger says a cluster has, whose spec may be gone."""
        state = self.folder / "states" / name
        if not state.exists():
            return 0
        return len(Ledger(EventLog(StateStore.open(f"file://{state}"))).existing())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    """Give a git server with one empty repository."""
    with GitServer(tmp_path / "server") as running:
        yield running


@pytest.fixture
def harness(own_places: Path, server: GitServer) -> Harness:
    """Give a controller and its author."""
    return Harness(own_places, server)
