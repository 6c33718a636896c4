"""Who wastes what, on a terminal and in files: hostile names do no harm, the unknown is never 0."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from gcluster.cli.console import Console
from gcluster.cli.render.inspect.report import (
    pool_cells,
    report_csv,
    report_markdown,
    report_text,
)
from gcluster.cli.render.inspect.report_html import report_html
from gcluster.cli.render.inspect.top import top_text
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.status.waste.goodput import ended_jobs
from gcluster.lifecycle.status.waste.links import LinkUse
from gcluster.lifecycle.status.waste.now import JobUse, NodeUse, Now
from gcluster.lifecycle.status.waste.report import PoolUse, Report, Slice, Use
from gcluster.lifecycle.status.waste.snapshot import export, is_snapshot, read_snapshot

PIPE = Console()
SCREEN = Console(width=80, colour=True, live=True, terminal=True)
HOSTILE = '=cmd|"x"!A1\x1b[2J\x1b]0;t\x07\n<script>alert(1)</script>|`**\u202e'
ASCII_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202e]")


def job(number: str, **changed: object) -> JobUse:
    given: dict[str, object] = {
        "job": number,
        "name": "train",
        "account": "nlp",
        "user": "ada",
        "qos": "normal",
        "partition": "main",
        "pools": ("gpu",),
        "running_s": 3600.0,
        "gpus": 4.0,
        "measured_gpus": 4.0,
        "active": 0.1625,
        "tensor": 0.05,
        "idle_gpus": 0.0,
        "untouched_gpus": 0.0,
        "usd_per_hour": 10.0,
        "wasted_usd_per_hour": 8.375,
    } | changed
    return JobUse(**given)  # type: ignore[arg-type]


UNMEASURED = job(
    "9",
    pools=(),
    measured_gpus=0.0,
    active=None,
    tensor=None,
    idle_gpus=None,
    untouched_gpus=None,
    usd_per_hour=None,
    wasted_usd_per_hour=None,
)


def now(*jobs: JobUse) -> Now:
    return Now(
        knows_jobs=True,
        cluster="lab",
        at=1_795_846_000.0,
        simulated=False,
        jobs=jobs,
        nodes=(
            NodeUse(
                name="gpu001",
                pool="gpu",
                state="drained",
                gpus=8,
                free=1.0,
                active=0.0,
                usd_per_hour=20.0,
                unused_usd_per_hour=20.0,
            ),
        ),
        usd_per_hour=20.0,
        held_usd_per_hour=10.0,
        wasted_usd_per_hour=8.375,
        unused_usd_per_hour={"drained": 20.0},
        unpriced_pools=(),
        problems=(),
    )


def report(account: str = "nlp", user: str = "ada") -> Report:
    use = Use(
        account=account,
        jobs=2,
        gpu_hours=12.5,
        unmeasured_gpu_hours=2.5,
        active=0.4,
        tensor=0.1,
        idle_gpu_hours=3.0,
        untouched_gpu_hours=1.0,
        usd=25.0,
        wasted_usd=15.0,
        wait_median_s=90.0,
    )
    return Report(
        cluster="lab",
        since=1_795_846_000.0 - 7200,
        until=1_795_846_000.0,
        measured_s=3600.0,
        simulated=False,
        accounts=(use, Use(account="dark", gpu_hours=8.0, unmeasured_gpu_hours=8.0)),
        users=(Use(account=account, user=user, gpu_hours=12.5, usd=25.0, wasted_usd=15.0),),
        pools=(
            PoolUse(
                pool="gpu",
                usd=80.0,
                held_usd=25.0,
                wasted_usd=15.0,
                unused_usd={"idle": 55.0},
                node_hours=2100.0,
                failures=2,
            ),
            PoolUse(pool="old", usd=None, held_usd=None, wasted_usd=None, unused_usd={}),
        ),
        slice_s=3600,
        slices=(Slice(until=1_795_846_000.0, usd=25.0, wasted_usd=15.0, unused_usd=55.0),),
        notes=("the price of old isn't known: no dollars of it are in the sums",),
    )


def test_top_is_a_line_for_each_job_and_what_isnt_known_is_a_question_mark() -> None:
    lines = top_text(now(job("7"), UNMEASURED), PIPE).splitlines()

    assert lines[1] == "$20.00/h, $10.00 held by jobs, $8.38 wasted, $20.00 drained"
    seven = next(line for line in lines if line.startswith("7 "))
    assert seven.split()[-4:] == ["16%", "5%", "10.00", "8.38"]
    nine = next(line for line in lines if line.startswith("9 "))
    assert nine.split()[-4:] == ["?", "?", "?", "?"]
    assert "4*" in nine
    assert "* some of its GPUs aren't measured" in lines


def link(device: str, *, up: bool = True, lost: int = 0, rate: float | None = None) -> LinkUse:
    return LinkUse(node="gpu001", device=device, up=up, lost=lost, bytes_per_s=rate)


def test_top_does_not_call_gpus_free_while_jobs_are_unknown() -> None:
    known = now()
    unknown = msgspec.structs.replace(known, knows_jobs=False)

    assert "no job holds GPUs" in top_text(known, PIPE)
    assert "its jobs aren't known" in top_text(unknown, PIPE)
    assert "no job holds GPUs" not in top_text(unknown, PIPE)


def test_top_has_links_and_of_those_without_room_how_many_are_down() -> None:
    down = [link(f"eth{number}", up=False) for number in range(2, 8)]
    links = (*down, link("mlx5_0:1", lost=5), link("eth0", rate=3.25e6))
    shown = msgspec.structs.replace(now(job("7")), links=links)

    lines = [line.split() for line in top_text(shown, PIPE).splitlines()]
    assert ["gpu001", "eth2", "down", "0", "-"] in lines
    assert ["gpu001", "mlx5_0:1", "up", "5", "-"] in lines
    assert ["gpu001", "eth0", "up", "0", "3.2"] in lines
    few = top_text(shown, SCREEN, height=24)
    assert "... and 3 lost links more" in few
    assert len(few.splitlines()) <= 24


def test_a_link_of_an_exported_report_is_one_of_the_web_alone() -> None:
    linked = msgspec.structs.replace(report(), link="https://g.example.edu/d/lab-money?from=1&to=2")
    hostile = msgspec.structs.replace(report(), link="javascript:alert(1)")

    assert 'href="https://g.example.edu/d/lab-money?from=1&amp;to=2"' in report_html(linked)
    assert "dashboards: https://g.example.edu" in report_text(linked, PIPE)
    assert "javascript" not in report_html(hostile)


def test_top_keeps_to_the_screen_and_counts_what_it_leaves_out() -> None:
    many = now(*(job(str(number)) for number in range(100)))
    text = top_text(many, SCREEN, height=24)

    assert len(text.splitlines()) <= 24
    assert re.search(r"\.\.\. and \d+ jobs more", text)
    assert max(len(re.sub("\x1b\\[[0-9;]*m", "", line)) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("console", [PIPE, SCREEN])
def test_a_hostile_name_moves_no_cursor_and_makes_no_line(console: Console) -> None:
    honest = top_text(now(job("7")), console)
    hostile = top_text(now(job("7", name=HOSTILE, account=HOSTILE, user=HOSTILE)), console)
    shown = report_text(report(HOSTILE, HOSTILE), console)

    assert hostile.count("\n") == honest.count("\n")
    for text in (hostile, shown):
        assert not ASCII_CONTROL.search(re.sub("\x1b\\[[0-9;]*m", "", text).replace("\n", ""))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in {"src", "href"}]


def test_the_page_has_no_script_and_loads_nothing_with_any_user_names() -> None:
    page = report_html(report(HOSTILE, HOSTILE))
    tags = _Tags()
    tags.feed(page)

    assert "script" not in tags.tags
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert not ASCII_CONTROL.search(page.replace("\n", ""))


def test_the_page_draws_dollars_and_how_busy_gpus_were() -> None:
    empty = Slice(until=1_795_849_600.0, usd=0.0, wasted_usd=0.0, unused_usd=80.0)
    given = report()
    page = report_html(msgspec.structs.replace(given, slices=(*given.slices, empty)))

    # $25 held of which $15 were wasted: 40 % of the height of 120
    assert 'y="72.00" height="48.00"' in page
    assert "SM active 40%</title>" in page
    assert "no GPU was held</title>" in page


def test_a_spreadsheet_gets_numbers_in_full_and_no_formula() -> None:
    [row] = csv.DictReader(StringIO(report_csv(report(HOSTILE, "-1+1"))))

    assert row["user"] == "'-1+1"
    assert row["account"].startswith("'=cmd")
    assert (row["gpu_hours"], row["wasted_usd"], row["active"]) == ("12.5", "15.0", "")


def test_markdown_of_a_hostile_name_stays_one_cell() -> None:
    honest, hostile = report_markdown(report()), report_markdown(report(HOSTILE, HOSTILE))
    cells = [re.sub(r"\\.", "", line).count("|") for line in hostile.splitlines()]

    assert cells == [line.count("|") for line in honest.splitlines()]
    assert "<script>" not in hostile


def test_a_report_shows_how_much_of_the_time_has_metrics_and_what_has_none() -> None:
    lines = report_text(report(), PIPE).splitlines()

    assert "metrics of 60 min of the 2 h: Prometheus keeps no more, or didn't run" in lines
    dark = next(line for line in lines if line.startswith("dark"))
    assert dark.split()[1:] == ["0", "8.0", "?", "?", "?", "?", "?", "?", "?", "?"]
    old = next(line for line in lines if line.startswith("old"))
    assert set(old.split()[1:]) == {"?"}
    gpu = next(line for line in lines if line.startswith("gpu"))
    assert gpu.split()[-2:] == ["2", "1,050.0"]


def test_a_pool_without_failures_has_run_longer_than_its_node_hours() -> None:
    [pool, _] = report().pools
    quiet = msgspec.structs.replace(pool, failures=0)
    assert (quiet.mtbf_hours, pool_cells(quiet)[-2:]) == (None, ["0", "> 2,100.0"])


def test_an_exported_report_is_the_same_after_down(tmp_path: Path) -> None:
    file = tmp_path / "lab.json"
    export(report(), file)

    assert is_snapshot(str(file))
    assert read_snapshot(file) == report()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "other/v2"}'])
def test_what_is_no_exported_report_is_refused_in_words(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(LifecycleError) as raised:
        read_snapshot(file)

    assert raised.value.diagnostics[0].code == "GC1199"
    assert int(raised.value.exit_code) == 64


def test_goodput_is_the_share_of_gpu_hours_of_jobs_that_completed() -> None:
    # 2 GPUs for 3 h completed; 1 GPU for 2 h failed; a running one and one without GPUs don't count
    answer = (
        "COMPLETED|10800|billing=8,cpu=8,gres/gpu=2,gres/gpu:h100=2,node=1|nlp\n"
        "FAILED|7200|cpu=8,gres/gpu=1,node=1|nlp\n"
        "RUNNING|7200|cpu=8,gres/gpu=8,node=1|nlp\n"
        "COMPLETED|7200|cpu=8,node=1|cpuonly\n"
        "CANCELLED by 2001|3600|gres/gpu=1|a|b\n"
    )
    ended = ended_jobs(answer)

    assert ended.keys() == {"nlp", "a|b"}
    assert (ended["nlp"].completed, ended["nlp"].others, ended["nlp"].goodput) == (6, 2, 0.75)
    assert ended["a|b"].goodput == 0
