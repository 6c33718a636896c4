"""The page in Chromium: of 2,000 simulated nodes, and of a Prometheus that scrapes exporters.

Needs Chromium, Node.js and Prometheus' programs: make test-dashboard brings them. With
GCLUSTER_PICTURES it writes the pictures of the docs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.simulated.dashboard import HOSTILE, simulated
from tests.inventory.dashboards import watched as live

from gcluster.inventory.dashboards import boards
from gcluster.lifecycle.status.dashboard.answers import Answers
from gcluster.lifecycle.status.dashboard.server import DashboardServer, page_files
from gcluster.lifecycle.status.waste.prometheus import Query, QueryPrometheus

pytestmark = pytest.mark.dashboard

HERE = Path(__file__).parent
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 380, "height": 800}
CHARTS = "document.querySelectorAll('{} .chart').length >= {}"


@contextmanager
def serving(query: QueryPrometheus) -> Iterator[DashboardServer]:
    server = DashboardServer(Answers("lab", query), 3600)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def large() -> Iterator[DashboardServer]:
    with serving(simulated(2000)) as server:
        yield server


def browse(server: DashboardServer, tmp_path: Path, *steps: dict[str, Any]) -> list[Any]:
    """Drive Chromium; return what was evaluated.

    No message on the console, and no request to another address, is let through.
    """
    chromium = shutil.which("chromium")
    assert chromium is not None, "make test-dashboard brings chromium"
    path = tmp_path / "steps.json"
    path.write_text(json.dumps({"url": server.url, "chromium": chromium, "steps": steps}))
    done = subprocess.run(
        ["node", "browse.mjs", str(path)], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["messages"] == []
    assert [each for each in found["requests"] if not each.startswith(server.url)] == []
    values: list[Any] = found["values"]
    return values


def picture(tmp_path: Path, name: str) -> str:
    """Return where a picture goes: into the docs where those are written."""
    folder = live.ROOT / "docs" if os.environ.get("GCLUSTER_PICTURES") else tmp_path
    return str(folder / f"dashboard-{name}.png")


def bare_panels(area: str) -> str:
    """Return where the page names panels that have no data."""
    return f"{area} .charts > p, #part > p"


def test_2000_nodes_are_one_canvas_and_each_can_be_chosen_by_keys(
    large: DashboardServer, tmp_path: Path
) -> None:
    title, line, place, elements, state = browse(
        large,
        tmp_path,
        WIDE
        | {"goto": "", "until": CHARTS.format("#health", 3)}
        | {"shot": picture(tmp_path, "health"), "evaluate": "document.title"},
        {"press": ["g", "End"], "evaluate": "document.getElementById('grid-line').textContent"},
        {
            "press": ["Home", "ArrowRight", "Enter"],
            "until": CHARTS.format("#node", 3),
            "evaluate": "location.hash",
        },
        {"press": ["Escape"], "until": "!document.getElementById('node').open"}
        | {"evaluate": "document.querySelectorAll('*').length"},
        {"press": ["/"], "until": "document.activeElement.id === 'find-node'"}
        | {"evaluate": "document.getElementById('node').open"},
    )

    assert title == "lab — gcluster"
    assert line.startswith("login01 · login · no compute node")
    assert place == "#node/gpu0003"
    assert elements < 5000  # rows of tables are limited, and nodes are none
    assert state is False


def test_the_four_questions_are_answered_in_both_themes_and_on_a_telephone(
    large: DashboardServer, tmp_path: Path
) -> None:
    jobs = "[...document.querySelectorAll('#wasters td.name')].map((cell) => cell.textContent)"
    wide = "document.documentElement.scrollWidth <= innerWidth"
    dark = "document.documentElement.classList.contains('dark')"
    names, follows, toggled, coming, part, fits = browse(
        large,
        tmp_path,
        WIDE
        | {"dark": False, "goto": "#money", "until": CHARTS.format("#money", 3)}
        | {"shot": picture(tmp_path, "money"), "evaluate": jobs},
        {
            "dark": True,
            "goto": "#next/fabric",
            "until": CHARTS.format("#part", 3),
            "shot": picture(tmp_path, "next"),
            "evaluate": dark,
        },
        {"press": ["t"], "evaluate": dark},
        {"dark": True, "goto": "#jobs/1004", "until": CHARTS.format("#jobs", 3)}
        | {"shot": picture(tmp_path, "job")},
        {"press": ["4"], "until": "!document.getElementById('next').hidden"}
        | {"evaluate": "[...document.querySelectorAll('#coming h3')].map((h) => h.textContent)"},
        {"press": ["3"], "until": "!document.getElementById('jobs').hidden"}
        | {"evaluate": "document.querySelectorAll('#job-list tbody tr').length"},
        NARROW
        | {"press": ["1"], "until": f"{CHARTS.format('#health', 3)} && {wide}"}
        | {"shot": str(tmp_path / "narrow.png"), "evaluate": wide},
    )

    assert names[0].startswith("train-")
    assert any("<img src=x onerror=alert(1)>" in name for name in names), HOSTILE
    assert (follows, toggled) == (True, False)
    assert len(coming) == 2
    assert part == 200
    assert fits is True


def test_a_job_s_page_shows_why_it_is_slow_and_every_board_is_drawn_from_a_real_prometheus(
    tmp_path: Path,
) -> None:
    with live.watched(tmp_path) as prometheus:

        def query(queries: Sequence[Query]) -> list[Any]:
            return [
                {"status": "success", "data": prometheus.get(path, **parameters)}
                for path, parameters in queries
            ]

        with serving(query) as server:
            places = {board.name: f"#next/{board.name}" for board in boards().values()} | {
                "cluster": "#health",
                "money": "#money",
                "job": f"#jobs/{live.JOB}",
                "node": f"#node/{live.NODE}",
                "pool": f"#next/pool/{live.POOL}",
            }
            where = {"cluster": "#health", "money": "#money", "job": "#jobs", "node": "#node"}
            steps = [
                WIDE
                | {"dark": name == "job", "goto": place, "until": CHARTS.format(area, 1)}
                | {"evaluate": f"document.querySelector('{bare_panels(area)}')?.textContent"}
                for name, place in places.items()
                for area in [where.get(name, "#part")]
            ]
            slow = {
                "goto": places["job"],
                "until": "document.querySelectorAll('#slow .finding').length",
                "evaluate": "[...document.querySelectorAll('#slow h3')].map((h) => h.textContent)",
            }
            *bare, found = browse(server, tmp_path, *steps, slow)

    assert bare == [None] * len(places)
    assert "GPUs wait" in found


def test_a_prometheus_that_stops_is_reported_on_the_page(tmp_path: Path) -> None:
    refused = {"status": "error", "error": "out of order"}
    with serving(lambda queries: [refused for _ in queries]) as server:
        chromium = shutil.which("chromium")
        steps = [{"goto": "", "evaluate": "document.getElementById('problem').textContent"}]
        path = tmp_path / "steps.json"
        path.write_text(json.dumps({"url": server.url, "chromium": chromium, "steps": steps}))
        done = subprocess.run(
            ["node", "browse.mjs", str(path)], cwd=HERE, capture_output=True, text=True, check=True
        )

    assert "Prometheus refuses a query: out of order" in json.loads(done.stdout)["values"][0]


def test_the_chart_library_is_the_file_of_the_lock() -> None:
    package = HERE / "node_modules/uplot"

    for name in ("uPlot.iife.min.js", "uPlot.min.css"):
        assert page_files()[name][1] == (package / "dist" / name).read_bytes()
    assert page_files()["uPlot.LICENSE.txt"][1] == (package / "LICENSE").read_bytes()
