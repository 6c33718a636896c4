"""The programs of the role kubernetes go on where they stopped, and say in words what is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gcluster.lifecycle.kubernetes.image_archive import Image, packed, write_archive

from .kubernetes_node import Node, a_node

GIVEN = json.dumps({"token": "abcdef.0123456789abcdef", "ca_hash": "sha256:89ab"})


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return a_node(tmp_path)


def test_an_init_that_was_cut_off_is_taken_back_before_the_next(node: Node) -> None:
    node.write("etc/kubernetes/gcluster/init-unfinished")
    node.write("var/lib/etcd/data/member/snap/db")
    code, said, error = node.run("kubernetes-init")
    assert (code, said) == (
        0,
        "took back an init that was cut off\ninitialised the control plane\n",
    ), error
    assert [c.split()[1] for c in node.calls() if c.startswith("kubeadm")] == ["reset", "init"]
    assert list((node.root / "var/lib/etcd").iterdir()) == []
    assert not (node.root / "etc/kubernetes/gcluster/init-unfinished").exists()


def test_a_control_plane_that_was_whole_is_never_taken_back(node: Node) -> None:
    node.write("etc/kubernetes/admin.conf")
    assert node.run("kubernetes-init")[:2] == (0, "")
    assert not [call for call in node.calls() if call.startswith("kubeadm")]


def test_the_token_of_a_day_that_init_makes_is_removed(node: Node) -> None:
    assert node.run("kubernetes-init")[0] == 0
    removed = [c for c in node.calls() if "delete secret" in c]
    assert len(removed) == 1
    assert "type=bootstrap.kubernetes.io/token" in removed[0]


def archive(folder: Path) -> Path:
    image = Image(reference="gcluster.local/k8s/pause:3.10.1", layers=(packed(b"layer"),))
    write_archive([image], "amd64", folder / "images.tar")
    return folder / "images.tar"


def test_images_that_containerd_holds_are_not_imported_again(node: Node, tmp_path: Path) -> None:
    digests = write_archive(
        [Image(reference="gcluster.local/k8s/pause:3.10.1", layers=(packed(b"layer"),))],
        "amd64",
        tmp_path / "images.tar",
    )
    held = "\n".join(f"{name} type {digest} 1MiB" for name, digest in digests.items())
    node.double("ctr", f"printf '%s\\n' 'REF TYPE DIGEST SIZE' '{held}'")
    assert node.run("kubernetes-images", str(tmp_path / "images.tar")) == (0, "", "")
    assert not [call for call in node.calls() if "import" in call]


def test_an_image_that_is_still_missing_after_the_import_is_named(
    node: Node, tmp_path: Path
) -> None:
    node.double("ctr", "echo REF TYPE DIGEST SIZE")
    code, said, error = node.run("kubernetes-images", str(archive(tmp_path)))
    assert code == 1
    assert said == "gcluster.local/k8s/pause:3.10.1\n"
    assert "gcluster.local/k8s/pause:3.10.1" in error


def test_a_file_that_is_no_archive_is_said(node: Node, tmp_path: Path) -> None:
    (tmp_path / "images.tar").write_text("nothing")
    code, _, error = node.run("kubernetes-images", str(tmp_path / "images.tar"))
    assert code == 1
    assert "is no OCI archive" in error


def test_another_version_is_not_let_in_by_an_install(node: Node, tmp_path: Path) -> None:
    (node.root / "usr/bin").mkdir(parents=True)
    for version in ("1.35.4", "1.36.0"):
        node.write(f"store/{version}/kube")
    programs = json.dumps({"kube": ["kubelet"]})
    link = node.root / "usr/bin/kubelet"
    old, new = (str(tmp_path / "store" / version) for version in ("1.35.4", "1.36.0"))
    assert node.run("kubernetes-place", old, "--first", stdin=programs)[1] == f"{link}\n"
    assert node.run("kubernetes-place", new, "--first", stdin=programs)[1] == ""
    assert link.resolve() == Path(old, "kube")
    assert node.run("kubernetes-place", new, stdin=programs)[1] == f"{link}\n"
    assert link.resolve() == Path(new, "kube")


def _balanced(node: Node) -> Path:
    node.write("etc/kubernetes/gcluster/own-name", "10.0.0.2 api.demo.internal\n")
    program = node.write("usr/local/libexec/gcluster/kubernetes-call-itself")
    program.write_text(f'#!/bin/sh\necho "call-itself" >>{node.root}/calls\n', encoding="utf-8")
    program.chmod(0o755)
    return node.write("etc/hosts", "127.0.0.1 localhost")


def test_a_first_control_plane_means_itself_before_it_is_made_and_another_once_it_has_joined(
    node: Node,
) -> None:
    _balanced(node)
    assert node.run("kubernetes-init")[0] == 0
    assert [call.split()[0] for call in node.calls()[:2]] == ["call-itself", "kubeadm"]
    (node.root / "calls").unlink()
    node.write("run/gcluster-join.json", GIVEN)
    assert node.run("kubernetes-join")[0] == 0
    assert [call.split()[0] for call in node.calls()] == ["kubeadm", "call-itself"]


def test_the_common_name_is_added_to_the_hosts_once(node: Node) -> None:
    hosts = _balanced(node)
    assert node.run("kubernetes-call-itself")[1] == "calls itself by the common name\n"
    assert node.run("kubernetes-call-itself")[:2] == (0, "")
    assert hosts.read_text() == "127.0.0.1 localhost\n10.0.0.2 api.demo.internal\n"


def _nodes(*found: tuple[str, str]) -> str:
    items = [
        {"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": version}}}
        for name, version in found
    ]
    return f"echo '{json.dumps({'items': items})}'"


def _running(node: Node, version: str) -> None:
    node.write("etc/kubernetes/kubelet.conf")
    node.write("etc/kubernetes/admin.conf")
    program = node.write("usr/bin/kubelet", f"#!/bin/sh\necho Kubernetes v{version}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("1.35.4", ""),
        ("1.34.9", ""),
        ("1.34", ""),
        ("1.36.0", "skips a minor: go to 1.35 first"),
        ("1.33.9", "is older"),
        ("1.34.2", "is older"),
    ],
)
def test_a_version_is_one_minor_ahead_at_most_and_never_behind(
    node: Node, wanted: str, told: str
) -> None:
    _running(node, "1.34.4")
    node.double("kubectl", _nodes(("cp01", "v1.34.4"), ("gpu001", "v1.34.4")))
    code, said, _ = node.run("kubernetes-skew", wanted, "controller")
    assert code == 0
    assert (told in said) if told else not said


def test_the_control_plane_waits_for_a_node_that_was_left_behind(node: Node) -> None:
    _running(node, "1.34.4")
    node.double("kubectl", _nodes(("cp01", "v1.34.4"), ("gpu001", "v1.33.9")))
    said = node.run("kubernetes-skew", "1.35.4", "controller")[1]
    assert said == "node gpu001 runs 1.33.9: bring it to 1.34 before 1.35.4 comes\n"
    assert not node.run("kubernetes-skew", "1.34.9", "controller")[1]


def test_the_first_control_plane_writes_etcd_away_and_moves_what_all_share(node: Node) -> None:
    _running(node, "1.34.4")
    snapshot = node.write("usr/local/libexec/gcluster/kubernetes-snapshot")
    snapshot.write_text(f'#!/bin/sh\necho "snapshot" >>{node.root}/calls\n', encoding="utf-8")
    snapshot.chmod(0o755)
    node.write("etc/kubernetes/gcluster/upgrade.yaml")
    program = str(node.bin / "kubeadm")
    code, said, error = node.run("kubernetes-upgrade", "1.35.4", "first", program)
    assert (code, said) == (0, "brought the control plane to 1.35.4\n"), error
    assert [call.split()[:3] for call in node.calls()] == [
        ["snapshot"],
        ["kubeadm", "init", "phase"],
        ["kubeadm", "upgrade", "apply"],
    ]
    assert "--skip-phases=addon" in node.calls()[-1].split()
    assert node.run("kubernetes-upgrade", "1.35.4", "first", program)[:2] == (0, "")


@pytest.mark.parametrize("turn", ["controller", "node"])
def test_another_host_follows_and_says_why_it_could_not(node: Node, turn: str) -> None:
    _running(node, "1.34.4")
    program = str(node.bin / "kubeadm")
    assert node.run("kubernetes-upgrade", "1.35.4", turn, program)[0] == 0
    assert node.calls()[-1].startswith("kubeadm upgrade node --skip-phases=addon --config=")
    (node.root / "etc/kubernetes/gcluster/upgraded-to").unlink()
    node.double("kubeadm", 'echo "error execution phase preflight: no" >&2; exit 1')
    code, _, error = node.run("kubernetes-upgrade", "1.35.4", turn, program)
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
    told = "brought kube-proxy and CoreDNS to 1.35.4\n" if brought else ""
    assert node.run("kubernetes-upgrade", "--addons") == (0, told, "")
    ran = [call for call in node.calls() if call.startswith("kubeadm")]
    # This phase alone knows no --yes: kubeadm 1.35.4 refuses it.
    whole = "kubeadm upgrade apply phase addon all --config="
    assert [call.startswith(whole) and " --yes" not in call for call in ran] == [True] * brought
    assert node.run("kubernetes-upgrade", "--addons") == (0, "", "")
    assert [call for call in node.calls() if call.startswith("kubeadm")] == ran


def _exchanged(node: Node) -> None:
    """Let the kubelet be 1.35.4 where one of before still runs."""
    _running(node, "1.35.4")
    node.double("systemctl", f"[ $1 = restart ] || echo {os.getpid()}")
    node.instead = {"STEADY_S = 15": "STEADY_S = 2", "LIMIT_S = 180": "LIMIT_S = 4"}


def test_a_kubelet_started_anew_is_waited_for_and_so_is_what_it_starts_anew(node: Node) -> None:
    _exchanged(node)
    # The API server is away once after the kubelet has reported itself.
    node.double(
        "kubectl",
        f"case $* in *readyz*) [ -e {node.root}/again ] && echo ok; touch {node.root}/again ;; "
        "*) echo v1.35.4 ;; esac",
    )
    assert node.run("kubernetes-upgrade", "--kubelet") == (0, "started the kubelet anew\n", "")
    asked = [call for call in node.calls() if "readyz" in call]
    assert len(asked) == 3


def test_a_kubelet_that_does_not_report_its_new_version_is_an_error(node: Node) -> None:
    _exchanged(node)
    (node.root / "etc/kubernetes/admin.conf").unlink()
    node.double("kubectl", "echo v1.34.4")
    code, _, error = node.run("kubernetes-upgrade", "--kubelet")
    assert code == 1
    assert "the kubelet 1.35.4 has reported itself: v1.34.4" in error


def test_a_host_of_that_version_and_one_that_is_no_node_are_left_alone(node: Node) -> None:
    program = str(node.bin / "kubeadm")
    assert node.run("kubernetes-upgrade", "1.35.4", "node", program) == (0, "", "")
    _running(node, "1.35.4")
    assert node.run("kubernetes-upgrade", "1.35.4", "node", program) == (0, "", "")
    assert node.calls() == []


NO_NETWORK = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)


def not_ready(node: Node, message: str) -> None:
    """Let the kubelet say this of its node."""
    node.write("etc/kubernetes/kubelet.conf")
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message}
    told = node.write("node.json", json.dumps({"status": {"conditions": [ready]}}))
    node.double("kubectl", f"cat {told}")
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
    ended, _, said = node.run("kubernetes-check", "node", *options)
    assert ended == code, said
    assert (message in said) == bool(code)
