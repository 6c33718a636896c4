"""`gcluster cost`: what specs cost, as text, bars and JSON, from the spec and the catalog alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

EXAMPLES = Path(__file__).parents[2] / "examples"


def _example(name: str) -> str:
    return str(EXAMPLES / f"{name}.yaml")


def _cluster(run: Run, name: str, *options: str) -> dict[str, Any]:
    done = run("cost", _example(name), "--format", "json", *options)
    assert done.exit_code == 0, done.stderr
    (cluster,) = json.loads(done.stdout)["clusters"]
    return dict(cluster)


@pytest.mark.parametrize("name", ["hybrid", "aws-p5-slurm", "gcp-a3-mega-slurm", "superpod-127"])
def test_every_price_has_a_source_and_every_number_of_one_is_used(run: Run, name: str) -> None:
    done = run("cost", _example(name))
    assert done.exit_code == 0
    head, _, answer = done.stdout.partition("\nprices, as the catalog has them:\n")
    answer = answer.replace("\n  ", " ")  # a long source goes on on the next line
    assert set(re.findall(r" \[(\d+)\]", head)) == set(
        re.findall(r"^\[(\d+)\] .*\d{4}-\d", answer, re.MULTILINE)
    )


def test_the_worst_case_of_the_hybrid_is_held_against_its_budget(run: Run) -> None:
    done = run("cost", _example("hybrid"))
    cost = _cluster(run, "hybrid")
    worst = cost["totals"]["hour"]["usd"]
    assert f"worst case ${worst:,.2f}/h" in " ".join(done.stdout.split())
    left = cost["max_usd_per_hour"] - worst
    assert f"budget $1,200.00/h: the worst case takes {worst / 1200:.0%}, ${left:,.2f} left" in (
        done.stdout.splitlines()
    )


def test_machines_of_one_s_own_are_called_so_and_never_0_dollars(run: Run) -> None:
    done = run("cost", _example("superpod-127"))
    assert done.stdout.splitlines()[0].startswith("superpod: nothing is rented")
    assert "$0" not in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("pod "))
    assert row.split() == ["pod", "dgx-h100", "127", "own", "own", "own", "own", "1,295.4"]


def test_simulated_nodes_are_free_and_reported_so(run: Run, spec: Path) -> None:
    done = run("cost", str(spec))
    assert done.stdout.splitlines()[0] == "demo: nothing is rented"
    assert "free: on this machine or in a file (head, gpu)" in done.stdout


def test_a_price_that_only_bounds_is_marked_and_the_mark_explained(run: Run) -> None:
    done = run("cost", _example("gcp-a3-mega-slurm"))
    assert re.search(r"^train .* ≤93\.40 +≤2,988\.80 +≤2,988\.80", done.stdout, re.MULTILINE)
    assert "\n≤ at most: that market has no price of its own here" in done.stdout


def test_a_price_that_is_not_known_is_a_dash_and_never_0(run: Run) -> None:
    lines = run("cost", _example("gcp-a3-mega-slurm")).stdout.splitlines()
    titles = next(line for line in lines if "capacity-block" in line)
    row = next(line for line in lines[lines.index(titles) :] if line.startswith("train"))
    end = titles.index("capacity-block") + len("capacity-block")
    assert row[:end].endswith("  –")  # noqa: RUF001  # the dash of tables


def test_storage_without_a_price_is_named_as_not_counted(run: Run) -> None:
    done = run("cost", _example("aws-p5-slurm"))
    assert "not counted: storage scratch (lustre, 38,400 GiB; price unknown)" in done.stdout


@pytest.mark.parametrize("share", ["25%", "0.25"])
def test_a_month_is_reported_at_the_utilisation_that_is_requested(run: Run, share: str) -> None:
    whole = _cluster(run, "hybrid")["totals"]
    quarter = _cluster(run, "hybrid", "--utilisation", share)["totals"]
    always = whole["hour_now"]["usd"] * 730  # the gateway is there all the time
    shared = whole["month"]["usd"] - always
    assert quarter["month"]["usd"] == pytest.approx(always + shared / 4)
    assert quarter["hour"] == whole["hour"]


@pytest.mark.parametrize("share", ["0%", "101%", "2", "-1", "nan", "inf", "half", "%", ""])
def test_a_utilisation_that_is_no_share_is_a_usage_error(run: Run, share: str) -> None:
    done = run("cost", _example("hybrid"), f"--utilisation={share}")
    assert done.exit_code == 64
    assert f'--utilisation "{share}" is no share of a month' in done.stderr


def test_the_chart_has_a_bar_for_each_pool_that_costs_something(run: Run) -> None:
    done = run("cost", _example("aws-p5-slurm"), "--chart")
    bars = {line.split()[0] for line in done.stdout.splitlines() if re.search(r"█+░* ", line)}
    assert {"head", "train"} <= bars
    assert "POOL" not in done.stdout


def test_a_chart_and_json_do_not_go_together(run: Run) -> None:
    done = run("cost", _example("hybrid"), "--chart", "--format", "json")
    assert done.exit_code == 64
    assert json.loads(done.stdout)["diagnostics"][0]["code"] == "GC941"


def test_several_specs_are_reported_one_after_the_other_with_their_sum(run: Run) -> None:
    done = run("cost", _example("aws-p5-slurm"), _example("hybrid"))
    firsts = [
        line.split(":")[0] for line in done.stdout.splitlines() if " now, worst case " in line
    ]
    assert firsts == ["p5-pair", "hybrid", "2 clusters"]


def test_a_folder_and_standard_input_are_taken_too(run: Run, spec: Path) -> None:
    in_folder = run("cost", str(spec.parent))
    piped = run("cost", "-", stdin=spec.read_text(encoding="utf-8"))
    assert in_folder.exit_code == piped.exit_code == 0
    assert in_folder.stdout.startswith(piped.stdout.rstrip("\n"))


def test_a_spec_with_errors_ends_with_2_and_all_its_diagnostics(run: Run, spec: Path) -> None:
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("site: lab", "site: lob"), encoding="utf-8")
    done = run("cost", str(spec), _example("hybrid"))
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(re.findall(r"^error\[GC\d+\]", done.stderr, re.MULTILINE)) == 2
    assert f"{spec}:5:" in done.stderr


def test_the_errors_of_a_spec_come_as_one_document(run: Run, spec: Path) -> None:
    spec.write_text("nam: demo\n", encoding="utf-8")
    done = run("cost", str(spec), "--format", "json")
    answer = json.loads(done.stdout)
    assert done.exit_code == answer["exit_code"] == 2
    assert answer["ok"] is False
    assert answer["diagnostics"]


def test_a_catalog_of_ones_own_gives_the_price(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "apiVersion: gcluster/catalog/v1\nmachines:\n"
        "  - {name: ours, sites: [bare-metal], source: order, date: 2026-01,\n"
        "     cpu: {architecture: x86_64},\n"
        "     prices: [{usd_per_hour: 18.4, source: internal rate, date: 2026-10}]}\n",
        encoding="utf-8",
    )
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "apiVersion: gcluster/v1\nname: hall\ncatalog: [own.yaml]\n"
        "sites: {hall: {provider: bare-metal, ssh: {user: ops}}}\n"
        "pools:\n"
        "  head: {site: hall, role: controller, hosts: head01}\n"
        '  gpu: {site: hall, machine: ours, hosts: "gpu[01-10]"}\n'
        "scheduler: {type: slurm}\n",
        encoding="utf-8",
    )
    done = run("cost", str(path))
    assert done.exit_code == 0
    assert done.stdout.startswith("hall: $184.00/h now, worst case $184.00/h")
    assert done.stdout.splitlines()[0].endswith("; your own head not counted")
    assert "[1] internal rate, 2026-10" in done.stdout


def test_nothing_heavy_is_imported_and_no_network_is_queried(shell: Run) -> None:
    answer = shell("cost", _example("hybrid"), PYTHONPROFILEIMPORTTIME="1").stderr
    imported = set(re.findall(r"^import time:.*\| +(\S+)$", answer, re.MULTILINE))
    tops = {name.partition(".")[0] for name in imported}
    assert "gcluster.schemas.cost.bill" in imported
    assert tops & {"jsonschema", "pulumi", "ansible", "obstore", "asyncio", "socket"} == set()
