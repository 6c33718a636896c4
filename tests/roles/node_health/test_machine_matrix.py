"""Published machine layouts, healthy and with faults: no healthy node drains, no fault passes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machines
import pytest
from machines import FAULTS, LAYOUTS, FakeNode, faults_of
from node_health import main as program

ENVIRONMENT = Path(__file__).parents[3] / "roles/nccl/files/libexec/job-environment.sh"
MATRIX = [(name, fault) for name in LAYOUTS for fault in faults_of(name)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FakeNode]:
    """Return a function that returns a machine's node, healthy and never looked at."""
    made: dict[str, FakeNode] = {}

    def of(name: str) -> FakeNode:
        if name not in made:
            made[name] = FakeNode(name, tmp_path_factory.mktemp(name))
        made[name].reset()
        return made[name]

    return of


def look(node: FakeNode) -> dict[str, Any]:
    """Run the health check; return its report."""
    folder = node.folder
    code = program.main(
        [
            *("--config", str(folder / "node-health.json")),
            *("--state-folder", str(folder / "state")),
            *("--report", str(folder / "report.json")),
            *("--root", str(node.root)),
            *("--path", str(folder / "bin")),
            "check",
        ]
    )
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert code == (1 if report["verdict"] == "unfit" else 0)
    return report


def codes(report: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in report["findings"] if finding["drains"]}


def test_there_are_eight_layouts_with_their_sources_and_ten_faults_each() -> None:
    assert len(LAYOUTS) >= 8  # as many as were requested
    for name in LAYOUTS:
        assert machines.layout(name)["source"], name
        assert machines.layout(name)["made_up"], name
        assert len(faults_of(name)) >= 10, name


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_healthy_machine_is_fit_at_each_run_and_its_rails_are_known(
    node: Callable[[str], FakeNode], name: str
) -> None:
    healthy = node(name)
    first, again = look(healthy), look(healthy)
    assert (first["reason"], again["reason"]) == ("", "")
    assert [f["code"] for f in first["findings"]] == ["parts-kept"], "nothing else is worth a note"
    assert again["findings"] == []
    kept = json.loads((healthy.folder / "state/parts.json").read_text())
    gpus = healthy.expected["gpus"]["count"]
    assert sum(part.startswith("gpu ") for part in kept) == gpus, "each GPU has a place of its own"
    record = healthy.root / "var/lib/gcluster/rails"
    rails = machines.layout(name).get("rails", [])
    assert (record.read_text().split() if record.exists() else []) == rails


@pytest.mark.parametrize("name", LAYOUTS)
def test_ports_that_nothing_is_expected_of_may_lose_their_cables(
    node: Callable[[str], FakeNode], name: str
) -> None:
    healthy = node(name)
    look(healthy)
    known = machines.layout(name)
    front = sum(nic["count"] for nic in healthy.expected["nics"] if nic.get("front_end"))
    rails = known.get("rails", [])
    others = [nic for nic in known["nics"] if "rdma" in nic and nic["rdma"] not in rails]
    spare = sorted(others, key=lambda nic: "down" in nic)[front:] if rails else []
    changed = {}
    for nic in spare:
        for path, text in (
            (f"sys/class/infiniband/{nic['rdma']}/ports/1/state", "1: DOWN"),
            (f"sys/class/infiniband/{nic['rdma']}/ports/1/rate", "10 Gb/sec (4X SDR)"),
            (f"sys/class/net/{nic['net']}/operstate", "down"),
        ):
            file = healthy.root / path
            changed[file] = file.read_text()
            file.write_text(f"{text}\n")
    fresh = look(healthy)
    healthy.reset()
    never_seen = look(healthy)
    for file, text in changed.items():
        file.write_text(text)
    assert (fresh["reason"], never_seen["reason"]) == ("", "")


@pytest.mark.parametrize(("name", "fault"), MATRIX)
def test_a_fault_drains_a_machine_that_is_new_and_one_that_was_well(
    node: Callable[[str], FakeNode], name: str, fault: str
) -> None:
    faulty = node(name)
    wanted = FAULTS[fault]["finds"]
    if not FAULTS[fault].get("grows"):
        with faulty.fault(fault):
            assert wanted in codes(look(faulty))
    faulty.reset()
    assert codes(look(faulty)) == set()
    with faulty.fault(fault):
        report = look(faulty)
    assert wanted in codes(report)
    assert codes(report) <= {wanted, "part-missing"}, "and nothing else is made up"


