"""Who may read metrics: real servers, readers without a proof, with an old or expired one."""

from __future__ import annotations

import base64
import http.client
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from gcluster.ansible_collections.gcluster.cluster.plugins.modules.web_config import crypt
from gcluster.inventory.compile.system.monitoring import EXPORTER_SECRET, SERVER_SECRET
from gcluster.lifecycle.bundle.role_tasks import filled_tasks, loaded, role_variables
from gcluster.lifecycle.secrets import certificates
from gcluster.lifecycle.secrets.certificates import certificate_of, issue, new_authority
from gcluster.lifecycle.secrets.makers import ISSUED

sys.path.insert(0, str(Path(__file__).parent))
from servers import (
    DEBIAN,
    PASSWORD,
    UP,
    configuration,
    made,
    prometheus,
    query,
    ssl_context,
    variables_of,
)
from sinks import awaited
from tests.free_port import free_port

sys.path.pop(0)

pytestmark = pytest.mark.monitoring
NODE_ROLE = Path(__file__).parents[3] / "roles/node_exporter"
EXPORTER = "prometheus-node-exporter"


@contextmanager
def node_exporter(folder: Path, authority: bytes) -> Iterator[int]:
    """Run the real one with the role's own web configuration; yields its port."""
    steps = loaded(NODE_ROLE / "tasks/configure.yml")
    given = dict.fromkeys(("node_exporter_authority", "node_exporter_certificate"), "")
    seen = role_variables(NODE_ROLE, given | {"node_exporter_infiniband": False}, DEBIAN)
    seen |= {"node_exporter_listen": {"address": "127.0.0.1"}}
    tasks = filled_tasks(steps, seen, NODE_ROLE)
    [web] = [
        text
        for task in tasks
        for path, text in task.get("gcluster.cluster.managed_files", {}).get("files", {}).items()
        if path.endswith("/web.yml")
    ]
    (folder / "web.yml").write_text(web.replace("/etc/gcluster/node_exporter/", ""))
    (folder / "ca.pem").write_bytes(certificate_of(authority))
    (folder / "server.pem").write_bytes(issue(authority, *ISSUED[EXPORTER_SECRET]))
    port, program = free_port(), shutil.which(EXPORTER)
    assert program is not None, "make test-alerts brings it"
    address = f"--web.listen-address=127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        command = [program, address, "--web.config.file=web.yml"]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        awaited("it listens", lambda: "Listening" in (folder / "log").read_text(encoding="utf-8"))
        yield port
    finally:
        process.terminate()
        process.wait()


def scraped(folder: Path, port: int, client: bytes | None) -> str:
    """Return what a reader with a client certificate, or none, gets: the page, or why nothing."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.check_hostname = False  # the exporter has a name of its own, for any address
    if client is not None:
        (folder / "client.pem").write_bytes(client)
        context.load_cert_chain(str(folder / "client.pem"))
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    except OSError as error:
        return f"refused: {error}"
    finally:
        connection.close()


def expired(monkeypatch: pytest.MonkeyPatch, authority: bytes) -> bytes:
    """Return a certificate of the monitoring host's that was good until ten minutes ago."""
    with monkeypatch.context() as at:
        at.setattr(certificates, "VALID", timedelta(minutes=-10))
        return issue(authority, *ISSUED[SERVER_SECRET])


def test_an_exporter_answers_no_expired_certificate_nor_one_of_before_the_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, before = new_authority("lab"), new_authority("lab")
    readers = {
        "monitoring host": issue(authority, *ISSUED[SERVER_SECRET]),
        "expired": expired(monkeypatch, authority),
        "before the rotation": issue(before, *ISSUED[SERVER_SECRET]),
        "another exporter": issue(authority, *ISSUED[EXPORTER_SECRET]),
        "none": None,
    }

    with node_exporter(tmp_path, authority) as port:
        got = {name: scraped(tmp_path, port, client) for name, client in readers.items()}

    page = got.pop("monitoring host")
    assert "node_uname_info" in page
    # By an alert of TLS, or a reset: a server of TLS 1.3 looks after the client has begun.
    assert {name for name, text in got.items() if not text.startswith("refused: ")} == set()


def status(folder: Path, port: int, password: str | None, path: str) -> int:
    """Return the status of an answer to who has a password, or none."""
    request = urllib.request.Request(f"https://localhost:{port}{path}")
    if password is not None:
        login = base64.b64encode(f"gcluster:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    try:
        with urllib.request.urlopen(request, timeout=5, context=ssl_context(folder)) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_after_a_rotation_the_old_password_is_worth_nothing_without_a_restart(
    tmp_path: Path,
) -> None:
    folder, port = made(tmp_path / "head", new_authority("lab")), free_port()
    paths = ("/api/v1/query?query=up", "/metrics", "/federate?match[]=up")

    with prometheus(folder, port, {}):
        awaited("it answers", lambda: _answers(folder, port))
        before = {path: status(folder, port, PASSWORD, path) for path in paths}
        web = yaml.safe_load((folder / "web.yml").read_text(encoding="utf-8"))
        web["basic_auth_users"] = {"gcluster": crypt("another", "$2b$04$abcdefghijklmnopqrstuu")}
        (folder / "web.yml").write_text(yaml.safe_dump(web), encoding="utf-8")
        after = {path: status(folder, port, PASSWORD, path) for path in paths}
        without = {path: status(folder, port, None, path) for path in paths}

    assert set(before.values()) == {200}
    assert set(after.values()) == {401}
    assert set(without.values()) == {401}


def _answers(folder: Path, port: int) -> bool:
    try:
        return status(folder, port, PASSWORD, "/-/ready") == 200  # HTTP's own
    except OSError:
        return False


def test_a_prometheus_of_many_clusters_pulls_by_the_password_alone(tmp_path: Path) -> None:
    authority = new_authority("lab")
    cluster, central = (made(tmp_path / name, authority) for name in ("cluster", "central"))
    own, port = free_port(), free_port()
    config, _ = configuration(variables_of(cluster, own))
    config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config["scrape_configs"] = [
        job for job in config["scrape_configs"] if job["job_name"] == "prometheus"
    ]
    pull = {
        "scheme": "https",
        "metrics_path": "/federate",
        "honor_labels": True,
        "params": {"match[]": [UP]},
        "tls_config": {"ca_file": "ca.pem"},
        "static_configs": [{"targets": [f"localhost:{own}"]}],
    }
    login = {"username": "gcluster", "password_file": "password"}
    tried = 'up{job!="prometheus"}'
    jobs = [
        {"job_name": "lab", "basic_auth": login, **pull},
        {"job_name": "stranger", **pull},
    ]

    with prometheus(cluster, own, config):
        awaited("it watches itself", lambda: bool(query(cluster, own)))
        fast = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        with prometheus(central, port, {"global": fast, "scrape_configs": jobs}):
            awaited("a metric of the cluster", lambda: bool(query(central, port)))
            found = query(central, port)
            awaited("both were tried", lambda: len(query(central, port, tried)) > 1)
            up = query(central, port, tried)

    assert {one["metric"]["cluster"] for one in found} == {"lab"}
    assert {one["metric"]["job"]: one["value"][1] for one in up} == {"lab": "1", "stranger": "0"}
