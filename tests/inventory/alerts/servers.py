"""What role prometheus writes, run by the real program behind TLS and a password."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from gcluster.ansible_collections.gcluster.cluster.plugins.modules.web_config import crypt
from gcluster.inventory.compile.system.monitoring import SERVER_SECRET
from gcluster.lifecycle.bundle.role_tasks import filled_tasks, loaded, role_variables
from gcluster.lifecycle.secrets.certificates import certificate_of, issue
from gcluster.lifecycle.secrets.makers import ISSUED

ROLE = Path(__file__).parents[3] / "roles/prometheus"
DEBIAN = {"distribution": "Debian", "distribution_major_version": "13", "os_family": "Debian"}
_WRITES = "gcluster.cluster.managed_files"
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
    [others] = [t[_WRITES] for t in tasks if _WRITES in t]
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
    assert program is not None, "make test-alerts brings it"
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
