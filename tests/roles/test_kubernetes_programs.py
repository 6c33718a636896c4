"""The programs of the role kubernetes go on where they stopped, and say in words what is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .kubernetes_node import Node, a_node


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return a_node(tmp_path)


def _nodes(*found: tuple[str, str]) -> str:
    items = [
        {"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": version}}}
        for name, version in found
    ]
    return f"echo '{json.dumps({'items': items})}'"


def _running(node: Node, version: str) -> None:
    node.write("etc/kubernetes/kubelet.conf")
    node.write("etc/kubernetes/admin.conf")
    node.write("etc/kubernetes/gcluster/kubeadm.yaml")
    program = node.write("usr/bin/kubelet", f"#!/bin/sh\necho Kubernetes v{version}\n")
    program.chmod(0o755)


def test_the_first_control_plane_writes_etcd_away_and_moves_what_all_share(node: Node) -> None:
    _running(node, "1.34.4")
    snapshot = node.write("usr/local/libexec/gcluster/kubernetes-snapshot.sh")
    snapshot.write_text(f'#!/bin/sh\necho "snapshot" >>{node.root}/calls\n', encoding="utf-8")
    snapshot.chmod(0o755)
    node.write("etc/kubernetes/gcluster/upgrade.yaml")
    program = str(node.bin / "kubeadm")
    code, output, error = node.run("kubernetes-upgrade.py", "1.35.4", "first", program)
    assert (code, output) == (0, "brought the control plane to 1.35.4\n"), error
    assert [call.split()[:3] for call in node.calls()] == [
        ["snapshot"],
        ["kubeadm", "init", "phase"],
        ["kubeadm", "upgrade", "apply"],
    ]
    assert "--skip-phases=addon" in node.calls()[-1].split()
    assert node.run("kubernetes-upgrade.py", "1.35.4", "first", program)[:2] == (0, "")


@pytest.mark.parametrize("turn", ["controller", "node"])
def test_another_host_follows_and_reports_why_it_could_not(node: Node, turn: str) -> None:
    _running(node, "1.34.4")
    program = str(node.bin / "kubeadm")
    assert node.run("kubernetes-upgrade.py", "1.35.4", turn, program)[0] == 0
    assert node.calls()[-1].startswith("kubeadm upgrade node --skip-phases=addon --config=")
    (node.root / "etc/kubernetes/gcluster/upgraded-to").unlink()
    node.double("kubeadm", 'echo "error execution phase preflight: no" >&2; exit 1')
    code, _, error = node.run("kubernetes-upgrade.py", "1.35.4", turn, program)
    assert code == 1
    assert "error execution phase preflight: no" in error


@pytest.mark.parametrize(
    ("nodes", "upgraded", "brought"),
    [
        (("v1.35.4", "v1.35.4"), "1.35.4", True),
        (("v1.35.4", "v1.34.4"), "1.35.4", False),
        (("v1.35.4", "v1.35.4"), "", False),
    ],
    ids=["all-have-come", "one-is-behind", "never-upgraded"],
)
def test_kube_proxy_and_coredns_come_once_after_every_node(
    node: Node, nodes: tuple[str, str], upgraded: str, *, brought: bool
) -> None:
    node.double("kubectl", _nodes(("cp01", nodes[0]), ("gpu001", nodes[1])))
    if upgraded:
        node.write("etc/kubernetes/gcluster/upgraded-to", f"{upgraded}\n")
    answer = "brought kube-proxy and CoreDNS to 1.35.4\n" if brought else ""
    assert node.run("kubernetes-upgrade.py", "--addons") == (0, answer, "")
    ran = [call for call in node.calls() if call.startswith("kubeadm")]
    # This phase alone knows no --yes: kubeadm 1.35.4 refuses it.
    whole = "kubeadm upgrade apply phase addon all --config="
    assert [call.startswith(whole) and " --yes" not in call for call in ran] == [True] * brought
    assert node.run("kubernetes-upgrade.py", "--addons") == (0, "", "")
    assert [call for call in node.calls() if call.startswith("kubeadm")] == ran


def _exchanged(node: Node) -> None:
    """Let the kubelet be 1.35.4 where one of before still runs."""
    _running(node, "1.35.4")
    node.double("systemctl", f"[ $1 = restart ] || echo {os.getpid()}")
    node.instead = {"STEADY_S = 15": "STEADY_S = 2", "LIMIT_S = 300": "LIMIT_S = 4"}


def test_a_kubelet_started_again_is_waited_for_and_so_is_what_it_starts_again(node: Node) -> None:
    _exchanged(node)
    # The API server is away once after the kubelet has reported itself.
    node.double(
        "kubectl",
        f"case $* in *readyz*) [ -e {node.root}/again ] && echo ok; touch {node.root}/again ;; "
        "*) echo v1.35.4 ;; esac",
    )
    assert node.run("kubernetes-upgrade.py", "--kubelet") == (0, "started the kubelet again\n", "")
    requested = [call for call in node.calls() if "readyz" in call]
    assert len(requested) == 3


def test_a_kubelet_that_does_not_report_its_new_version_is_an_error(node: Node) -> None:
    _exchanged(node)
    (node.root / "etc/kubernetes/admin.conf").unlink()
    node.double("kubectl", "echo v1.34.4")
    code, _, error = node.run("kubernetes-upgrade.py", "--kubelet")
    assert code == 1
    assert "the kubelet 1.35.4 has reported itself: v1.34.4" in error


def test_a_host_of_that_version_and_one_that_is_no_node_are_left_alone(node: Node) -> None:
    program = str(node.bin / "kubeadm")
    assert node.run("kubernetes-upgrade.py", "1.35.4", "node", program) == (0, "", "")
    _running(node, "1.35.4")
    assert node.run("kubernetes-upgrade.py", "1.35.4", "node", program) == (0, "", "")
    assert node.calls() == []


NO_NETWORK = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)


def not_ready(node: Node, message: str) -> None:
    """Let the kubelet say this of its node."""
    node.write("etc/kubernetes/kubelet.conf")
    node.write("var/lib/kubelet/pki/kubelet-server-current.pem")
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message}
    answer = node.write("node.json", json.dumps({"status": {"conditions": [ready]}}))
    node.double("kubectl", f"cat {answer}")
    node.double("systemctl", "echo active")


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--network-later"], NO_NETWORK, 0),
        ([], NO_NETWORK, 1),
        (["--network-later"], f"[{NO_NETWORK}, PLEG is not healthy]", 1),
        (["0", "--network-later"], "kubelet is out of disk", 1),
    ],
    ids=["alone", "routed", "with-more", "other"],
)
def test_a_node_joined_that_lacks_nothing_but_a_network_that_comes_later(
    node: Node, options: list[str], message: str, code: int
) -> None:
    not_ready(node, message)
    ended, _, output = node.run("kubernetes-check.py", "node", *options)
    assert ended == code, output
    assert (message in output) == bool(code)


def test_a_node_serves_by_a_certificate_that_a_control_plane_signed(node: Node) -> None:
    not_ready(node, "")
    (node.root / "var/lib/kubelet/pki/kubelet-server-current.pem").unlink()
    ended, _, output = node.run("kubernetes-check.py", "node")
    assert ended == 1
    assert "no control plane has signed" in output


def test_settings_of_a_control_plane_come_to_one_that_is_there(node: Node) -> None:
    node.write("etc/kubernetes/admin.conf")
    node.write("etc/kubernetes/gcluster/kubeadm.yaml", "etcd: quota\n")
    node.instead = {"STEADY_S = 15": "STEADY_S = 1", "RENEWALS = 3": "RENEWALS = 1"}
    node.double("kubectl", "case $* in *lease*) echo head $(date +%N) ;; *) echo ok ;; esac")
    ended, printed, output = node.run("kubernetes-upgrade.py", "--settings")
    assert (ended, printed) == (0, "brought the control plane to its settings\n"), output
    phases = [call.split("--config")[0].strip() for call in node.calls() if "kubeadm" in call[:7]]
    assert phases == [
        "kubeadm init phase upload-config kubeadm",
        "kubeadm init phase etcd local",
        "kubeadm init phase control-plane all",
    ]
    assert node.run("kubernetes-upgrade.py", "--settings")[1] == ""
    assert len(node.calls()) == len(phases) + sum("kubectl" in call[:7] for call in node.calls())


def test_settings_that_leave_no_controller_manager_at_work_are_an_error(node: Node) -> None:
    """It gives up while no API server answers, and its lease stays as it was."""
    node.write("etc/kubernetes/admin.conf")
    node.write("etc/kubernetes/gcluster/kubeadm.yaml", "etcd: quota\n")
    node.instead = {"STEADY_S = 15": "STEADY_S = 1", "LIMIT_S = 300": "LIMIT_S = 3"}
    node.double("kubectl", "case $* in *lease*) echo head 22:39:36 ;; *) echo ok ;; esac")
    ended, _, output = node.run("kubernetes-upgrade.py", "--settings")
    assert ended == 1
    assert "waited 3 s until a kube-controller-manager leads" in output
