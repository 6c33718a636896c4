"""Slurm's figures as the controllers write them: of recorded answers, of many, of hostile ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from tests.roles.programs import load_program

from gcluster.inventory.alerts import exported_metrics

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "molecule/slurm_exporter/recordings"
NOW = 1_795_846_000.0
SERIES = re.compile(r'[a-z_:]+(\{([a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+\})? -?[0-9.e+-]+')
"""A line of the text format (prometheus/docs, instrumenting/exposition_formats.md)."""
JOB = dict.fromkeys(("account", "user", "qos", "partition"), "x") | {
    "id": "7",
    "name": "train",
    "start": "1795845600",
    "state": "RUNNING",
    "reason": "None",
    "eligible": "1795845000",
    "cpus": "8",
    "nodes": "1",
    "tres": "cpu=8,mem=100G,node=1,billing=8,gres/gpu=2,gres/gpu:h100=2",
}


@pytest.fixture(scope="module")
def metrics() -> ModuleType:
    path = ROOT / "roles/slurm_exporter/files/libexec/slurm-metrics.py"
    return load_program(path, "slurm_metrics")


@pytest.fixture
def state(metrics: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "totals.json"
    monkeypatch.setattr(metrics, "STATE", path)
    return path


def recorded(tool: str, call: str) -> Any:
    text = (RECORDED / tool).read_text(encoding="utf-8").partition(f"$ {call}\n")[2]
    return json.loads(text.partition("\n$ ")[0].partition("\n== ")[0])


def page_of(metrics: ModuleType, jobs: list[dict[str, str]]) -> str:
    page = metrics.Page()
    metrics.of_jobs(page, jobs, NOW)
    return str(page.text())


def every_line_is_one_series(text: str) -> bool:
    lines = [line for line in text.splitlines() if not line.startswith("# TYPE ")]
    return all(SERIES.fullmatch(line) for line in lines)


def test_a_cluster_s_nodes_and_scheduler_are_reported_by_the_plugin_s_names(
    metrics: ModuleType,
) -> None:
    page = metrics.Page()
    metrics.of_nodes(page, recorded("scontrol", "scontrol show nodes --json")["nodes"])
    metrics.of_scheduler(page, recorded("sdiag", "sdiag --json")["statistics"])
    text = page.text()

    for line in (
        "slurm_nodes 2",
        'slurm_node_cpus{node="gpu001"} 192',
        'slurm_node_gpus_alloc{node="gpu001"} 6',
        'gcluster_slurm_node_drained{node="gpu002"} 0',
        "slurm_schedule_cycle_last 16",
        "slurm_slurmdbd_queue_size 0",
        'gcluster_slurm_user_rpcs_total{username="ada"} 3',
    ):
        assert f"{line}\n" in text
    assert every_line_is_one_series(text)


def test_jobs_of_squeue_are_counted_by_account_user_qos_and_partition(metrics: ModuleType) -> None:
    output = (ROOT / "tests/cases/metrics/squeue-24.11.5.txt").read_text(encoding="utf-8")
    text = page_of(metrics, metrics.rows(output))

    for line in (
        "slurm_jobs 9",
        "slurm_jobs_running 3",
        "slurm_jobs_gpus_alloc 6",
        'gcluster_slurm_jobs_pending{reason="Resources"} 1',
        'gcluster_slurm_gpus{account="nlp",user="ada",qos="normal",partition="main"} 6',
        'slurm_user_jobs_pending{username="bob"} 1',
        'gcluster_slurm_pending_wait_seconds{partition="main",quantile="1"} 183',
    ):
        assert f"{line}\n" in text


def test_an_elastic_node_has_an_address_while_it_runs(metrics: ModuleType) -> None:
    node = recorded("scontrol", "scontrol show nodes --json")["nodes"][0]

    def addresses(**of: Any) -> str:
        page = metrics.Page()
        metrics.of_nodes(page, [node | of])
        return "\n".join(line for line in page.text().splitlines() if "node_address{" in line)

    runs = {"state": ["IDLE", "CLOUD"], "address": "10.0.3.7"}
    assert addresses(**runs) == (
        f'gcluster_slurm_node_address{{node="{node["name"]}",address="10.0.3.7"}} 1'
    )
    for gone in ("POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"):
        assert addresses(**runs | {"state": ["IDLE", "CLOUD", gone]}) == ""
    assert addresses(state=["IDLE"], address="10.0.3.7") == ""  # always there: in the list
    assert addresses(state=["IDLE", "CLOUD"], address=node["name"]) == ""


def test_every_figure_of_slurm_that_rules_use_is_written(metrics: ModuleType) -> None:
    node = recorded("scontrol", "scontrol show nodes --json")["nodes"][0]
    page = metrics.Page()
    node |= {"state": ["DOWN", "DRAIN", "COMPLETING"], "reason": "broken"}
    metrics.of_nodes(page, [node])
    metrics.of_scheduler(page, recorded("sdiag", "sdiag --json")["statistics"])
    by_main = {"gcluster_slurm_up", "gcluster_slurm_dbd_up"}
    metrics.of_jobs(page, [JOB], NOW)

    assert set(exported_metrics()["slurm"]) - by_main <= set(page.values)


def test_prometheus_keeps_of_slurm_s_own_plugin_what_isn_t_written_here(
    metrics: ModuleType,
) -> None:
    node = recorded("scontrol", "scontrol show nodes --json")["nodes"][0]
    page = metrics.Page()
    metrics.of_nodes(page, [node])
    metrics.of_scheduler(page, dict.fromkeys(metrics.SCHEDULER, 1))
    metrics.of_jobs(page, [JOB, JOB | {"state": "PENDING"}], NOW)
    # Of an endpoint that isn't scraped.
    by_user = re.compile("slurm_(account|user)_jobs_.*")
    written = {
        name for name in page.values if name.startswith("slurm_") and not by_user.fullmatch(name)
    }
    text = (ROOT / "roles/prometheus/vars/main.yml").read_text(encoding="utf-8")
    dropped = re.compile("|".join(yaml.safe_load(text)["prometheus_slurm_written"]))

    assert {name for name in written if not dropped.fullmatch(name)} == set()
    # openmetrics.c, 25.11.7
    for name in (
        "slurm_partition_nodes_idle", "slurm_partition_jobs_max_job_nodes_nohold",
        "slurm_partition_jobs_started", "slurm_node_memory_free_bytes", "slurm_node_cpus_effective",
        "slurm_nodes_dyn_normal", "slurm_jobs_hold", "slurm_bf_depth_mean", "slurm_sched_exit_lic",
    ):  # fmt: skip
        assert not dropped.fullmatch(name)


@pytest.mark.parametrize(
    ("states", "drained"),
    [
        (["IDLE"], 0),
        (["IDLE", "DRAIN"], 1),
        (["MIXED", "REBOOT_REQUESTED"], 1),
        (["DOWN", "NOT_RESPONDING"], 0),
    ],
)
def test_a_node_that_was_taken_out_by_hand_differs_from_one_that_broke(
    metrics: ModuleType, states: list[str], drained: int
) -> None:
    node = recorded("scontrol", "scontrol show nodes --json")["nodes"][0]
    page = metrics.Page()
    metrics.of_nodes(page, [node | {"state": states}])

    assert page.values["gcluster_slurm_node_drained"] == {(("node", "gpu001"),): drained}


@pytest.mark.parametrize(
    "name",
    [
        'a"} 1\nup 0',
        "back\\slash",
        "x" * 5000,
        "<script>alert(1)</script>",
        "\x00\x1b[31m",
        "ü\ud800",
    ],
)
def test_a_hostile_name_stays_one_label_of_one_line(metrics: ModuleType, name: str) -> None:
    text = page_of(metrics, [JOB | {"account": name, "user": name}])

    assert every_line_is_one_series(text)
    assert "\nup " not in text
    text.encode()


def test_five_thousand_jobs_of_as_many_users_are_a_page_of_bounded_size(
    metrics: ModuleType,
) -> None:
    jobs = [JOB | {"user": f"user{number:04}"} for number in range(5000)]
    text = page_of(metrics, jobs)

    assert "slurm_jobs_running 5000\n" in text
    assert "slurm_jobs_gpus_alloc 10000\n" in text
    assert 'slurm_user_jobs_running{username="(other)"} 3000\n' in text
    assert len(text) < 1_000_000


def test_each_job_that_holds_gpus_is_reported_with_its_owner_start_and_wait(
    metrics: ModuleType,
) -> None:
    output = (ROOT / "tests/cases/metrics/squeue-24.11.5.txt").read_text(encoding="utf-8")
    text = page_of(metrics, metrics.rows(output))
    labels = 'account="nlp",user="ada",qos="normal",partition="main",job_name="train"'

    assert len(re.findall(f'gcluster_slurm_job_gpus{{hpc_job="[0-9]+",{labels}}}', text)) == 3
    one = page_of(metrics, [JOB, JOB | {"id": "8", "tres": "cpu=8,node=1"}])
    assert 'gcluster_slurm_job_start_time_seconds{hpc_job="7"} 1795845600\n' in one
    # 1,795,845,600 - 1,795,845,000
    assert 'gcluster_slurm_job_wait_seconds{hpc_job="7"} 600\n' in one
    assert 'hpc_job="8"' not in one


def test_a_job_whose_name_has_lines_and_separators_hides_and_makes_up_nothing(
    metrics: ModuleType,
) -> None:
    output = (ROOT / "tests/cases/metrics/squeue-24.11.5.txt").read_text(encoding="utf-8")
    honest = next(line for line in output.splitlines() if "RUNNING" in line)
    cells = honest.split("\x1f")
    made_up = "\n9\x1fRUNNING\x1froot\x1froot\x1fq\x1fp\x1fr\x1f1\x1f1\x1f8\x1f1\x1fgres/gpu=8\x1fx"
    name = f'a"}} 1\nup 0{made_up}\x1f\x1f\x1b[31m<b>'[: metrics.WIDTH_OF_NAME]
    rows = metrics.rows("\x1f".join([*cells[:-1], name]) + f"\n{honest}\n")

    assert [row["account"] for row in rows] == ["nlp", "nlp"]
    assert every_line_is_one_series(page_of(metrics, rows))


def test_nodes_of_a_reservation_that_no_job_uses_are_reported(metrics: ModuleType) -> None:
    node = recorded("scontrol", "scontrol show nodes --json")["nodes"][0]
    page = metrics.Page()
    metrics.of_nodes(page, [node | {"state": ["IDLE", "RESERVED"]}])
    metrics.of_nodes(page, [node | {"name": "gpu009", "state": ["ALLOCATED", "RESERVED"]}])

    assert page.values["gcluster_slurm_node_unclaimed"] == {(("node", "gpu001"),): 1}


def test_two_thousand_nodes_are_all_reported(metrics: ModuleType) -> None:
    node = recorded("scontrol", "scontrol show nodes --json")["nodes"][0]
    page = metrics.Page()
    metrics.of_nodes(page, [node | {"name": f"gpu{number:04}"} for number in range(2000)])

    assert "slurm_nodes 2000\n" in page.text()
    assert page.text().count("slurm_node_cpus{") == 2000
    assert len(page.text()) < 1_500_000


def test_gpu_seconds_grow_by_what_is_held_and_not_over_a_gap(
    metrics: ModuleType, state: Path
) -> None:
    held = {"nlp": 8}
    assert metrics.gpu_seconds(held, NOW) == {"nlp": 0}
    assert metrics.gpu_seconds(held, NOW + 15) == {"nlp": 120}
    assert metrics.gpu_seconds({}, NOW + 30) == {"nlp": 120}
    assert metrics.gpu_seconds(held, NOW + 3000) == {"nlp": 120}
    assert metrics.gpu_seconds(held, NOW + 2000) == {"nlp": 120}, "the clock went back"
    state.write_text("{")
    assert metrics.gpu_seconds(held, NOW) == {"nlp": 0}


@pytest.mark.parametrize(
    ("pings", "expected"),
    [
        ([{"hostname": "head01", "pinged": "UP"}], True),
        ([{"hostname": "head01.lan", "responding": True}], True),
        ([{"hostname": "head02", "responding": True}, {"hostname": "head01"}], False),
        ([{"hostname": "head02", "pinged": "DOWN"}, {"hostname": "head01", "pinged": "UP"}], True),
        ([{"hostname": "head01", "pinged": "DOWN"}], None),
        ([], None),
    ],
)
def test_the_controller_in_charge_is_the_first_that_answers(
    metrics: ModuleType, pings: list[dict[str, Any]], expected: bool | None
) -> None:
    assert metrics.in_charge(pings, "head01") is expected


def test_preemptions_are_counted_once_each_and_slurmdbd_is_queried_once_a_minute(
    metrics: ModuleType, tmp_path: Path
) -> None:
    """Lines as `sacct --parsable2` prints them: a job that was queued again has several."""
    said = ["7|1795845000|scavenger|nlp\n7|1795845400|scavenger|nlp\n8|1795845500|low|a|b\n"]
    calls = []

    def output_of(*command: str) -> str:
        calls.append(command)
        return said[-1]

    def counted(now: float) -> list[str]:
        page = metrics.Page()
        metrics.add_preemptions(page.add, tmp_path / "preempted.json", now, output_of)
        return str(page.text()).splitlines()[1:]

    name = "gcluster_slurm_preemptions_total"
    first = [f'{name}{{qos="low",account="a|b"}} 1', f'{name}{{qos="scavenger",account="nlp"}} 2']
    assert counted(NOW) == first
    said.append("7|1795845400|scavenger|nlp\n7|1795846010|scavenger|nlp\n")
    assert counted(NOW + 15) == first
    assert counted(NOW + 60)[1] == f'{name}{{qos="scavenger",account="nlp"}} 3'
    assert len(calls) == 2
    assert {"--duplicates", "--state=PREEMPTED"} <= set(calls[0])


def test_preemptions_are_unknown_where_slurmdbd_has_none_of_the_answers(
    metrics: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def output_of(*command: str) -> str:
        if command[0] == "sacctmgr":
            return ""
        raise metrics.NoAnswerError(command[0])

    monkeypatch.setattr(metrics, "output_of", output_of)
    monkeypatch.setattr(metrics, "PREEMPTED", tmp_path / "preempted.json")
    text = str(metrics.page_of_nodes(accounting=True).text())

    assert "gcluster_slurm_dbd_up 1\n" in text
    assert "preemptions" not in text
