"""Hosts join a cluster of Kubernetes: with what secrets, after what was cut off, and whom."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import yaml

from .kubernetes_node import LIBEXEC, Node, a_node

GIVEN = json.dumps({"token": "abcdef.0123456789abcdef", "ca_hash": "sha256:89ab"})


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return a_node(tmp_path)


def test_a_join_hands_the_token_over_in_a_file_that_is_gone_afterwards(node: Node) -> None:
    node.double("kubeadm", f'cp "{node.root}/run/gcluster-kubeadm.yaml" {node.root}/seen')
    given = node.write("run/gcluster-join.json", GIVEN)
    assert node.run("kubernetes-join")[:2] == (0, "joined the cluster\n")
    seen = (node.root / "seen").read_text()
    assert seen == 'token: "abcdef.0123456789abcdef"\nhash: "sha256:89ab"\n'
    assert not given.exists()
    assert not (node.root / "run/gcluster-kubeadm.yaml").exists()
    assert "0123456789abcdef" not in "".join(node.calls())


def test_a_join_that_was_cut_off_is_taken_back_before_the_next(node: Node) -> None:
    node.write("etc/kubernetes/gcluster/join-unfinished")
    node.write("run/gcluster-join.json", GIVEN)
    code, said, _ = node.run("kubernetes-join")
    assert (code, said) == (0, "took back a join that was cut off\njoined the cluster\n")
    assert [call.split()[1] for call in node.calls()] == ["reset", "join"]


def test_a_join_that_fails_says_why_and_leaves_its_mark_and_no_secret(node: Node) -> None:
    node.double("kubeadm", 'echo "[ERROR Port-10250]: Port 10250 is in use" >&2; exit 1')
    node.write("run/gcluster-join.json", GIVEN)
    code, _, error = node.run("kubernetes-join")
    assert code == 1
    assert "Port 10250 is in use" in error
    assert (node.root / "etc/kubernetes/gcluster/join-unfinished").exists()
    assert not (node.root / "run/gcluster-join.json").exists()


def test_control_planes_that_join_together_get_the_certificates_under_one_key(node: Node) -> None:
    node.write("etc/kubernetes/gcluster/kubeadm.yaml", "kind: InitConfiguration\n")
    node.double("openssl", "echo key")
    node.double("kubeadm", "cat >/dev/null; echo abcdef.0123456789abcdef")
    told = [node.run("kubernetes-token", "controller", name)[1] for name in ("cp2", "cp3")]
    first, second = (json.loads(text) for text in told)
    assert first["certificate_key"] == second["certificate_key"]
    uploads = [call for call in node.calls() if "upload-certs" in call]
    assert len(uploads) == 1
    assert first["certificate_key"] not in "".join(node.calls())
    assert (node.root / "run/gcluster-certificate-key").stat().st_mode & 0o777 == 0o600


def test_a_host_whose_own_name_is_the_clusters_address_joins_nobody(node: Node) -> None:
    endpoint = f'apiServerEndpoint: "{socket.gethostname()}:6443"\n'
    node.write("etc/kubernetes/gcluster/join.yaml", endpoint)
    node.write("run/gcluster-join.json", GIVEN)
    code, _, error = node.run("kubernetes-join")
    assert code == 1
    assert "virtual_address" in error
    assert node.calls() == []


def test_what_moves_the_address_runs_with_the_rights_that_all_control_planes_have(
    node: Node,
) -> None:
    node.write(
        "etc/kubernetes/gcluster/static/vip.yaml", "path: /etc/kubernetes/super-admin.conf\n"
    )
    node.write("etc/kubernetes/manifests/etcd.yaml")
    node.write("run/gcluster-join.json", GIVEN)
    assert node.run("kubernetes-join")[0] == 0
    placed = (node.root / "etc/kubernetes/manifests/vip.yaml").read_text()
    assert placed == "path: /etc/kubernetes/admin.conf\n"


def test_a_node_that_is_a_member_is_left_alone(node: Node) -> None:
    node.write("etc/kubernetes/kubelet.conf")
    assert node.run("kubernetes-join", "--is-member")[0] == 0
    assert node.run("kubernetes-join") == (0, "", "")
    assert node.calls() == []


def test_control_planes_are_joined_upgraded_and_started_anew_one_by_one() -> None:
    tasks = yaml.safe_load((LIBEXEC.parents[1] / "tasks" / "join.yml").read_text(encoding="utf-8"))
    alone = {task["name"] for task in tasks if "1 if kubernetes_role" in str(task.get("throttle"))}
    assert alone == {
        "Join",
        "Bring a member to the version, as far as kubeadm keeps it",
        "Start the kubelet anew where it is another program",
    }
