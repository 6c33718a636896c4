"""Who wastes what, on real nodes with simulated GPUs: two accounts, one idle on 8 GPUs.

The alert of waste goes by mail to a sink on the monitoring host.

Nodes are containers that exist already, in an ssh-fleet whose owner pays $20 an hour for each.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gcluster.inventory.dashboards import boards

from .conftest import LiveCluster, until
from .room import Room, podman, started_room
from .sinks import ASK, HOOK, SINK

pytestmark = [pytest.mark.local, pytest.mark.waste]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites:
  room:
    provider: ssh-fleet
    ssh: {{user: root, key: {key}, known_hosts: {known_hosts}}}
    usd_per_hour: {{sim.h100x8: 20}}
    hosts: [{hosts}]
pools:
  head: {{site: room, role: controller, hosts: [head01]}}
  gpu: {{site: room, machine: sim.h100x8, hosts: [gpu01, gpu02, gpu03, gpu04]}}
scheduler:
  type: slurm
  accounts: {{nlp: {{share: 60, users: [ada]}}, vision: {{share: 40, users: [bob]}}}}
users:
  - {{name: ada, uid: 2001}}
  - {{name: bob, uid: 2002, mail: bob@example.org}}
monitoring:
  prometheus: true
  alerts:
    mail: {{to: [ops@example.edu], from: g@example.edu, server: "127.0.0.1:2525", tls: false}}
    webhook: {{url: "file:{hook}"}}
  waste_alert:
    {{below: 1%, for: 1m, min_usd_per_hour: 15, to_owner: true, mail_domain: example.edu}}
budget: {{expires: 30d}}
hooks: {{site: {{type: script, path: site.sh, pools: [gpu], timeout: 5m}}}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 1}}}}
"""
GPU_NODES = ("gpu01", "gpu02", "gpu03", "gpu04")
HOSTILE = 'a"} 1 <script>alert(1)</script>|x'
JOBS = f"""
cd /tmp
as_user() {{ runuser -u "$1" -- sbatch -N1 -A "$2" --gpus "$3" -w "$4" -J "$5" --wrap "$6"; }}
as_user ada nlp 4 gpu01 train 'python3 -c "while True: pass"'
as_user bob vision 8 gpu02 '{HOSTILE}' 'sleep 3600'
"""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    hosts, more = (
        ("head01", *GPU_NODES),
        {
            "head01": ("--tmpfs=/fault:size=32m", "--cap-add=NET_ADMIN"),
            "gpu01": ("--restart=always",),  # as a machine, it is back after `systemctl reboot`
        },
    )
    with started_room(tmp_path_factory.mktemp("room"), hosts, more) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(live: LiveCluster, room: Room) -> LiveCluster:
    """The cluster, with both jobs running."""
    known_hosts = live.spec.parent / "known_hosts"
    known_hosts.write_text(
        "".join(f"{room.address(host)} {room.host_key(host)}\n" for host in room.hosts)
    )
    hook = live.spec.parent / "hook"
    hook.write_text("http://127.0.0.1:2526/")
    write_script(live, "echo unchanged")
    live.spec.write_text(
        SPEC.format(
            name=live.name,
            hook=hook,
            key=room.key,
            known_hosts=known_hosts,
            hosts=", ".join(f"{room.address(host)} name={host}" for host in room.hosts),
        )
    )
    live.gcluster("up", str(live.spec), "--yes")
    for name, program in (("sink", SINK), ("hook", HOOK), ("ask", ASK)):
        live.on("head01", f"cat > /root/{name}.py <<'END'\n{program}END")
    for name in ("sink", "hook"):
        live.on("head01", f"systemd-run --quiet python3 /root/{name}.py")
    live.on("head01", JOBS)
    return live


def write_script(cluster: LiveCluster, does: str) -> None:
    """Write what the hook of the spec does on the GPU nodes: another text is a rolling change."""
    script = cluster.spec.parent / "site.sh"
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)


