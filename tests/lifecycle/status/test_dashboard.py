"""The page's server: who may query it, what for, and what names of jobs do to it (nothing)."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.simulated.dashboard import HOSTILE, simulated

from gcluster.inventory.dashboards import boards
from gcluster.lifecycle.cluster.outcome import failure
from gcluster.lifecycle.status.dashboard.answers import Answers, UnknownError
from gcluster.lifecycle.status.dashboard.server import DashboardServer, LinkEnded, page_files
from gcluster.lifecycle.status.waste.prometheus import Query

NODES = 40


class Recorded:
    """A double of Prometheus that keeps its queries."""

    def __init__(self) -> None:
        """Answer as a cluster of 40 nodes."""
        self.answer = simulated(NODES)
        self.queries: list[str] = []

    def __call__(self, queries: Sequence[Query]) -> list[Any]:
        """Answer queries."""
        self.queries += [parameters["query"] for _, parameters in queries]
        return self.answer(queries)


@pytest.fixture
def prometheus() -> Recorded:
    return Recorded()


@pytest.fixture
def server(prometheus: Recorded) -> Iterator[DashboardServer]:
    made = DashboardServer(Answers("lab", prometheus), 12 * 3600)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def get(
    server: DashboardServer, path: str, host: str = "127.0.0.1", method: str = "GET"
) -> tuple[int, bytes, dict[str, str]]:
    """Request a path below the token; one that begins with / is requested as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    full = path if path.startswith("/") else f"/{server.token}/{path}"
    connection.request(method, full, headers={"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read(), dict(answer.getheaders())


def test_it_listens_on_the_loopback_address_alone(server: DashboardServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_who_lacks_the_token_gets_nothing(server: DashboardServer, prometheus: Recorded) -> None:
    wrong = server.token[:-1] + ("A" if server.token[-1] != "A" else "B")
    for path in ("/", "/index.html", "/api/now", f"/{wrong}/api/now"):
        status, content, _ = get(server, path)
        assert (status, b"lab" in content) == (404, False), path
    assert prometheus.queries == []


def test_a_link_leads_nowhere_when_its_time_is_over_nor_after_another_start(
    prometheus: Recorded,
) -> None:
    ended = DashboardServer(Answers("lab", prometheus), 3600)
    later = DashboardServer(Answers("lab", prometheus), 12 * 3600)
    serving = threading.Thread(target=later.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    answering = threading.Thread(target=ended.handle_request)
    answering.start()
    ended.ends = 0.0

    status, content, _ = get(ended, "api/now")
    old = get(later, f"/{ended.token}/api/now")[0]
    answering.join()
    with pytest.raises(LinkEnded):
        ended.serve_forever(poll_interval=0.01)
    later.shutdown()
    serving.join()
    for server in (ended, later):
        server.server_close()

    assert (status, b"gcluster dashboard" in content, old) == (410, True, 404)
    assert prometheus.queries == []


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "[::1", "", "lab"])
def test_a_name_that_leads_here_from_elsewhere_is_refused(
    server: DashboardServer, prometheus: Recorded, host: str
) -> None:
    status, content, _ = get(server, "api/now", host=host)

    assert status == 421
    assert b"127.0.0.1" in content
    assert prometheus.queries == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8080", "LOCALHOST"])
def test_it_is_reached_through_a_tunnel_with_another_port(
    server: DashboardServer, host: str
) -> None:
    assert get(server, "api/now", host=host)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_nothing_but_get_is_answered(server: DashboardServer, method: str) -> None:
    status, _, headers = get(server, "api/now", method=method)

    assert status == 501
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("path", ["", "app.js", "api/now", "no/such", "../server.py"])
def test_every_answer_has_the_policy_of_the_page(server: DashboardServer, path: str) -> None:
    _, _, headers = get(server, path)
    policy = headers["Content-Security-Policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["../server.py", "..%2fserver.py", "page/app.js", "api/v1/query"])
def test_files_are_those_of_the_page_and_paths_lead_nowhere_else(
    server: DashboardServer, path: str
) -> None:
    assert get(server, path)[0] == 404


@pytest.mark.parametrize(
    "query",
    [
        "name=job&of=7%22%7D%20or%20up",
        "name=job&of=",
        "name=job&of=7&hours=9999",
        "name=node&of=nosuch",
        "name=pool&of=gpu%22%7D",
        "name=cluster&of=7",
        "name=nosuch",
        "query=up",
    ],
)
def test_what_isn_t_known_never_becomes_a_query(
    server: DashboardServer, prometheus: Recorded, query: str
) -> None:
    status, _, _ = get(server, f"api/board?{query}")

    assert status == 404
    assert not any("nosuch" in each or "or up" in each for each in prometheus.queries)


def test_a_board_sends_the_queries_of_the_table_and_no_others(
    server: DashboardServer, prometheus: Recorded
) -> None:
    for board in boards().values():
        of = {"job": "1001", "node": "gpu0001", "pool": "gpu"}.get(board.variable or "", "")
        prometheus.queries.clear()
        status, content, _ = get(server, f"api/board?name={board.name}&of={of}")
        table = [query for panel in board.panels for query in panel.queries.values()]

        assert status == 200
        assert {q.replace(f"${board.variable}", of) for q in table} <= set(prometheus.queries)
        assert [c["title"] for c in json.loads(content)["charts"]] == [
            p.title for p in board.panels
        ]


def test_many_pages_are_one_question(server: DashboardServer, prometheus: Recorded) -> None:
    first = get(server, "api/now")[1]
    count = len(prometheus.queries)

    assert [get(server, "api/now")[1] for _ in range(5)] == [first] * 5
    assert len(prometheus.queries) == count


def test_the_answer_has_jobs_nodes_and_alerts_as_they_are_named(server: DashboardServer) -> None:
    found = json.loads(get(server, "api/now")[1])

    assert len(found["now"]["nodes"]) == NODES + 1
    assert HOSTILE in {job["name"] for job in found["now"]["jobs"]}
    [alert] = found["alerts"]
    assert (alert["name"], alert["node"], alert["state"]) == ("NodeDown", "gpu0000", "firing")
    assert alert["do"]
    assert found["silent"] == ["gpu0000"]


def test_a_prometheus_that_stops_has_a_message(
    server: DashboardServer, prometheus: Recorded
) -> None:
    def silent(_: Sequence[Query]) -> list[Any]:
        raise failure("GC1198", "Prometheus on head01 doesn't answer", hint="systemctl status it")

    prometheus.answer = silent
    status, content, _ = get(server, "api/now")

    assert status == 502
    assert json.loads(content) == {
        "problem": "Prometheus on head01 doesn't answer",
        "hint": "systemctl status it",
    }


def test_a_job_s_number_is_digits(prometheus: Recorded) -> None:
    answers = Answers("lab", prometheus)
    for wrong in ("7\n", "7 or 1", "\u0667", "1" * 13, "-1"):
        with pytest.raises(UnknownError):
            answers.board("job", "6", wrong)


def test_the_page_has_neither_script_nor_style_nor_address_in_its_markup() -> None:
    [(_, markup)] = [file for name, file in page_files().items() if name.endswith(".html")]
    text = markup.decode()

    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\son[a-z]+=|https?:", text) == []


def test_names_of_people_never_become_markup() -> None:
    ours = {name: c.decode() for name, (_, c) in page_files().items() if name.endswith(".js")}
    ways = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(")

    assert {name: found for name, text in ours.items() if (found := ways.findall(text))} == {}


def test_the_chart_library_is_the_locked_one_with_its_licence(root: Path) -> None:
    lock = json.loads((root / "tests/dashboard/package-lock.json").read_text(encoding="utf-8"))
    version = lock["packages"]["node_modules/uplot"]["version"]
    files = page_files()

    assert f"uPlot (v{version})".encode() in files["uPlot.iife.min.js"][1]
    assert b"The MIT License" in files["uPlot.LICENSE.txt"][1]
