"""The storage benchmark: its real program writes real files; what runs it on nodes is a double."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.inventory.workloads.checkpoints import WriteSpeed
from gcluster.lifecycle.operations.storage import benchmark
from gcluster.lifecycle.operations.storage.benchmark import measure, shared_storage, spread
from gcluster.lifecycle.operations.storage.figures import (
    Rates,
    StorageFigures,
    StorageReport,
    definition,
    keep,
    kept,
    write_speeds,
)
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.load import load_text

SPEC = """
apiVersion: gcluster/v1
name: demo
sites: {hall: {provider: local}}
pools:
  head: {site: hall, role: controller}
  gpu: {site: hall, machine: sim.h100x8, count: 2}
storage:
  scratch: {type: nfs, mount: /scratch, server: head}
  archive: {type: nfs, mount: /archive, server: head, read_only: true}
scheduler: {type: slurm}
"""


class ThisMachine:
    """A double of the nodes: each phase runs here, in a process for each node."""

    def __init__(self, room: Path, fails: str = "") -> None:
        """Write below `room`, whatever the mount point; one phase may fail on node b."""
        self.room, self.fails = room, fails
        self.written: list[tuple[int, int]] = []
        self.read: list[tuple[str, str]] = []

    def __call__(
        self, settings: Mapping[str, Mapping[str, object]], limit_s: float
    ) -> Mapping[str, dict[str, Any]]:
        del limit_s
        running = {name: self._start(name, dict(given)) for name, given in settings.items()}
        answers = {name: json.loads(each.communicate()[0]) for name, each in running.items()}
        phase = next(iter(settings.values()))["phase"]
        if phase == "write":
            parts = {str(given["part"]) for given in settings.values()}
            files = [
                path
                for path in self.room.glob("*/*")
                if path.name.rpartition("-")[0] in parts and path.is_file()
            ]
            said = sum(answer["count"] for answer in answers.values())
            self.written.append((said, sum(path.stat().st_size for path in files)))
        if phase == "read":
            self.read += [(name, str(given["part"])) for name, given in settings.items()]
        if phase == self.fails:
            answers["b"] = {"error": "No space left on device: file"}
        return answers

    def _start(self, name: str, given: dict[str, Any]) -> subprocess.Popen[str]:
        del name
        mount = given["mount"]
        given["mount"] = "/" if mount != "/nowhere" else mount
        given["folders"] = [str(self.room / word.rpartition("/")[2]) for word in given["folders"]]
        words = [sys.executable, "-I", str(benchmark.PROGRAM), json.dumps(given)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make phases short, and files small."""
    monkeypatch.setattr(benchmark, "SECONDS", 0.2)
    monkeypatch.setattr(benchmark, "METADATA_SECONDS", 0.2)
    monkeypatch.setattr(benchmark, "_START_S", 0.2)
    monkeypatch.setattr(benchmark, "_MOST_BYTES", 8 << 20)
    monkeypatch.setattr(benchmark, "THREADS", 2)


ABOUT = StorageFigures(mount="/scratch", time="2026-11-29T00:00:00Z", definition="d")


def test_what_counts_as_written_is_on_the_disk_and_read_by_the_other_node(
    tmp_path: Path,
) -> None:
    nodes = ThisMachine(tmp_path)
    found = measure(ABOUT, ["a", "b"], nodes)
    assert found.problem == ""
    assert found.kind
    assert len(nodes.written) == 2
    assert all(said == on_disk > 0 for said, on_disk in nodes.written)
    assert nodes.read == [("b", "alone-a"), ("a", "together-b"), ("b", "together-a")]
    for rates in (found.alone, found.together):
        assert all(value for value in (getattr(rates, name) for name in Rates.__struct_fields__))
    assert not list(tmp_path.iterdir()), "its folder is left"


def test_a_phase_that_fails_names_the_node_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gcluster-storage-earlier").mkdir()
    (tmp_path / ".gcluster-storage-earlier" / "alone-a-0").write_bytes(b"of a run that was killed")
    found = measure(ABOUT, ["a", "b"], ThisMachine(tmp_path, fails="read"))
    assert found.problem == "read on b: No space left on device: file"
    assert found.together == Rates()
    assert not list(tmp_path.iterdir())


def test_a_folder_on_the_root_disk_is_not_measured_as_the_storage(tmp_path: Path) -> None:
    away = ABOUT.__class__(mount="/nowhere", time="")
    found = measure(away, ["a"], ThisMachine(tmp_path))
    assert found.problem == "prepare on a: nothing is mounted there"


def test_of_ten_thousand_nodes_sixteen_are_measured_from_all_parts() -> None:
    hosts = [
        Host(
            name=f"n{index:05}",
            site="hall",
            pool="gpu",
            role="compute",
            machine=None,
            ssh=SshTarget(user="root"),
        )
        for index in range(10_000)
    ]
    some = spread(hosts)
    assert len(some) == 16
    assert [host.name for host in some[:2]] == ["n00000", "n00625"]
    assert some[-1].name == "n09375"
    assert spread(hosts[:3]) == tuple(hosts[:3])


def test_figures_hold_for_the_storage_that_was_measured(tmp_path: Path) -> None:
    spec = load_text(SPEC).spec
    assert spec is not None
    assert shared_storage(spec) == ("scratch",)
    store = StateStore.open(f"file://{tmp_path}")
    measured = StorageFigures(
        mount="/scratch",
        time="2026-11-29T00:00:00Z",
        node_count=2,
        alone=Rates(write_bytes_per_s=1e9),
        together=Rates(write_bytes_per_s=1.5e9),
        definition=definition(spec.storage["scratch"]),
    )
    report = StorageReport(cluster="demo", spec_hash="", storage={"scratch": measured})
    keep(store, report)
    speed = WriteSpeed(nodes=2, alone=1e9, together=1.5e9, time="2026-11-29T00:00:00Z")
    assert write_speeds(store, spec) == {"scratch": speed}

    failed = StorageFigures(
        mount="/scratch", time="later", problem="busy", definition=measured.definition
    )
    keep(store, StorageReport(cluster="demo", spec_hash="", storage={"scratch": failed}))
    assert kept(store)["scratch"] == measured, "a benchmark that failed took the figures away"

    other = load_text(SPEC.replace("mount: /scratch", "mount: /data")).spec
    assert other is not None
    assert write_speeds(store, other) == {}
