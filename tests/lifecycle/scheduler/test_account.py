"""What a job costs, and the share of its nodes' time that counts, from its own journal."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.cli.render.operate.jobs import account_text, state_line
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.scheduler.workloads.account import Price, account_of, price_of
from gcluster.lifecycle.scheduler.workloads.jobs import JobState

ROOT = Path(__file__).parents[3]
JOURNAL = ROOT / "roles/slurm/files/job_launch/journal.py"
EXAMPLE = (ROOT / "examples/first-model.yaml").read_text("utf-8")
HOSTS = ClusterInventory(
    cluster="first-model",
    hosts=tuple(
        msgspec.structs.replace(HEAD, name=name, pool=pool)
        for name, pool in (("head", "head"), ("gpu001", "gpu"), ("gpu002", "gpu"))
    ),
)
STATE = JobState(
    id="8",
    state="RUNNING",
    reason="None",
    exit_code="0:0",
    restarts=0,
    elapsed="1-02:30:00",
    nodes=2,
    batch_host="gpu001",
    log="",
    name="letters",
    user="ada",
    on=("gpu001", "gpu002"),
)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Return the example's cluster; its nodes are this machine's, so they cost nothing."""
    path = tmp_path / "cluster.yaml"
    path.write_text(EXAMPLE, encoding="utf-8")
    return open_cluster(str(path))


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    """Give a node whose launcher is the repository's, and whose checkpoints are in tmp_path."""
    shell = LocalShell(tmp_path / "bin")
    shell.has("sudo", 'shift; exec "$@"')
    shell.has("runuser", f'echo "$2" > {tmp_path}/user; shift 3; exec "$@"')
    shell.has(
        "python3",
        f'echo "$2" > {tmp_path}/folder; exec {sys.executable} {JOURNAL} {tmp_path}/saved "$3"',
    )
    (tmp_path / "saved").mkdir()
    return shell


def write_journal(folder: Path, ago: dict[str, float]) -> None:
    now = time.time()
    events = [
        {"at": now - ago["begin"], "event": "begin", "nodes": 2},
        {"at": now - ago["begin"], "event": "start", "nodes": 2, "saved": 0.0},
        {"at": now - ago["begin"], "event": "first"},
        {"at": now - ago["lost"], "event": "stop", "cause": "gpu003 was lost"},
        {"at": now - ago["lost"], "event": "start", "nodes": 2, "saved": now - ago["resumed"]},
        {"at": now - ago["again"], "event": "first"},
    ]
    (folder / ".journal-8").write_text("".join(json.dumps(e) + "\n" for e in events), "utf-8")
    newest = folder / "step-9"
    newest.mkdir()
    (newest / "MANIFEST.json").write_text(json.dumps({"written": now - ago["saved"]}), "utf-8")


def test_a_job_that_runs_has_the_goodput_until_its_newest_checkpoint(
    cluster: Cluster, shell: LocalShell, tmp_path: Path
) -> None:
    ago = {"begin": 1000.0, "lost": 500.0, "resumed": 600.0, "again": 450.0, "saved": 50.0}
    write_journal(tmp_path / "saved", ago)

    found = account_of(cluster, HOSTS, shell, STATE)

    assert found.goodput is not None
    assert found.goodput.paid == pytest.approx(2 * 1000, abs=60)
    assert found.goodput.useful == pytest.approx(2 * (400 + 400), abs=1)
    (one,) = found.goodput.interruptions
    assert (round(one.seconds), one.cause) == (150, "gpu003 was lost")
    assert (tmp_path / "user").read_text("utf-8") == "ada\n"
    assert (tmp_path / "folder").read_text("utf-8") == "/scratch/checkpoints/letters\n"
    assert account_text(found).splitlines() == [
        "job 8: running on 2 nodes from gpu001",
        "name     letters of ada",
        "cost     $0.00/h, $0.00 in this run",
        "goodput  80%: 0.44 of 0.56 node hours count",
        "lost     2 min 30 s: gpu003 was lost",
    ]


