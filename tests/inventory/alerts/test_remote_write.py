"""All metrics reach a second Prometheus, with the cluster's name, by the role's own configuration.

Both are the real program; the second one takes remote write behind TLS and a password.
"""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import subprocess
import sys
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
PASSWORD = "plover-remote-2207"  # noqa: S105  # of the second Prometheus
UP = "/api/v1/query?query=" + urllib.parse.quote('up{job="prometheus"}')


def configuration(folder: Path, port: int, **given: Any) -> dict[str, Any]:
    """Return what the role writes as prometheus.yml."""
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
    seen = role_variables(ROLE, variables, DEBIAN) | {"prometheus_folder": str(folder)}
    tasks = filled_tasks(loaded(ROLE / "tasks/configure.yml"), seen, ROLE)
    [written] = [t["ansible.builtin.template"] for t in tasks if "ansible.builtin.template" in t]
    found: dict[str, Any] = yaml.safe_load(written["content"])
    return found


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


def query(folder: Path, port: int) -> list[dict[str, Any]]:
    request = urllib.request.Request(f"https://localhost:{port}{UP}")
    login = base64.b64encode(f"gcluster:{PASSWORD}".encode()).decode()
    request.add_header("Authorization", f"Basic {login}")
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found
    except OSError:
        return []


@pytest.mark.monitoring
def test_metrics_reach_the_place_of_many_clusters_and_no_one_without_the_password_may_write(
    tmp_path: Path,
) -> None:
    authority = new_authority("lab")
    folders = [tmp_path / name for name in ("cluster", "stranger", "central")]
    for folder in folders:
        folder.mkdir()
        (folder / "ca.pem").write_bytes(certificate_of(authority))
        (folder / "remote-ca.pem").write_bytes(certificate_of(authority))
        (folder / "server.pem").write_bytes(issue(authority, *ISSUED[SERVER_SECRET]))
        (folder / "password").write_text(PASSWORD, encoding="utf-8")
        (folder / "rules.yml").write_text("groups: []\n", encoding="utf-8")
        (folder / "remote-secret").write_text(PASSWORD, encoding="utf-8")
    cluster, stranger, central = folders
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
            config = configuration(
                folder,
                own,
                prometheus_cluster=folder.name,
                prometheus_remote_write=remote,
                prometheus_remote_secret_file=str(folder / "remote-secret"),
            )
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
