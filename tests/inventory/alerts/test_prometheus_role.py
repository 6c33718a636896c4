"""The role's own configuration of Prometheus and its prober, run by the real programs.

All metrics reach a second Prometheus with the cluster's name; doors that are open and closed have
other probes.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import socketserver
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.ansible_collections.gcluster.cluster.plugins.modules.web_config import crypt
from gcluster.inventory.compile.system.monitoring import SERVER_SECRET
from gcluster.lifecycle.bundle.role_tasks import filled_tasks, loaded, role_variables
from gcluster.lifecycle.secrets.certificates import certificate_of, issue, new_authority
from gcluster.lifecycle.secrets.makers import ISSUED

sys.path.insert(0, str(Path(__file__).parent))
from sinks import awaited
from tests.free_port import free_port

sys.path.pop(0)

ROLE = Path(__file__).parents[3] / "roles/prometheus"
DEBIAN = {"distribution": "Debian", "distribution_major_version": "13", "os_family": "Debian"}
WRITES = "gcluster.cluster.managed_files"
PASSWORD = "plover-remote-2207"  # noqa: S105  # of the second Prometheus
UP = 'up{job="prometheus"}'


def variables_of(folder: Path, port: int, **given: Any) -> dict[str, Any]:
    """Return the role's variables on Debian 13."""
    variables = {
        "prometheus_host": "node01",
        "prometheus_cluster": "lab",
        "prometheus_rules": "",
        "prometheus_authority": "",
        "prometheus_certificate": "",
        "prometheus_password": "",
        "prometheus_remote_secret": "",
        "prometheus_port": port,
        "prometheus_targets": [],
        **given,
    }
    return role_variables(ROLE, variables, DEBIAN) | {"prometheus_folder": str(folder)}


def configuration(seen: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the role writes as prometheus.yml, and its other files by their names."""
    tasks = list(filled_tasks(loaded(ROLE / "tasks/configure.yml"), seen, ROLE))
    [written] = [t["ansible.builtin.template"] for t in tasks if "ansible.builtin.template" in t]
    [others] = [t["gcluster.cluster.managed_files"] for t in tasks if WRITES in t]
    files = {Path(path).name: text for path, text in others["files"].items()}
    return yaml.safe_load(written["content"]), files


@contextmanager
def prometheus(folder: Path, port: int, config: dict[str, Any], *more: str) -> Iterator[None]:
    """Run the real one behind TLS and a password."""
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    pem = str(folder / "server.pem")
    hashed = crypt(PASSWORD, "$2b$04$abcdefghijklmnopqrstuu")
    web = {
        "tls_server_config": {"cert_file": pem, "key_file": pem},
        "basic_auth_users": {"gcluster": hashed},
    }
    (folder / "web.yml").write_text(yaml.safe_dump(web), encoding="utf-8")
    program = shutil.which("prometheus")
    assert program is not None, "make test-monitoring brings it"
    arguments = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.config.file=web.yml",
        *more,
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], cwd=folder, stdout=log, stderr=log)
    try:
        yield
        assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
    finally:
        process.terminate()
        process.wait()


def ssl_context(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "ca.pem"))


def query(folder: Path, port: int, expression: str = UP) -> list[dict[str, Any]]:
    words = urllib.parse.urlencode({"query": expression})
    request = urllib.request.Request(f"https://localhost:{port}/api/v1/query?{words}")
    login = base64.b64encode(f"gcluster:{PASSWORD}".encode()).decode()
    request.add_header("Authorization", f"Basic {login}")
    context = ssl_context(folder)
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found
    except OSError:
        return []


def made(folder: Path, authority: bytes) -> Path:
    """Make a folder with what a monitoring host has in its own."""
    folder.mkdir()
    (folder / "ca.pem").write_bytes(certificate_of(authority))
    (folder / "remote-ca.pem").write_bytes(certificate_of(authority))
    (folder / "server.pem").write_bytes(issue(authority, *ISSUED[SERVER_SECRET]))
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    (folder / "rules.yml").write_text("groups: []\n", encoding="utf-8")
    (folder / "remote-secret").write_text(PASSWORD, encoding="utf-8")
    return folder


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
    assert program is not None, "make test-monitoring brings it"

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