def test_a_copy_that_failed_is_shown_until_one_succeeds(
    cluster: Cluster, shell: LocalShell, tmp_path: Path
) -> None:
    ago = {"begin": 1000.0, "lost": 500.0, "resumed": 600.0, "again": 450.0, "saved": 50.0}
    write_journal(tmp_path / "saved", ago)
    journal = tmp_path / "saved/.journal-8"
    failed = "step-9 is not copied to /runs: [Errno 28] No space left on device"
    for text, shown in ((failed, [f"copies   {failed}"]), ("", [])):
        with journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"at": time.time(), "event": "copy", "failed": text}) + "\n")
        lines = account_text(account_of(cluster, HOSTS, shell, STATE)).splitlines()
        assert lines[5:] == shown


def test_what_the_gates_found_and_nodes_that_were_given_back_are_on_the_job(
    cluster: Cluster, shell: LocalShell, tmp_path: Path
) -> None:
    now = time.time()
    events = [
        {"at": now - 1000, "event": "begin", "nodes": 4},
        {"at": now - 1000, "event": "gate", "when": "before", "middle": 0.0, "slow": []},
        {"at": now - 1000, "event": "start", "nodes": 4, "saved": 0.0},
        {"at": now - 200, "event": "stop", "done": True},
        {"at": now - 200, "event": "gate", "when": "after", "middle": 11.8, "slow": ["gpu002"]},
        {"at": now - 200, "event": "shrink", "nodes": 1},
        {"at": now, "event": "leave"},
    ]
    text = "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "saved/.journal-8").write_text(text, "utf-8")

    found = account_of(cluster, HOSTS, shell, STATE)

    assert found.goodput is not None
    assert found.goodput.paid == pytest.approx(4 * 800 + 200)
    assert account_text(found).splitlines()[-2:] == [
        "gate     before the job: no result",
        "gate     after the job: slow: gpu002 (11.80 GB/s in the middle)",
    ]


def test_the_price_is_that_of_the_nodes_that_it_has(
    shell: LocalShell, monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    monkeypatch.setattr(
        "gcluster.lifecycle.scheduler.workloads.account.node_prices", lambda *_: {"gpu": 98.32}
    )
    price = price_of(cluster, HOSTS, STATE)
    assert price.usd_per_hour == pytest.approx(2 * 98.32)
    assert price.usd == pytest.approx(2 * 98.32 * 26.5)
    assert state_line(STATE, price) == "job 8: running on 2 nodes from gpu001 at $196.64/h"
    over = msgspec.structs.replace(STATE, state="COMPLETED")
    assert state_line(over, price) == (
        "job 8: completed after 1-02:30:00, exit code 0:0 at $196.64/h ($5,210.96)"
    )
    waits = msgspec.structs.replace(STATE, state="PENDING", on=())
    assert "$" not in state_line(waits, price_of(cluster, HOSTS, waits))
    part = msgspec.structs.replace(STATE, gpus=4)  # of the 16 of its two nodes
    assert price_of(cluster, HOSTS, part).usd_per_hour == pytest.approx(2 * 98.32 / 4)
    elsewhere = msgspec.structs.replace(STATE, on=("gpu001", "spill7"))
    assert price_of(cluster, HOSTS, elsewhere) == Price(None, None)
    assert "price unknown" in account_text(account_of(cluster, HOSTS, shell, elsewhere))


def test_what_is_not_known_is_not_zero(cluster: Cluster, shell: LocalShell, tmp_path: Path) -> None:
    assert account_of(cluster, HOSTS, shell, STATE).goodput is None  # no journal yet
    (tmp_path / "saved" / ".journal-8").write_text("", "utf-8")
    command = msgspec.structs.replace(STATE, name="hostname")
    assert account_of(cluster, HOSTS, shell, command).goodput is None
    shell.has("python3", "")  # a launcher from before this verb
    assert account_of(cluster, HOSTS, shell, STATE).goodput is None
    assert account_of(cluster, HOSTS, DownShell(tmp_path), STATE).goodput is None