def top(cluster: LiveCluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.json("top", str(cluster.spec))
    return found


def test_the_waste_of_two_jobs_is_that_of_the_calculation_by_hand(cluster: LiveCluster) -> None:
    def both_are_measured() -> bool:
        jobs = top(cluster)["jobs"]
        return len(jobs) == 2 and all(j["measured_gpus"] == j["gpus"] for j in jobs)

    until(both_are_measured, seconds=180)
    # The first looks of the double have the job's start in them.
    time.sleep(60)
    now = top(cluster)
    idle, busy = now["jobs"]

    # 8 GPUs of a node at $20, none of it used; 4 of 8 GPUs: $10, wasted what its SMs weren't active
    assert (idle["account"], idle["user"], idle["name"]) == ("vision", "bob", HOSTILE)
    assert (idle["active"], idle["usd_per_hour"], idle["wasted_usd_per_hour"]) == (0, 20, 20)
    assert (busy["account"], busy["name"], busy["usd_per_hour"]) == ("nlp", "train", 10)
    assert busy["active"] > 0
    assert busy["wasted_usd_per_hour"] == pytest.approx(10 * (1 - busy["active"]))
    # 4 nodes at $20; the other 4 GPUs of gpu01 are no one's, and so are gpu03 and gpu04
    assert now["usd_per_hour"] == 80
    assert now["unused_usd_per_hour"]["idle"] == pytest.approx(10 + 2 * 20)
    assert now["simulated"] is True


NOT_HERE = {
    "Read-only file systems",  # a container's are its host's, of which node exporter sees none
    "Links lost in an hour",
    "NFS requests of clients, by node",
    "NFS requests sent again, by node",
    "Lustre read and written, by file system",
    "Lustre read and written, by node",
    "Lustre targets that nodes have lost",
    "Power of whole nodes, by pool",
    "Power of whole nodes, by node",
    "Power of the whole node",
}
"""Panels whose exporter has nothing to say of a container."""


def test_the_page_has_data_in_every_panel_and_shows_why_an_idle_job_is_slow(
    cluster: LiveCluster,
) -> None:
    jobs = {job["account"]: job["job"] for job in top(cluster)["jobs"]}
    of = {"pool": "gpu", "node": "gpu01", "job": jobs["nlp"]}
    command = [str(Path(sys.executable).with_name("gcluster")), "dashboard", str(cluster.spec)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=cluster.environment)
    try:
        assert running.stdout is not None
        url = running.stdout.readline().split()[-1]

        def fetch(path: str, **names: str) -> Any:
            words = urllib.parse.urlencode(names)
            with urllib.request.urlopen(f"{url}api/{path}?{words}", timeout=120) as answer:  # noqa: S310
                return json.load(answer)

        found = fetch("now")
        empty = {
            chart["title"]
            for board in boards().values()
            for chart in fetch(
                "board", name=board.name, hours="1", of=of.get(board.variable or "", "")
            )["charts"]
            if not chart["lines"]
        }
        slow = fetch("board", name="job", hours="1", of=jobs["vision"])["slow"]
    finally:
        running.send_signal(signal.SIGINT)
        code = running.wait(timeout=30)

    assert code == 0
    assert HOSTILE in {job["name"] for job in found["now"]["jobs"]}
    assert {title for title in empty if "InfiniBand" not in title} <= NOT_HERE
    assert "GPUs wait" in {each["title"] for each in slow}


def test_the_owner_of_the_idle_job_is_mailed_and_the_owner_of_the_busy_one_is_not(
    cluster: LiveCluster,
) -> None:
    def mails() -> str:
        return cluster.on("head01", "cat /root/mails 2>/dev/null || true")

    until(lambda: "RCPT TO:<bob@example.org>" in mails(), seconds=180)
    until(lambda: "RCPT TO:<ops@example.edu>" in mails(), seconds=60)

    [number] = {job["job"] for job in top(cluster)["jobs"] if job["user"] == "bob"}
    assert f"scancel {number}" in mails()
    assert "ada@example.edu" not in mails()


def test_certificates_are_rotated_and_no_scrape_fails(cluster: LiveCluster) -> None:
    def least_up(over: str) -> tuple[int, float]:
        output = json.loads(
            cluster.on(
                "head01", f"python3 /root/ask.py 'min_over_time(up{{job=~\"node|gpu\"}}[{over}])'"
            )
        )
        values = [float(one["value"][1]) for one in output["data"]["result"]]
        return len(values), min(values)

    before = cluster.on("head01", "cat /etc/gcluster/prometheus/password")
    began = time.monotonic()
    rotated = cluster.json("rotate", "monitoring", str(cluster.spec))
    time.sleep(45)

    assert (sorted(rotated["changed"]), rotated["left"]) == ([*GPU_NODES, "head01"], {})
    # five nodes, four of them with GPUs
    assert least_up(f"{round(time.monotonic() - began)}s") == (9, 1)
    assert cluster.on("head01", "cat /etc/gcluster/prometheus/password") != before
    assert cluster.on("head01", f"python3 /root/ask.py up '{before.strip()}'").strip() == "401"
    assert cluster.on("gpu01", "grep -c BEGIN /etc/gcluster/node_exporter/ca.pem").strip() == "1"
    assert len(top(cluster)["jobs"]) == 2


def test_prometheus_knows_of_the_allreduce_and_of_the_cluster_s_end(cluster: LiveCluster) -> None:
    asked = '{__name__=~"gcluster_(allreduce|end)_.*"}'
    output = json.loads(cluster.on("head01", f"python3 /root/ask.py '{asked}'"))
    found = {one["metric"]["__name__"]: float(one["value"][1]) for one in output["data"]["result"]}

    assert found["gcluster_allreduce_passed"] == 1
    assert 0 <= time.time() - found["gcluster_allreduce_time_seconds"] < 3600
    assert 29 < (found["gcluster_end_time_seconds"] - time.time()) / 86_400 < 30


def test_a_report_has_both_accounts_and_stays_after_the_jobs_end(cluster: LiveCluster) -> None:
    file = str(cluster.spec.parent / "kept.json")
    cluster.on("head01", "scancel --user=ada; scancel --user=bob")
    until(lambda: top(cluster)["jobs"] == [], seconds=120)
    report = cluster.json("report", str(cluster.spec), "--since", "30m", "--export", file)

    # The AllReduce of `up` holds GPUs for seconds, of an account of its own: a scrape may see it.
    vision, nlp = (use for use in report["accounts"] if use["account"] in {"vision", "nlp"})
    assert (vision["account"], nlp["account"]) == ("vision", "nlp")
    # A GPU costs 2.50. At a job's start and end Slurm's figures are a scrape apart: not measured.
    for use in (vision, nlp):
        measured = use["gpu_hours"] - use["unmeasured_gpu_hours"]
        assert use["usd"] == pytest.approx(measured * 2.5)
        assert use["unmeasured_gpu_hours"] < use["gpu_hours"] / 2
    assert vision["wasted_usd"] == vision["usd"]
    assert nlp["wasted_usd"] == pytest.approx(nlp["usd"] * (1 - nlp["active"]))
    # Both were cancelled: slurmdbd has no GPU hour of them that completed.
    assert (vision["goodput"], nlp["goodput"]) == (0, 0)
    cluster.gcluster("report", file)
    assert {pool["pool"]: pool["failures"] for pool in report["pools"]} == {"gpu": 0, "head": 0}
    page = cluster.gcluster("report", file, "--format", "html").stdout
    assert "<script>" not in page
    assert cluster.on("gpu02", "cat /run/gcluster/gpu-jobs/*") == ""


def test_a_job_that_is_followed_shows_how_busy_its_gpus_are_and_what_it_cost(
    cluster: LiveCluster,
) -> None:
    """It has 8 GPUs of a node at $20 an hour and uses none; the first line is due at 60 s."""
    cluster.on("head01", "scancel --user=ada; scancel --user=bob")
    words = ("--nodes", "1", "--account", "nlp", "--user", "ada", "--", "sleep", "90")
    done = cluster.gcluster("run", str(cluster.spec), *words)

    line = r"job \d+: runs for 00:01:(\d\d), 8 GPUs 0% active \(simulated\), \$(0\.\d\d) so far"
    [(seconds, usd)] = re.findall(line, done.stderr + done.stdout)
    assert float(usd) == pytest.approx(20 * (60 + int(seconds)) / 3600, abs=0.005)


FAULTS = {
    "NodeDown": "gpu02",
    "GpuXid": "gpu01",
    "DiskFull": "head01",
    "LinkDown": "head01",
}
"""Alert -> the host that it is to name."""
QUIET_S = 100
"""No other alert is there before the faults, and none comes in this time after them."""


def posted(cluster: LiveCluster) -> dict[tuple[str, str], list[float]]:
    """Return (alert, host) -> when, by head01's clock, the webhook got it as firing."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in cluster.on("head01", "cat /root/posts 2>/dev/null || true").splitlines():
        message = json.loads(line)
        for alert in message["alerts"]:
            if alert["status"] == "firing":
                of = (alert["labels"]["alertname"], alert["labels"].get("instance", ""))
                found.setdefault(of, []).append(message["at"])
    return found


AWAY_S = 80
"""A node answers neither Prometheus nor Slurm so long; NodeDown takes half of it."""


def series_of(cluster: LiveCluster, query: str) -> list[tuple[dict[str, str], float]]:
    """Return what Prometheus answers: labels and value of each series."""
    output = json.loads(cluster.on("head01", f"python3 /root/ask.py '{query}'"))
    return [(one["metric"], float(one["value"][1])) for one in output["data"]["result"]]


def test_a_rolling_change_and_a_reboot_of_ours_send_no_alert(cluster: LiveCluster) -> None:
    cluster.on("head01", "scancel --user=ada; scancel --user=bob")
    until(lambda: series_of(cluster, 'ALERTS{alertstate="firing"}') == [], seconds=300)
    began = float(cluster.on("head01", "date +%s.%N"))
    # The change waits for a job. Then the node is away as in a restart of a real machine.
    cluster.on(
        "head01", "cd /tmp; runuser -u ada -- sbatch -A nlp --gpus 1 -w gpu01 --wrap 'sleep 30'"
    )
    units = "slurmd prometheus-node-exporter gcluster-dcgm-double"
    write_script(cluster, f"systemctl stop {units}\nsleep {AWAY_S}\nsystemctl start {units}")
    cluster.gcluster("up", str(cluster.spec), "--yes")
    rebooted = cluster.json("reboot", str(cluster.spec), "gpu01", "--yes")["rebooted"]
    time.sleep(60)
    over = f"{round(float(cluster.on('head01', 'date +%s.%N')) - began)}s"
    fired = {
        (labels["alertname"], labels["instance"])
        for labels, _ in series_of(cluster, f'max_over_time(ALERTS{{alertstate="firing"}}[{over}])')
    }
    away = series_of(cluster, f'min_over_time(up{{job="node",pool="gpu"}}[{over}])')
    at_once = series_of(cluster, f'min_over_time(sum(up{{job="node",pool="gpu"}})[{over}:5s])')
    late = {of: times for of, times in posted(cluster).items() if times[-1] > began}
    sys.stdout.write(f"in {over} fired {fired}, away {away}, posted {late}\n")

    # one after the other, and away each
    assert rebooted == ["gpu01"]
    assert {labels["instance"]: least for labels, least in away} == dict.fromkeys(GPU_NODES, 0)
    assert [least for _, least in at_once] == [len(GPU_NODES) - 1]
    assert fired == {("NodeOutOfService", node) for node in GPU_NODES}
    assert late == {}


def test_each_fault_is_one_alert_of_its_host_within_90_s_by_mail_and_webhook(
    cluster: LiveCluster, room: Room
) -> None:
    # /fault is a file system of its own. A link has another end that can be lost: a veth.
    cluster.on("head01", "ip link add rail0 type veth peer name far0")
    cluster.on("head01", "ip link set rail0 up; ip link set far0 up")
    cluster.on("head01", "scancel --user=ada; scancel --user=bob")
    time.sleep(40)
    before = posted(cluster).keys()
    began = float(cluster.on("head01", "date +%s.%N"))
    podman("kill", f"{room.name}-gpu02")
    cluster.on(
        "gpu01", """echo '{"0": {"DCGM_FI_DEV_XID_ERRORS": 79}}' >/run/gcluster/dcgm-double.json"""
    )
    cluster.on("head01", "ip link set far0 down; head -c 32m /dev/zero >/fault/full || true")

    time.sleep(QUIET_S)
    after = {of: times for of, times in posted(cluster).items() if of not in before}
    took = {alert: after[alert, host][0] - began for alert, host in FAULTS.items()}
    sys.stdout.write(f"seconds from fault to webhook: {took}\n")

    lost = {(each["node"], each["device"]) for each in top(cluster)["links"] if not each["up"]}
    assert lost == {("head01", "rail0"), ("head01", "far0")}  # its other end was shut
    assert after.keys() == set(FAULTS.items())
    assert max(took.values()) < 90
    assert [of for of, times in after.items() if len(times) != 1] == []
    mails = cluster.on("head01", "cat /root/mails")
    assert {alert: mails.count(f"{alert}: 1 now") for alert in FAULTS} == dict.fromkeys(FAULTS, 1)
    podman("start", f"{room.name}-gpu02")


def test_a_drained_node_that_goes_is_no_alert(cluster: LiveCluster) -> None:
    cluster.on("head01", "scontrol update node=gpu01 state=drain reason='new cable'")
    time.sleep(30)
    cluster.on("gpu01", "systemctl stop prometheus-node-exporter")
    time.sleep(QUIET_S)
    cluster.on("gpu01", "systemctl start prometheus-node-exporter")

    assert ("NodeDown", "gpu01") not in posted(cluster)


def test_a_prometheus_that_has_stopped_is_an_error_with_its_cause(cluster: LiveCluster) -> None:
    cluster.on("head01", "systemctl stop prometheus")
    output = cluster.gcluster("top", str(cluster.spec), "--once", expect=1).stderr

    assert "GC1198" in output
    assert "head01" in output


def test_an_exported_report_is_the_same_after_down_and_elsewhere(
    cluster: LiveCluster, room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.on("head01", "systemctl start prometheus")
    report = ("report", str(cluster.spec), "--since", "2h")

    def both_are_measured() -> bool:
        found = json.loads(
            cluster.gcluster(*report, "--format", "json", expect=None).stdout or "{}"
        )
        used = {use["account"]: use["usd"] or 0 for use in found.get("accounts", ())}
        return used.keys() >= {"nlp", "vision"} and min(used["nlp"], used["vision"]) > 0

    until(both_are_measured, seconds=180)
    before = cluster.json(*report, "--export", str(tmp_path / "kept.json"))
    shown = {
        form: cluster.gcluster("report", str(tmp_path / "kept.json"), "--format", form).stdout
        for form in ("csv", "html")
    }
    cluster.gcluster("down", str(cluster.spec), "--yes")
    for host in room.hosts:
        podman("stop", "--time", "0", f"{room.name}-{host}")

    # Another person's machine: no spec, no state, no key, and none of the hosts answers.
    elsewhere = LiveCluster(tmp_path)
    elsewhere.spec.unlink()
    monkeypatch.chdir(tmp_path)
    assert cluster.gcluster(*report, expect=None).returncode != 0
    assert elsewhere.json("report", "kept.json") == before
    for form, text in shown.items():
        assert elsewhere.gcluster("report", "kept.json", "--format", form).stdout == text
    assert not elsewhere.data.exists()
