"""The running Prometheus scrapes the listed nodes, and accepts authenticated requests."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Play
from testinfra.host import Host

SETTINGS = "/etc/gcluster/prometheus"
CLIENT = """
import base64, ssl, sys, urllib.parse, urllib.request
login, path, ca = sys.argv[1], sys.argv[2], sys.argv[3]
context = ssl.create_default_context(cafile=ca)
request = urllib.request.Request("https://localhost:9090" + path)
if login:
    request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
try:
    print(urllib.request.urlopen(request, context=context, timeout=10).read().decode())
except urllib.error.HTTPError as error:
    sys.exit(f"status {error.code}")
except urllib.error.URLError as error:
    sys.exit(f"refused: {error.reason}")
"""
WAIT_S = 60


@pytest.fixture
def head() -> Host:
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    return Host.get_host("ansible://head01", ansible_inventory=inventory, sudo=True)


def call_api(head: Host, path: str, word: str | None = None, ca: str = "ca") -> tuple[int, str]:
    head.check_output(f"cat > /root/ask.py <<'END'\n{CLIENT}END")
    secret = f"$(cat {SETTINGS}/password)" if word is None else word
    login = f"gcluster:{secret}" if secret else ""
    run = head.run(f'python3 /root/ask.py "{login}" "{path}" {SETTINGS}/{ca}.pem')
    return run.rc, run.stdout + run.stderr


def query(head: Host, expression: str) -> dict[str, float]:
    """Return the values of an expression by the label instance."""
    code, printed = call_api(head, f"/api/v1/query?query={expression}")
    assert code == 0, printed
    found: list[dict[str, Any]] = json.loads(printed)["data"]["result"]
    return {each["metric"].get("instance", ""): float(each["value"][1]) for each in found}


def awaited(head: Host, expression: str, expected: dict[str, float]) -> None:
    end = time.monotonic() + WAIT_S
    while (found := query(head, expression)) != expected:
        assert time.monotonic() < end, found
        time.sleep(1)


UP = "up%7Bjob=%27node%27%7D"


def test_prometheus_runs_now_and_after_a_reboot(head: Host) -> None:
    service = head.service("prometheus")
    assert service.is_running
    assert service.is_enabled


def test_every_node_that_is_listed_is_scraped_and_so_are_the_servers(head: Host) -> None:
    awaited(head, UP, {"head01": 1, "node01": 1})
    awaited(head, "min(up)", {"": 1})
    code, printed = call_api(head, "/api/v1/alertmanagers")
    assert code == 0
    assert "127.0.0.1:9093" in printed


def test_a_probe_succeeds_where_sshd_answers_and_fails_at_closed_ports(head: Host) -> None:
    """Nothing of Slurm runs here: its API doesn't answer."""
    awaited(head, "probe_success", {"node01": 1, "closed": 0, "head01": 0})


def test_who_has_no_password_or_another_one_gets_nothing(head: Host) -> None:
    for path in ("/", "/api/v1/query?query=up", "/metrics", "/federate", "/debug/pprof/"):
        assert call_api(head, path, word="") == (1, "status 401\n")
    assert call_api(head, "/metrics", word="wrong") == (1, "status 401\n")


def test_a_client_that_accepts_another_authority_refuses_the_server(head: Host) -> None:
    folder = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])
    other = (folder / "other-authority.pem").read_text()
    head.check_output(f"cat > {SETTINGS}/other.pem <<'END'\n{other}END")
    try:
        code, printed = call_api(head, "/-/ready", ca="other")
        assert code
        assert "CERTIFICATE_VERIFY_FAILED" in printed
    finally:
        head.check_output(f"rm {SETTINGS}/other.pem")


def test_a_node_that_leaves_the_list_leaves_no_target_and_nothing_restarts(
    head: Host, converge: Play
) -> None:
    awaited(head, UP, {"head01": 1, "node01": 1})
    pid = head.check_output("systemctl show --value --property MainPID prometheus")
    file = f"{SETTINGS}/targets/nodes.json"
    left = [one for one in json.loads(head.file(file).content_string) if "head01" in str(one)]
    try:
        assert converge(phases=["join"], targets=left).returncode == 0
        awaited(head, UP, {"head01": 1})
    finally:
        assert converge(phases=["join"]).returncode == 0
    awaited(head, UP, {"head01": 1, "node01": 1})
    assert head.check_output("systemctl show --value --property MainPID prometheus") == pid


def test_it_listens_on_its_own_host_alone(head: Host) -> None:
    pid = head.check_output("systemctl show --value --property MainPID prometheus")
    lines = head.check_output("ss -Hltunp").splitlines()
    assert [line.split()[4] for line in lines if f"pid={pid}," in line] == ["127.0.0.1:9090"]


def test_metrics_are_kept_as_long_as_in_the_spec(head: Host) -> None:
    code, printed = call_api(head, "/api/v1/status/flags")
    assert code == 0
    assert json.loads(printed)["data"]["storage.tsdb.retention.time"] == "30d"


def test_the_password_is_one_user_s_and_in_no_log_or_argument(head: Host) -> None:
    password = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "password").read_text()
    for name in ("password", "server.pem", "web.yml"):
        file = head.file(f"{SETTINGS}/{name}")
        assert (file.user, file.mode) == ("prometheus", 0o400)
    assert password not in head.check_output(f"cat {SETTINGS}/prometheus.yml {SETTINGS}/args")
    assert password not in head.check_output("journalctl --no-pager --output cat")
    assert password not in call_api(head, "/api/v1/status/config")[1]


def test_the_other_host_of_the_pool_runs_none(host: Host) -> None:
    if host.check_output("hostname") == "node01":
        assert not host.service("prometheus").is_running
        assert not host.file(SETTINGS).exists