BOARDS = [name for name in LAYOUTS if "board" in machines.layout(name)]


@pytest.mark.parametrize("name", BOARDS)
def test_on_a_board_of_the_catalog_the_pool_s_words_find_the_same_rails_and_their_faults(
    tmp_path: Path, name: str
) -> None:
    """The catalog knows a board and not its server: `rails` under the pool's `rdma` says them."""
    server = FakeNode(name, tmp_path, board=True)
    assert (look(server)["reason"], look(server)["reason"]) == ("", "")
    record = server.root / "var/lib/gcluster/rails"
    assert record.read_text().split() == machines.layout(name)["rails"]
    rails = [fault for fault in faults_of(name) if "{rail}" in str(FAULTS[fault])]
    assert len(rails) >= 3
    for fault in rails:
        if FAULTS[fault].get("grows"):
            continue
        server.reset()
        assert codes(look(server)) == set()
        with server.fault(fault):
            assert FAULTS[fault]["finds"] in codes(look(server)), fault


def test_a_machine_with_half_its_rails_cabled_is_fit_where_the_pool_has_four(
    tmp_path: Path,
) -> None:
    half = FakeNode("dgx-h100", tmp_path)
    rails = machines.layout("dgx-h100")["rails"]
    for name in rails[4:]:
        port = half.root / f"sys/class/infiniband/{name}/ports/1"
        (port / "state").write_text("1: DOWN\n")
        (port / "rate").write_text("10 Gb/sec (4X SDR)\n")
    assert codes(look(half)) == {"nic-down"}
    half.reset()
    four = [{"kind": "infiniband", "count": 4, "gbps": 400}]
    (tmp_path / "node-health.json").write_text(json.dumps(half.expected | {"nics": four}))
    assert (look(half)["reason"], look(half)["reason"]) == ("", "")
    assert (half.root / "var/lib/gcluster/rails").read_text().split() == rails[:4]
    (half.root / f"sys/class/infiniband/{rails[1]}/ports/1/state").write_text("1: DOWN\n")
    assert codes(look(half)) == {"nic-down"}


def test_storage_that_is_expected_is_held_to_its_own_speed(tmp_path: Path) -> None:
    storage = FakeNode("dgx-h100", tmp_path)
    own = {"kind": "infiniband", "count": 2, "gbps": 200, "front_end": True}
    nics = [*storage.expected["nics"], own]
    (tmp_path / "node-health.json").write_text(json.dumps(storage.expected | {"nics": nics}))
    assert look(storage)["reason"] == ""
    port = storage.root / "sys/class/infiniband/mlx5_7/ports/1"
    (port / "rate").write_text("100 Gb/sec (4X EDR)\n")
    assert "mlx5_7: 100 Gb/s" in look(storage)["reason"]
    (port / "state").write_text("1: DOWN\n")
    assert codes(look(storage)) == {"nic-down"}


def test_a_list_that_was_kept_for_another_number_of_rails_is_found_again(
    node: Callable[[str], FakeNode],
) -> None:
    healthy = node("mi300x-connectx7")
    record = healthy.root / "var/lib/gcluster/rails"
    record.parent.mkdir(parents=True)
    record.write_text("mlx5_0\nmlx5_1\n")
    assert look(healthy)["reason"] == ""
    assert record.read_text().split() == machines.layout("mi300x-connectx7")["rails"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_jobs_are_given_these_rails_and_no_others(
    node: Callable[[str], FakeNode], name: str, tmp_path: Path
) -> None:
    healthy = node(name)
    look(healthy)
    (tmp_path / "nccl").write_text("NCCL_IB_HCA=@rails\n")
    output = subprocess.check_output(
        ["sh", ENVIRONMENT],
        text=True,
        env={
            "PATH": "/usr/bin:/bin",
            "GCLUSTER_RAILS": str(healthy.root / "var/lib/gcluster/rails"),
            "GCLUSTER_JOB_ENVIRONMENT": str(tmp_path),
        },
    )
    rails = machines.layout(name).get("rails")
    assert output == (f"export NCCL_IB_HCA=={','.join(rails)}\n" if rails else "")
