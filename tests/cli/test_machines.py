"""`gcluster machines`: the catalog as a table and as JSON, and all about one machine type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from gcluster.cli.console import Console, width
from gcluster.cli.render.spec.machines import MARKETS, UNKNOWN, machine_text, table
from gcluster.cli.spec.machines import MarketWord, OrderWord
from gcluster.schemas.catalog import Market, load_catalog
from gcluster.schemas.catalog.selection import MachineFilter, Order, offers

Run = Callable[..., Any]

_OWN = """\
apiVersion: gcluster/catalog/v1
machines:
  - name: our-hgx
    sites: [bare-metal]
    cpu: {architecture: x86_64}
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 8}
    source: purchase order
    date: 2026-01-31
"""


def _table(wanted: MachineFilter, console: Console) -> str:
    return table(offers(load_catalog(), wanted), wanted, console)


def test_the_words_of_the_command_are_those_of_the_catalog() -> None:
    assert get_args(MarketWord) == get_args(Market) == tuple(MARKETS)
    assert get_args(OrderWord) == get_args(Order)


def test_every_machine_type_is_listed_with_its_figures(run: Run) -> None:
    done = run("machines")
    assert done.exit_code == 0
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
    assert set(load_catalog().machines) <= set(rows)
    row = " ".join(rows["p5.48xlarge"])
    assert row == "p5.48xlarge aws 8xH100 80 192 2048 8 efa-v2 3200 30.4 55.04 6.88 osrc"


def test_what_is_not_known_is_a_dash_and_never_0(run: Run) -> None:
    row = next(
        line for line in run("machines").stdout.splitlines() if line.startswith("hgx-h100-8 ")
    )
    assert row.split() == ["hgx-h100-8", "metal", "8xH100", "80", *"––8––––––"]  # noqa: RUF001  # dashes


def test_a_doubtful_figure_is_marked_and_the_mark_explained(run: Run) -> None:
    marked = run("machines", "--cloud", "aws", "--gpu", "gb200").stdout
    assert " 22.5* " in marked
    assert "\n* not confirmed" in marked
    assert "*" not in run("machines", "--gpu", "8xa100", "--cloud", "aws").stdout


def test_words_narrow_the_list(run: Run) -> None:
    listed = run(
        "machines", "--gpu", "h100", "--cloud", "AWS", "--market", "spot", "--sort", "gpus"
    )
    names = [line.split()[0] for line in listed.stdout.splitlines() if line.startswith("p")]
    assert names == ["p5.48xlarge", "p5.4xlarge"]


def test_the_same_values_come_as_json(run: Run) -> None:
    answer = json.loads(run("machines", "--gpu", "4xgb200", "--cloud=aws", "--format=json").stdout)
    (machine,) = answer["machines"]
    assert machine["name"] == "p6e-gb200.36xlarge"
    assert machine["nvlink_domain_gpus"] == 72
    assert machine["fabric_gbps"] is None
    assert machine["usd_per_hour"] is None
    assert machine["price"] is None


def test_json_gives_the_price_with_its_source_and_market(run: Run) -> None:
    answer = json.loads(
        run("machines", "--gpu", "1xh100", "--cloud", "aws", "--format=json").stdout
    )
    price = answer["machines"][0]["price"]
    assert set(price) == {"usd_per_hour", "market", "region", "source", "date"}
    assert price["market"] == "on-demand"


@pytest.mark.parametrize(
    ("words", "help_line"),
    [
        (("--gpu", "h10"), 'did you mean "H100"?'),
        (("--fabric", "efa"), 'did you mean "efa-v'),
        (("--cloud", "alibaba"), "known: aws, azure, bare-metal"),
        (("--region", "us-west-9"), 'did you mean "us-west-'),
        (("p5.48xlrge",), 'did you mean "p5.48xlarge"?'),
        (("p5.48xlarge", "--gpu", "h100"), "gcluster machines --help"),
    ],
)
def test_an_unknown_name_is_a_usage_error_with_the_nearest(
    run: Run, words: tuple[str, ...], help_line: str
) -> None:
    done = run("machines", *words)
    assert done.exit_code == 64
    assert done.stdout == ""
    assert help_line in done.stderr


def test_nothing_that_fits_is_exit_code_1(run: Run) -> None:
    done = run("machines", "--gpu", "mi300x", "--cloud", "aws")
    assert done.exit_code == 1
    assert done.stdout == "no machine type of the catalog fits\n"
    done = run("machines", "--gpu", "mi300x", "--cloud", "aws", "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, {"machines": [], "families": []})


def test_a_region_shows_its_prices_and_reports_what_it_does_not_have(run: Run) -> None:
    done = run("machines", "--cloud", "aws", "--region", "eu-west-2")
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
    assert rows["p5.48xlarge"][-3:-1] == ["71.55", "8.94"]
    assert rows["p6-b200.48xlarge"][-3:-1] == [UNKNOWN, UNKNOWN]
    assert "p5en.48xlarge" not in rows
    assert "may still not be offered in eu-west-2" in done.stdout


def test_one_machine_is_reported_with_a_source_and_date_for_each_figure(run: Run) -> None:
    done = run("machines", "P5.48xlarge")
    assert done.exit_code == 0
    assert re.search(r"prices\.0 +\$55\.04/h on-demand in us-east-1 \[", done.stdout)
    assert "L-417A185B: 192 vCPU a node (on-demand, reservation) [" in done.stdout
    numbers = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  [")}
    figures = [line for line in done.stdout.splitlines() if line.endswith("]")]
    assert figures
    assert {line.split()[-1] for line in figures} == numbers
    assert "aws/karpenter-provider-aws, reference of instance types, 2026-07-20" in done.stdout


def test_zones_and_marks_of_one_machine_are_reported(run: Run) -> None:
    done = run("machines", "a3-highgpu-1g")
    assert "us-central1-a" in done.stdout
    assert "* not confirmed" in done.stdout


def test_one_machine_comes_as_json_too(run: Run) -> None:
    answer = json.loads(run("machines", "p6-b200.48xlarge", "--format", "json").stdout)
    count = next(figure for figure in answer["figures"] if figure["path"] == "nics.0.count")
    assert count["value"] == 8
    assert count["unverified"] is True
    assert count["source"]


@pytest.mark.parametrize("name", sorted(load_catalog().machines))
def test_every_machine_is_shown_in_80_columns(name: str) -> None:
    text = machine_text(load_catalog().machines[name], Console(width=80))
    for line in text.splitlines():
        assert width(line) <= 80 or max(map(width, line.split())) > 40, "no word is broken"


def test_a_file_of_ones_own_is_listed(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(_OWN, encoding="utf-8")
    assert "our-hgx" in run("machines", "--catalog", str(own)).stdout
    assert "purchase order, 2026-01-31" in run("machines", "our-hgx", "--catalog", str(own)).stdout


def test_a_wrong_file_of_ones_own_is_located(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(_OWN.replace("count: 8", "count: eight"), encoding="utf-8")
    done = run("machines", "--catalog", str(own))
    assert done.exit_code == 2
    assert f"{own}:6:" in done.stderr
    assert run("machines", "--catalog", str(tmp_path / "none.yaml")).exit_code == 2


def test_the_table_fits_a_terminal_of_100_columns_with_every_column() -> None:
    text = _table(MachineFilter(), Console(width=100, live=True, terminal=True))
    assert all(width(line) <= 100 for line in text.splitlines())
    assert "no room for" not in text


@pytest.mark.parametrize("columns", [60, 72, 80])
def test_a_narrow_terminal_leaves_columns_out_and_reports_which(columns: int) -> None:
    text = _table(MachineFilter(cloud="azure"), Console(width=columns, live=True, terminal=True))
    rows = text.partition("\n\n")[0].splitlines()
    assert all(width(line) <= columns for line in rows)
    assert "$/h" in rows[0]
    gone = re.search(r"no room for (.*):", text)
    assert gone is not None
    assert not set(gone[1].split(", ")) & set(rows[0].split())


def test_a_pipe_keeps_one_row_for_each_type_whatever_the_terminal(shell: Run) -> None:
    wide, narrow = (shell("machines", COLUMNS=columns).stdout for columns in ("200", "40"))
    assert wide == narrow
    rows = wide.partition("\n\n")[0].splitlines()
    assert len(rows) == 1 + len(load_catalog().machines)


def test_a_terminal_without_unicode_gets_plain_dashes() -> None:
    text = _table(MachineFilter(gpu="h100"), Console(unicode=False))
    assert text.isascii()
    assert "- not known" in text


def test_families_are_listed_by_place_and_any_size_is_reported_about(run: Run) -> None:
    text = run("machines", "--cloud", "gcp").stdout
    assert "CPU machines by family" in text
    assert "n2-standard" in text
    assert "m7i" not in text.partition("CPU machines by family")[2]
    assert "16 GiB" in run("machines", "n2-standard-4").stdout
    known = json.loads(run("machines", "--format", "json").stdout)["families"]
    [family] = [each for each in known if each["name"] == "c4a-standard"]
    assert (family["architecture"], family["priced"]) == ("aarch64", False)
    assert "c4a-standard-8" in family["machines"]


def test_who_searches_for_gpus_has_no_families(run: Run) -> None:
    assert "by family" not in run("machines", "--gpu", "h100").stdout
