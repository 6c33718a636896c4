"""Drift on real nodes: none after `up`, and each kind that a hand can make is found and fixed.

The tests run in order on one cluster of two nodes.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from .conftest import LiveCluster

pytestmark = pytest.mark.local

BY_HAND = {
    "gpu001": (
        "head -c 64 /dev/urandom >> /etc/munge/munge.key",
        "apt-get -y -qq remove libpmix-bin",
        "rm /var/lib/gcluster/stamps/allreduce.install",
        "sed 's/^# END gcluster/192.0.2.9 planted\\n&/' /etc/hosts > /root/h",
        "cat /root/h > /etc/hosts",
        "echo '# by hand' >> /etc/slurm/slurmd.env",
        "echo 'ssh-ed25519 AAAA stranger' >> /etc/ssh/authorized_keys.d/ada",
    ),
    "gpu002": (
        "chmod 0666 /etc/security/limits.d/50-gcluster.conf",
        "systemctl disable --now gcluster-node-health.timer",
        "userdel ada",
        "rm /etc/ssh/authorized_keys.d/ada",
        "echo 'ada ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/zz-hand",
        "useradd --shell /bin/bash --groups sudo mallory",
    ),
    "head": (
        "echo '# by hand' >> /etc/slurm/slurm.conf",
        "scontrol update NodeName=gpu002 State=DRAIN Reason='a hand'",
        "scontrol update PartitionName=train State=DOWN",
        "echo 'PermitRootLogin yes' > /etc/ssh/sshd_config.d/00-hand.conf",
        "echo 'ssh-ed25519 AAAA stranger' >> /root/.ssh/authorized_keys",
    ),
}
FIXED = {
    ("node", "key", "gpu001", "/etc/munge/munge.key"),
    ("node", "package", "gpu001", "libpmix-bin"),
    ("node", "stamp", "gpu001", "allreduce.install"),
    ("node", "block", "gpu001", "/etc/hosts"),
    ("node", "file", "gpu001", "/etc/slurm/slurmd.env"),
    ("node", "file", "gpu001", "/etc/ssh/authorized_keys.d/ada"),
    ("node", "file", "gpu002", "/etc/ssh/authorized_keys.d/ada"),
    ("node", "user", "gpu002", "ada"),
    ("node", "mode", "gpu002", "/etc/security/limits.d/50-gcluster.conf"),
    ("node", "unit", "gpu002", "gcluster-node-health.timer"),
    ("node", "file", "head", "/etc/slurm/slurm.conf"),
}
STRANGERS = {
    ("node", "entry", "gpu002", "/etc/sudoers.d/zz-hand"),
    ("node", "account", "gpu002", "mallory"),
    ("node", "account", "gpu002", "sudo:mallory"),
    ("node", "entry", "head", "/etc/ssh/sshd_config.d/00-hand.conf"),
    ("node", "entry", "head", "/root/.ssh/authorized_keys"),
}
LEFT = STRANGERS | {
    ("node", "mount", "gpu001", "/home"),
    ("node", "sysctl", "gpu001", "net.core.somaxconn"),
    ("fabric", "link", "gpu001", "eth0"),
    ("scheduler", "state", "gpu002", "gpu002"),
    ("scheduler", "partition", "train", "train"),
}
"""What a person does by hand, and what a fix leaves to one."""


def _container(live: LiveCluster, node: str) -> str:
    return f"gcluster-{live.name}-{node}"


def _pid(live: LiveCluster, node: str) -> str:
    requested = ["podman", "inspect", "--format", "{{.State.Pid}}", _container(live, node)]
    return subprocess.run(requested, check=True, capture_output=True, text=True).stdout.strip()


def _in_network_of(live: LiveCluster, node: str, *words: str) -> None:
    """Run a command of this machine in the network of a node: its kernel settings are there."""
    subprocess.run(["nsenter", "-t", _pid(live, node), "-n", *words], check=True)


def _as_machine(live: LiveCluster, node: str, command: str) -> None:
    """Run a command on a node with rights that containers lack and machines have."""
    words = ["podman", "exec", "--privileged", _container(live, node), "sh", "-c", command]
    subprocess.run(words, check=True)


def _found(report: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    return {(d["plane"], d["kind"], d["where"], d["name"]) for d in report["drifts"]}


def _drift(live: LiveCluster, expect: int) -> Any:
    return live.json("drift", str(live.spec), "--detailed-exitcode", expect=expect)


def _condition(live: LiveCluster, name: str) -> Any:
    status = live.json("status", str(live.spec), expect=None)
    (condition,) = [c for c in status["conditions"] if c["name"] == name]
    return condition


def test_right_after_up_nothing_has_drifted_and_everything_is_known(pair: LiveCluster) -> None:
    report = _drift(pair, 0)
    assert report["drifts"] == []
    assert (report["silent"], report["behind"], report["unsealed"]) == ({}, [], {})
    assert report["hosts"] == 3


def test_up_puts_right_what_it_would_wait_for_and_has_a_restart(pair: LiveCluster) -> None:
    """A stopped slurmctld and a foreign key first; a node that was restarted is no drift then."""
    pair.on("head", "systemctl stop slurmctld")
    pair.on("gpu002", "head -c 64 /dev/urandom >> /etc/munge/munge.key; systemctl restart munge")
    subprocess.run(["podman", "restart", _container(pair, "gpu001")], check=True)
    plan = pair.gcluster("plan", str(pair.spec)).stdout
    assert "changed on the node: unit slurmctld: enabled,inactive" in plan
    assert "changed on the node: key /etc/munge/munge.key: another" in plan
    assert "unknown: slurmctld doesn't run on head: up starts it first" in plan
    done = pair.json("up", str(pair.spec), "--yes")
    assert (done["changed"], done["failed_hosts"]) == (True, {})
    assert _drift(pair, 0)["drifts"] == []


def test_each_kind_of_drift_made_by_hand_is_found(pair: LiveCluster) -> None:
    for node, commands in BY_HAND.items():
        pair.on(node, " && ".join(commands))
    _as_machine(pair, "gpu001", "mount -t tmpfs tmpfs /home")
    _in_network_of(pair, "gpu001", "sysctl", "-q", "-w", "net.core.somaxconn=77")
    _in_network_of(pair, "gpu001", "ip", "link", "set", "eth0", "mtu", "1400")
    report = _drift(pair, 3)
    assert _found(report) == FIXED | LEFT
    seen = {(d["kind"], d["where"]): d for d in report["drifts"]}
    drained = seen["state", "gpu002"]
    assert drained["now"].endswith("a hand")
    assert (drained["who"], drained["when"][:2]) == ("root", "20")
    assert seen["package", "gpu001"]["when"].startswith("20")
    assert seen["file", "gpu001"]["when"].startswith("20")
    assert (seen["sysctl", "gpu001"]["now"], seen["link", "gpu001"]["now"]) == (
        "77",
        "up,1400,10000",
    )


def test_status_and_plan_report_it_too_and_what_no_step_puts_right(pair: LiveCluster) -> None:
    assert _condition(pair, "NoDrift")["status"] == "false"
    gate = _condition(pair, "AllReducePassed")
    assert gate["status"] == "unknown"
    assert "gpu001: drifted since (" in gate["reason"]
    plan = pair.gcluster("plan", str(pair.spec)).stdout
    assert "changed on the node: key /etc/munge/munge.key: another" in plan
    assert "file /etc/ssh/authorized_keys.d/ada: another" in plan
    assert "entry /etc/sudoers.d/zz-hand: new here" in plan
    assert "rm /etc/sudoers.d/zz-hand" in plan


def test_drift_is_reported_in_text_and_markdown(pair: LiveCluster) -> None:
    text = pair.gcluster("drift", str(pair.spec)).stdout
    assert "gpu001: key /etc/munge/munge.key: another" in text
    assert f"fix it with: gcluster drift {pair.name} --fix" in text
    comment = pair.gcluster("drift", str(pair.spec), "--format", "markdown").stdout
    assert comment.startswith(f"<!-- gcluster drift: {pair.name} -->")


def test_a_fix_fixes_what_steps_can_fix_and_leaves_the_rest_to_a_person(pair: LiveCluster) -> None:
    done = pair.json("drift", str(pair.spec), "--fix", "--yes", expect=3)
    assert done["failed"] == {}
    # slurm.conf, written again, is taken up: a partition is then as it says.
    assert _found(done["after"]) == LEFT - {("scheduler", "partition", "train", "train")}
    was = {d["kind"]: d["was"] for d in done["after"]["drifts"]}
    mtu = was["link"].split(",")[1]
    _as_machine(pair, "gpu001", "umount /home")
    _in_network_of(pair, "gpu001", "sysctl", "-q", "-w", f"net.core.somaxconn={was['sysctl']}")
    _in_network_of(pair, "gpu001", "ip", "link", "set", "eth0", "mtu", mtu)
    pair.on("gpu002", "rm /etc/sudoers.d/zz-hand; gpasswd --delete mallory sudo")
    pair.on("head", "sed -i '/stranger/d' /root/.ssh/authorized_keys")
    kept = "head:/etc/ssh/sshd_config.d/00-hand.conf"
    pair.gcluster("drift", str(pair.spec), "--accept", kept, "--accept", "gpu002:mallory")
    pair.gcluster("resume", str(pair.spec), "gpu002")
    assert _drift(pair, 0)["drifts"] == []


def test_the_certificate_that_drift_has_ended_is_renewed_by_a_test_alone(
    pair: LiveCluster,
) -> None:
    assert "drifted since" in _condition(pair, "AllReducePassed")["reason"]
    pair.gcluster("smoke", str(pair.spec))
    assert _condition(pair, "AllReducePassed")["status"] == "true"


def test_a_machine_that_was_stopped_and_a_stray_are_drift_of_the_site(pair: LiveCluster) -> None:
    requested = [
        "podman",
        "inspect",
        "--format",
        "{{json .Config.Labels}}",
        _container(pair, "gpu002"),
    ]
    answer = subprocess.run(requested, check=True, capture_output=True, text=True).stdout
    owner = {k: v for k, v in json.loads(answer).items() if k.startswith("gcluster.")}
    labels = [f"--label={key}={owner[key]}" for key in sorted(owner) if "token" not in key]
    volume = f"stray-{pair.name}"
    subprocess.run(["podman", "volume", "create", *labels, volume], check=True)
    subprocess.run(["podman", "stop", "--time", "1", _container(pair, "gpu002")], check=True)
    report = _drift(pair, 3)
    cloud = {(d["kind"], d["name"]) for d in report["drifts"] if d["plane"] == "cloud"}
    assert cloud == {("node", "gpu002"), ("volume", volume)}
    left = pair.json("ledger", "check", str(pair.spec), expect=5)
    assert [stray["item"]["name"] for stray in left["leftovers"]] == [volume]
    subprocess.run(["podman", "volume", "rm", volume], check=True)
    # A fix starts slurmctld, and checks it once its nodes have registered.
    pair.on("head", "systemctl stop slurmctld")
    done = pair.json("drift", str(pair.spec), "--fix", "--yes", expect=0)
    assert done["after"]["drifts"] == []
    pair.gcluster("ledger", "check", str(pair.spec))
