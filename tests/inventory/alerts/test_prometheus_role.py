"""The role's own configuration of Prometheus and its prober, run by the real programs.

All metrics reach a second Prometheus with the cluster's name; doors that are open and closed have
other probes.
"""

from __future__ import annotations

import json
import re
import shutil
import socketserver
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gcluster.lifecycle.secrets.certificates import new_authority

sys.path.insert(0, str(Path(__file__).parent))
from servers import configuration, made, prometheus, query, ssl_context, variables_of
from sinks import awaited
from tests.free_port import free_port

sys.path.pop(0)


@contextmanager
def greeting(text: bytes) -> Iterator[int]:
    """Listen on a port and greet who connects, as sshd does; yields the port."""

    class Greet(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(text)
            self.request.recv(100)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.monitoring
def test_a_probe_succeeds_where_sshd_greets_and_fails_elsewhere(tmp_path: Path) -> None:
    folder, own, prober = made(tmp_path / "head", new_authority("lab")), free_port(), free_port()
    seen = variables_of(folder, own, prometheus_probe_port=prober)
    config, files = configuration(seen)
    config["scrape_configs"] = [
        job for job in config["scrape_configs"] if job["job_name"] == "probe"
    ]
    config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config["scrape_configs"][0]["scrape_timeout"] = "1s"
    (folder / "blackbox.yml").write_text(files["blackbox.yml"], encoding="utf-8")
    [arguments] = re.findall(r'ARGS="(.*)"', files["blackbox-args"])
    program = shutil.which("prometheus-blackbox-exporter")
    assert program is not None, "make test-alerts brings it"

    with (
        greeting(b"SSH-2.0-OpenSSH_9.2\r\n") as ssh,
        greeting(b"220 a mail server\r\n") as other,
        prometheus(folder, own, config),
    ):
        doors = [("open", "ssh", f"127.0.0.1:{ssh}"), ("other", "ssh", f"127.0.0.1:{other}")]
        doors += [("closed", "ssh", f"127.0.0.1:{free_port()}")]
        doors += [("api", "api", f"http://127.0.0.1:{free_port()}/slurm/")]
        targets = [
            {"targets": [target], "labels": {"instance": name, "probe": probe}}
            for name, probe, target in doors
        ]
        (folder / "targets").mkdir()
        process = subprocess.Popen([program, *arguments.split()], stderr=subprocess.DEVNULL)
        try:
            (folder / "targets/new").write_text(json.dumps(targets), encoding="utf-8")
            (folder / "targets/new").rename(folder / "targets/probes.json")
            awaited("four probes", lambda: len(query(folder, own, "probe_success")) == len(doors))
            found = query(folder, own, "probe_success")
            context = ssl_context(folder)
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"https://localhost:{prober}/probe", context=context)
        finally:
            process.terminate()
            process.wait()

    assert {one["metric"]["instance"]: one["value"][1] for one in found} == {
        "open": "1", "other": "0", "closed": "0", "api": "0",
    }  # fmt: skip


@pytest.mark.monitoring
def test_metrics_reach_the_place_of_many_clusters_and_no_one_without_the_password_may_write(
    tmp_path: Path,
) -> None:
    authority = new_authority("lab")
    cluster, stranger, central = (
        made(tmp_path / name, authority) for name in ("cluster", "stranger", "central")
    )
    (stranger / "remote-secret").write_text("guessed", encoding="utf-8")
    port = free_port()
    remote = {
        "url": f"https://localhost:{port}/api/v1/write",
        "user": "gcluster",
        "ca": "-----BEGIN CERTIFICATE-----\n",
        "login": True,
    }

    with ExitStack() as running:
        receives = "--web.enable-remote-write-receiver"
        running.enter_context(prometheus(central, port, {}, receives))
        for folder in (cluster, stranger):
            own = free_port()
            given = {
                "prometheus_cluster": folder.name,
                "prometheus_remote_write": remote,
                "prometheus_remote_secret_file": str(folder / "remote-secret"),
            }
            config, _ = configuration(variables_of(folder, own, **given))
            config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
            config["scrape_configs"] = [
                job for job in config["scrape_configs"] if job["job_name"] == "prometheus"
            ]
            running.enter_context(prometheus(folder, own, config))
        awaited("a metric of the cluster", lambda: bool(query(central, port)))
        refused = stranger / "log"
        awaited("the stranger is refused", lambda: "401" in refused.read_text(encoding="utf-8"))
        found = query(central, port)

    assert {one["metric"]["cluster"] for one in found} == {"cluster"}


PLUGIN = {
    "jobs": "# HELP slurm_jobs Total number of jobs\n# TYPE slurm_jobs gauge\nslurm_jobs 42\n"
    "# HELP slurm_jobs_hold Number of jobs in Hold state\n# TYPE slurm_jobs_hold gauge\n"
    "slurm_jobs_hold 3\n",
    "nodes": "# HELP slurm_node_cpus Total number of cpus in the node\n"
    '# TYPE slurm_node_cpus gauge\nslurm_node_cpus{node="gpu001"} 96\n'
    "# HELP slurm_node_memory_free_bytes Free memory in bytes of the node\n"
    '# TYPE slurm_node_memory_free_bytes gauge\nslurm_node_memory_free_bytes{node="gpu001"} 7\n',
    "partitions": "# HELP slurm_partition_nodes_idle Nodes in Idle state\n"
    '# TYPE slurm_partition_nodes_idle gauge\nslurm_partition_nodes_idle{partition="main"} 2\n',
    "scheduler": "# HELP slurm_bf_depth_mean Mean backfill cycle depth\n"
    "# TYPE slurm_bf_depth_mean gauge\nslurm_bf_depth_mean 5\n",
}
"""Answers of slurmctld's endpoints, cut, as metrics/openmetrics writes them (25.11.7)."""


@contextmanager
def slurmctld(requested: set[str]) -> Iterator[int]:
    """Answer as slurmctld's plugin does, and keep which paths were requested; yields the port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.add(self.path)
            text = PLUGIN.get(self.path.removeprefix("/metrics/"))
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.monitoring
def test_of_slurm_s_own_plugin_what_the_node_exporter_lacks_is_kept_and_no_user_s(
    tmp_path: Path,
) -> None:
    folder, own, requested = made(tmp_path / "head", new_authority("lab")), free_port(), set[str]()
    with slurmctld(requested) as port:
        config, _ = configuration(variables_of(folder, own, prometheus_slurmctld_port=port))
        config["scrape_configs"] = [
            job | {"scrape_interval": "1s", "scrape_timeout": "1s"}
            for job in config["scrape_configs"]
            if job["job_name"] == "slurmctld"
        ]
        with prometheus(folder, own, config):
            kept = '{__name__=~"slurm_.*"}'
            awaited("four endpoints", lambda: len(query(folder, own, kept)) == len(PLUGIN))
            found = [one["metric"] for one in query(folder, own, kept)]

    assert {(one["__name__"], one["endpoint"]) for one in found} == {
        ("slurm_jobs_hold", "jobs"),
        ("slurm_node_memory_free_bytes", "nodes"),
        ("slurm_partition_nodes_idle", "partitions"),
        ("slurm_bf_depth_mean", "scheduler"),
    }
    assert {one["job"] for one in found} == {"slurmctld"}
    assert requested == {f"/metrics/{endpoint}" for endpoint in PLUGIN}


def test_no_slurmctld_is_queried_unless_its_port_is_given(tmp_path: Path) -> None:
    config, _ = configuration(variables_of(tmp_path, free_port()))

    assert "slurmctld" not in {job["job_name"] for job in config["scrape_configs"]}
