"""A control plane and a node that run pods, resolve names, and keep their settings."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import testinfra
from testinfra.host import Host

HERE = Path(__file__).parent
KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf"
LIBEXEC = "/usr/local/libexec/gcluster"
TOKENS = "--namespace=kube-system --field-selector=type=bootstrap.kubernetes.io/token"
CERTIFICATES, DAYS = 8, 300
"""A control plane has that many at least, made to hold for a year."""


def control_plane() -> Host:
    """Return the control plane: most checks are of the cluster, not of a node."""
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    return testinfra.get_host("ansible://cp01", ansible_inventory=inventory)


def kubectl_get(what: str) -> Any:
    return json.loads(control_plane().check_output(f"{KUBECTL} get {what} --output=json"))


def handed(path: Path) -> str:
    """Return a command that prints a file of this folder on a node."""
    return f"echo {base64.b64encode(path.read_bytes()).decode()} | base64 -d"


def until(command: str, wanted: str, seconds: int = 120) -> None:
    """Poll until the result is right, or fail after the time limit."""
    host, end = control_plane(), time.monotonic() + seconds
    while True:
        printed = host.run(command)
        if printed.stdout.strip() == wanted:
            return
        assert time.monotonic() < end, f"{command}: {printed.stdout}{printed.stderr}"
        time.sleep(1)


def test_every_node_is_ready_and_has_its_label() -> None:
    nodes = {n["metadata"]["name"]: n for n in kubectl_get("nodes")["items"]}
    assert sorted(nodes) == ["cp01", "gpu001"]
    for node in nodes.values():
        conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        assert conditions["Ready"] == "True"
        assert node["metadata"]["labels"]["gcluster.local/pool"] == "gpu"


def test_pods_of_both_nodes_are_reached_and_reach_services() -> None:
    host = control_plane()
    host.check_output(f"{handed(HERE / 'probe.yaml')} | {KUBECTL} apply --filename=-")
    ready = "--output=jsonpath='{.status.numberReady}'"
    until(f"{KUBECTL} get daemonset probe {ready}", "2")
    for pod in kubectl_get("pods --selector=app=probe")["items"]:
        query = f"{handed(HERE / 'query-name')} | python3 - {pod['status']['podIP']} 5300"
        until(query, "10.96.0.1", seconds=60)
    host.check_output(f"{KUBECTL} delete daemonset/probe configmap/probe --wait=false")


def test_secrets_are_stored_encrypted_and_not_in_the_audit_log() -> None:
    host = control_plane()
    made = f"{KUBECTL} create secret generic probe --from-literal=word=unmistakable"
    host.check_output(f"{made} --dry-run=client --output=yaml | {KUBECTL} apply --filename=-")
    key = "/registry/secrets/default/probe"
    stored = host.check_output(
        f"{LIBEXEC}/kubernetes-etcd.sh etcdctl get {key} | grep -a -c secretbox"
    )
    assert stored == "1"
    assert (
        host.run(f"{LIBEXEC}/kubernetes-etcd.sh etcdctl get {key} | grep -a unmistakable").rc == 1
    )
    log = "/var/log/kubernetes/audit.log"
    assert host.run(f'grep -c \'"resource":"secrets".*"name":"probe"\' {log}').rc == 0
    word = base64.b64encode(b"unmistakable").decode()
    assert host.run(f"grep -e unmistakable -e {word} {log}").rc == 1


def test_what_a_join_needs_is_short_lived_and_in_no_log() -> None:
    host = control_plane()
    tokens = kubectl_get(f"secrets {TOKENS}")["items"]
    assert all("expiration" in token["data"] for token in tokens)
    words = [base64.b64decode(token["data"]["token-secret"]).decode() for token in tokens]
    for word in words:
        assert host.run(f"grep -r {word} /var/log/gcluster").rc == 1


def test_no_secret_of_the_join_is_left(host: Host) -> None:
    assert host.run("ls /run/gcluster-join.json /run/gcluster-kubeadm.yaml").stdout == ""


def test_certificates_hold_for_months() -> None:
    left = json.loads(control_plane().check_output(f"{LIBEXEC}/kubernetes-certificates.py"))
    assert len(left) >= CERTIFICATES
    assert min(left.values()) > DAYS


def test_a_snapshot_brings_back_what_was_deleted_after_it() -> None:
    host = control_plane()
    host.check_output(
        f"{KUBECTL} create configmap kept --dry-run=client -o yaml | {KUBECTL} apply -f -"
    )
    host.check_output("systemctl start kubernetes-snapshot.service")
    host.check_output(f"{KUBECTL} delete configmap kept")
    assert "restored" in host.check_output(f"{LIBEXEC}/kubernetes-state.py restore")
    until(f"{KUBECTL} get configmap kept --output=name", "configmap/kept")
    until(f"{LIBEXEC}/kubernetes-check.py controller 90 && echo works", "works", seconds=150)


def test_the_host_keeps_its_kernel_settings() -> None:
    before = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "kernel").read_text().split()
    names = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "vm/panic_on_oom")
    assert [Path("/proc/sys", name).read_text().strip() for name in names] == before
