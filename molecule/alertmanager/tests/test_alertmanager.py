"""The running Alertmanager shows its alerts to who logs in."""

from __future__ import annotations

import os
from pathlib import Path

from testinfra.host import Host

SETTINGS = "/etc/gcluster/alertmanager"
CLIENT = """
import base64, json, ssl, sys, urllib.request
login, data = sys.argv[1] == "login", sys.argv[2]
context = ssl.create_default_context(cafile="/etc/gcluster/alertmanager/ca.pem")
request = urllib.request.Request("https://localhost:9093/api/v2/alerts", data.encode() or None)
request.add_header("Content-Type", "application/json")
if login:
    password = open("/etc/gcluster/alertmanager/password").read()
    word = base64.b64encode(f"gcluster:{password}".encode()).decode()
    request.add_header("Authorization", f"Basic {word}")
try:
    print(urllib.request.urlopen(request, context=context, timeout=10).read().decode())
except urllib.error.HTTPError as error:
    sys.exit(f"status {error.code}")
"""
SINK = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Sink(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open("/root/posted", "a") as file:
            print(self.path, body, file=file)
        self.send_response(200)
        self.end_headers()
HTTPServer(("127.0.0.1", 9999), Sink).serve_forever()
"""


def call_api(host: Host, who: str, data: str = "") -> tuple[int, str]:
    host.check_output(f"cat > /root/ask.py <<'END'\n{CLIENT}END")
    run = host.run(f"python3 /root/ask.py {who} '{data}'")
    return run.rc, run.stdout + run.stderr


def test_alertmanager_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("prometheus-alertmanager")
    assert service.is_running
    assert service.is_enabled


def test_an_alert_is_taken_and_shown_to_authenticated_users_and_to_no_others(host: Host) -> None:
    alert = '[{"labels": {"alertname": "Molecule"}}]'
    assert call_api(host, "stranger", alert) == (1, "status 401\n")
    code, printed = call_api(host, "login", alert)
    assert code == 0, printed
    assert "Molecule" in call_api(host, "login")[1]
    assert call_api(host, "stranger") == (1, "status 401\n")


def test_an_alert_is_posted_to_the_webhook_and_its_address_is_in_no_log(host: Host) -> None:
    host.check_output(f"cat > /root/sink.py <<'END'\n{SINK}END")
    host.check_output("systemd-run --unit webhook-sink --collect python3 /root/sink.py")
    host.check_output("until ss -Hltn | grep -q :9999; do sleep 0.1; done")
    alert = '[{"labels": {"alertname": "Posted", "severity": "warning"}}]'
    assert call_api(host, "login", alert)[0] == 0
    host.check_output("for i in $(seq 60); do grep -q Posted /root/posted && break; sleep 1; done")
    host.check_output("systemctl stop webhook-sink")
    assert host.file("/root/posted").content_string.startswith("/webhook-plover ")
    log = host.check_output("journalctl --no-pager --output cat --unit prometheus-alertmanager")
    assert "webhook-plover" not in log


def test_it_listens_on_its_own_host_alone_and_has_no_peers(host: Host) -> None:
    listening = [line.split()[4] for line in host.check_output("ss -Hltun").splitlines()]
    assert [one for one in listening if one.endswith((":9093", ":9094"))] == ["127.0.0.1:9093"]


def test_the_password_is_one_user_s_and_in_no_log_or_argument(host: Host) -> None:
    password = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "password").read_text()
    for name in ("password", "server.pem", "web.yml", "alertmanager.yml"):
        file = host.file(f"{SETTINGS}/{name}")
        assert (file.user, file.mode) == ("prometheus", 0o400)
    found = host.run(f"grep -rlF '{password}' /etc /var/log /run")
    # Here it is the mail server's password too.
    assert sorted(found.stdout.split()) == [f"{SETTINGS}/alertmanager.yml", f"{SETTINGS}/password"]
    assert password not in host.check_output("journalctl --no-pager --output cat")
