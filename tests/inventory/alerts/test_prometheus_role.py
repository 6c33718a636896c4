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
