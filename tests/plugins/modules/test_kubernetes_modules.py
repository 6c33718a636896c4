"""The modules of Kubernetes go on where they stopped, and say in words what is wrong."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from recorded_machine import Machine
from running import ROOT

from gcluster.lifecycle.kubernetes.release.image_archive import (
    Image,
    archived,
    packed,
    write_archive,
)

TOKEN = {"token": "abcdef.0123456789abcdef", "ca_hash": "sha256:89ab"}
SETTINGS = "etc/kubernetes/gcluster"
PAUSE = "gcluster.local/k8s/pause:3.10.1"


class Node(Machine):
    """A machine whose tools write down how they were called."""

    def tool(self, name: str, script: str) -> None:
        super().tool(name, f'echo "{name} $*" >>{self.root}/calls\n{script}')

    def calls(self) -> list[str]:
        """Return how the tools were called, in order."""
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def kubeadm_commands(self) -> list[str]:
        """Return kubeadm's commands, in order."""
        return [call.split()[1] for call in self.calls() if call.startswith("kubeadm")]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    found = Node(tmp_path, monkeypatch)
    (found.root / "run").mkdir()
    found.file(f"{SETTINGS}/join.yaml", 'token: "@TOKEN@"\nhash: "@CA_HASH@"\n')
    for name, script in {"kubeadm": "", "kubectl": "echo ok", "systemctl": "", "pkill": ""}.items():
        found.tool(name, script)
    return found


def test_an_init_that_was_cut_off_is_reset_before_the_next(node: Node) -> None:
    mark = node.file(f"{SETTINGS}/init-unfinished")
    node.file("var/lib/etcd/data/member/snap/db")
    done = node.call("kubernetes_init", {})
    assert done["changes"] == [
        "reset this host after an unfinished init",
        "initialised the control plane",
    ]
    assert node.kubeadm_commands() == ["reset", "init"]
    assert list((node.root / "var/lib/etcd").iterdir()) == []
    assert not mark.exists()


def test_a_control_plane_that_was_complete_is_never_reset(node: Node) -> None:
    node.file("etc/kubernetes/admin.conf")
    assert node.call("kubernetes_init", {})["changed"] is False
    assert node.kubeadm_commands() == []


def test_a_control_plane_that_was_complete_and_is_silent_is_an_error(node: Node) -> None:
    node.file("etc/kubernetes/admin.conf")
    node.tool("kubectl", "exit 1")
    done = node.call("kubernetes_init", {"timeout": 1})
    assert done["failed"]
    assert "kubernetes-state.py restore" in done["msg"]
    assert node.kubeadm_commands() == []


@pytest.mark.parametrize(("path", "changed"), [("", True), ("etc/kubernetes/admin.conf", False)])
def test_check_mode_reports_whether_a_control_plane_would_be_made(
    node: Node, path: str, *, changed: bool
) -> None:
    if path:
        node.file(path)
    assert node.call("kubernetes_init", {}, check=True)["changed"] is changed
    assert node.calls() == []


def test_the_token_of_a_day_that_init_makes_is_deleted(node: Node) -> None:
    assert not node.call("kubernetes_init", {})["failed"]
    deleted = [call for call in node.calls() if "delete secret" in call]
    assert len(deleted) == 1
    assert "type=bootstrap.kubernetes.io/token" in deleted[0]


def test_an_init_that_fails_gives_the_reason_and_leaves_its_mark(node: Node) -> None:
    node.tool("kubeadm", 'echo "[ERROR Port-6443]: Port 6443 is in use" >&2; exit 1')
    done = node.call("kubernetes_init", {})
    assert done["failed"]
    assert "Port 6443 is in use" in done["msg"]
    assert (node.root / SETTINGS / "init-unfinished").exists()
    log = node.root / "var/log/gcluster/kubeadm-init.log"
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_join_passes_the_token_in_a_file_that_is_gone_afterwards(node: Node) -> None:
    config = node.root / "run/gcluster-kubeadm.yaml"
    node.tool("kubeadm", f"stat -c %a {config} >{node.root}/mode; cp {config} {node.root}/seen")
    assert node.call("kubernetes_join", TOKEN)["changes"] == ["joined the cluster"]
    seen = (node.root / "seen").read_text()
    assert seen == 'token: "abcdef.0123456789abcdef"\nhash: "sha256:89ab"\n'
    assert (node.root / "mode").read_text() == "600\n"
    assert not config.exists()
    assert "0123456789abcdef" not in "".join(node.calls())


def test_a_join_that_was_cut_off_is_reset_before_the_next(node: Node) -> None:
    node.file(f"{SETTINGS}/join-unfinished")
    done = node.call("kubernetes_join", TOKEN)
    assert done["changes"] == ["reset this host after an unfinished join", "joined the cluster"]
    assert node.kubeadm_commands() == ["reset", "join"]


def test_a_join_that_fails_gives_the_reason_and_leaves_its_mark_and_no_secret(node: Node) -> None:
    node.tool("kubeadm", 'echo "[ERROR Port-10250]: Port 10250 is in use" >&2; exit 1')
    done = node.call("kubernetes_join", TOKEN)
    assert done["failed"]
    assert "Port 10250 is in use" in done["msg"]
    assert (node.root / SETTINGS / "join-unfinished").exists()
    assert not (node.root / "run/gcluster-kubeadm.yaml").exists()


def test_a_host_that_joined_meanwhile_only_registers_its_node_again(node: Node) -> None:
    node.file("etc/kubernetes/kubelet.conf")
    assert node.call("kubernetes_join", TOKEN)["changed"]
    assert node.calls() == ["systemctl restart kubelet"]


@pytest.mark.parametrize("member", [True, False])
def test_check_mode_reports_whether_a_host_would_join(node: Node, *, member: bool) -> None:
    if member:
        node.file("etc/kubernetes/kubelet.conf")
    assert node.call("kubernetes_join", TOKEN, check=True)["changed"] is not member
    assert node.calls() == []


def test_a_host_whose_own_name_is_the_clusters_address_is_refused(node: Node) -> None:
    node.file(f"{SETTINGS}/join.yaml", f'apiServerEndpoint: "{socket.gethostname()}:6443"\n')
    done = node.call("kubernetes_join", TOKEN)
    assert done["failed"]
    assert "virtual_address" in done["msg"]
    assert node.calls() == []


def test_static_pods_run_with_the_rights_that_all_control_planes_have(node: Node) -> None:
    node.file(f"{SETTINGS}/static/vip.yaml", "path: /etc/kubernetes/super-admin.conf\n")
    assert not node.call("kubernetes_join", TOKEN)["failed"]
    placed = (node.root / "etc/kubernetes/manifests/vip.yaml").read_text()
    assert placed == "path: /etc/kubernetes/admin.conf\n"


def test_the_first_control_plane_has_the_rights_of_the_first_minutes_until_it_is_made(
    node: Node,
) -> None:
    manifest = node.root / "etc/kubernetes/manifests/vip.yaml"
    node.file(f"{SETTINGS}/static/vip.yaml", "path: /etc/kubernetes/super-admin.conf\n")
    rights = node.file("etc/kubernetes/super-admin.conf", "")
    node.tool("kubeadm", f"cp {manifest} {node.root}/seen")
    assert not node.call("kubernetes_init", {})["failed"]
    assert not rights.exists()
    assert "super-admin" in (node.root / "seen").read_text()
    assert "super-admin" not in manifest.read_text()


@pytest.mark.parametrize(
    ("module", "arguments", "during"),
    [("kubernetes_init", {}, "1\n"), ("kubernetes_join", TOKEN, "0\n")],
    ids=["first-before-it-is-made", "others-once-they-have-joined"],
)
def test_the_common_name_is_added_to_the_hosts_once(
    node: Node, module: str, arguments: dict[str, Any], during: str
) -> None:
    node.file(f"{SETTINGS}/own-name", "10.0.0.2 api.demo.internal\n")
    hosts = node.file("etc/hosts", "127.0.0.1 localhost")
    node.tool("kubeadm", f"grep -c api.demo {hosts} >>{node.root}/counts; true")
    for _ in range(2):
        assert not node.call(module, arguments)["failed"]
        assert hosts.read_text() == "127.0.0.1 localhost\n10.0.0.2 api.demo.internal\n"
    assert (node.root / "counts").read_text() == f"{during}1\n"


def test_control_planes_that_join_together_get_the_certificates_under_one_key(node: Node) -> None:
    node.file(f"{SETTINGS}/kubeadm.yaml", "kind: InitConfiguration\n")
    node.tool("openssl", "printf -- '-----BEGIN PUBLIC KEY-----\\na2V5\\n-----END PUBLIC KEY-----'")
    node.tool("kubeadm", f"cat >>{node.root}/config; echo warning: x; echo abcdef.0123456789abcdef")
    first, second = (
        node.call("kubernetes_join_token", {"role": "controller", "host": name})
        for name in ("cp2", "cp3")
    )
    key = first["certificate_key"]
    assert key == second["certificate_key"]
    assert first["token"] == TOKEN["token"]
    sha256_of_key = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"
    assert first["ca_hash"] == f"sha256:{sha256_of_key}"
    assert len([call for call in node.calls() if "upload-certs" in call]) == 1
    assert f"certificateKey: {key}\n" in (node.root / "config").read_text()
    assert key not in "".join(node.calls())
    kept = node.root / "run/gcluster-certificate-key"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_node_gets_no_certificates_and_its_earlier_node_is_deleted(node: Node) -> None:
    node.tool("openssl", "echo a2V5")
    node.tool("kubeadm", "echo abcdef.0123456789abcdef")
    done = node.call("kubernetes_join_token", {"role": "node", "host": "gpu001"})
    assert done["certificate_key"] == ""
    assert "delete node gpu001 --ignore-not-found" in node.calls()[0]


def test_no_control_plane_joins_while_the_authorities_are_exchanged(node: Node) -> None:
    node.file(f"{SETTINGS}/authorities-next/authorities.json", "{}")
    done = node.call("kubernetes_join_token", {"role": "controller", "host": "cp2"})
    assert done["failed"]
    assert "gcluster rotate certificate-authority goes on" in done["msg"]
    assert node.calls() == []


def test_check_mode_makes_no_token(node: Node) -> None:
    done = node.call("kubernetes_join_token", {"role": "node", "host": "gpu001"}, check=True)
    assert (done["changed"], done["token"]) == (True, "")
    assert node.calls() == []


def archive(folder: Path) -> tuple[str, dict[str, str]]:
    path = folder / "images.tar"
    image = archived(Image(reference=PAUSE, layers=(packed(b"layer"),)), "amd64")
    write_archive([image], path)
    return str(path), {image.reference: image.digest}


def test_images_that_containerd_has_are_not_imported_again(node: Node, tmp_path: Path) -> None:
    path, digests = archive(tmp_path)
    rows = "\n".join(f"{name} type {digest} 1MiB" for name, digest in digests.items())
    node.tool("ctr", f"printf '%s\\n' 'REF TYPE DIGEST SIZE' '{rows}'")
    assert node.call("kubernetes_images", {"archive": path})["changes"] == []
    assert not [call for call in node.calls() if "import" in call]


def test_missing_images_are_imported_and_pinned(node: Node, tmp_path: Path) -> None:
    path, digests = archive(tmp_path)
    row = f"{PAUSE} type {digests[PAUSE]} 1MiB"
    node.tool(
        "ctr",
        f"case $* in *import*) touch {node.root}/imported ;; *list) echo REF TYPE DIGEST SIZE; "
        f"[ ! -e {node.root}/imported ] || echo {row} ;; esac",
    )
    assert node.call("kubernetes_images", {"archive": path}, check=True)["changes"] == [PAUSE]
    assert not [call for call in node.calls() if "import" in call]
    assert node.call("kubernetes_images", {"archive": path})["changes"] == [PAUSE]
    assert [call for call in node.calls() if "label" in call and "pinned=pinned" in call]


def test_an_image_that_is_still_missing_after_the_import_is_named(
    node: Node, tmp_path: Path
) -> None:
    node.tool("ctr", "echo REF TYPE DIGEST SIZE")
    done = node.call("kubernetes_images", {"archive": archive(tmp_path)[0]})
    assert done["failed"]
    assert done["changes"] == [PAUSE]
    assert PAUSE in done["msg"]


def test_a_file_that_is_no_archive_is_refused(node: Node, tmp_path: Path) -> None:
    (tmp_path / "images.tar").write_text("nothing")
    node.tool("ctr", "echo REF TYPE DIGEST SIZE")
    done = node.call("kubernetes_images", {"archive": str(tmp_path / "images.tar")})
    assert done["failed"]
    assert "is no OCI archive" in done["msg"]


def test_an_install_links_no_other_version(node: Node) -> None:
    (node.root / "usr/bin").mkdir(parents=True)
    link = node.root / "usr/bin/kubelet"
    old, new = (node.file(f"store/{version}/kube").parent for version in ("1.35.4", "1.36.0"))

    def changes(store: Path, *, check: bool = False, **options: bool) -> list[str]:
        requested = {"store": str(store), "programs": {"kube": ["kubelet"]}, **options}
        changed: list[str] = node.call("kubernetes_programs", requested, check=check)["changes"]
        return changed

    assert changes(old, check=True) == [str(link)]
    assert changes(old, replace=False) == [str(link)]
    assert changes(new, replace=False) == []
    assert link.resolve() == old / "kube"
    assert changes(new) == [str(link)]
    assert changes(new) == []
    assert link.resolve() == new / "kube"


def nodes(*found: tuple[str, str]) -> str:
    items = [
        {"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": version}}}
        for name, version in found
    ]
    return f"echo Warning: old API; echo '{json.dumps({'items': items})}'"


def running(node: Node, version: str) -> None:
    node.file("etc/kubernetes/kubelet.conf")
    node.file("etc/kubernetes/admin.conf")
    program = node.file("usr/bin/kubelet", f"#!/bin/sh\necho Kubernetes v{version}\n")
    program.chmod(0o755)


def skew(node: Node, version: str) -> str:
    done = node.call("kubernetes_version_skew", {"version": version, "role": "controller"})
    return str(done.get("msg", ""))


@pytest.mark.parametrize(
    ("wanted", "reason"),
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
    node: Node, wanted: str, reason: str
) -> None:
    running(node, "1.34.4")
    node.tool("kubectl", nodes(("cp01", "v1.34.4"), ("gpu001", "v1.34.4")))
    assert (reason in skew(node, wanted)) if reason else not skew(node, wanted)


def test_the_control_plane_waits_for_a_node_that_was_left_behind(node: Node) -> None:
    running(node, "1.34.4")
    node.tool("kubectl", nodes(("cp01", "v1.34.4"), ("gpu001", "v1.33.9")))
    reason = "node gpu001 runs 1.33.9: bring it to 1.34 before 1.35.4 comes"
    assert skew(node, "1.35.4") == reason
    assert not skew(node, "1.34.9")


def test_a_host_that_is_no_node_may_have_any_version(node: Node) -> None:
    assert not skew(node, "1.99.0")


def test_a_host_reports_what_its_configuration_follows_from(node: Node) -> None:
    node.file("proc/swaps", "Filename Type\n")
    node.file("proc/meminfo", "MemTotal:  2097152 kB\n")
    node.tool("systemd-detect-virt", "exit 1")
    addresses = [{"ifname": "eth0", "addr_info": [{"local": "10.0.0.2"}]}]
    node.tool("ip", f"echo '{json.dumps(addresses)}'")
    node.file("usr/bin/kubeadm", "#!/bin/sh\necho v1.35.4\n").chmod(0o755)
    found = node.call("kubernetes_host_info", {"endpoint": "head:6443", "address": "10.0.0.2"})
    expected = {
        "cgroup": 1, "container": False, "swap": False, "memory_mib": 2048,
        "kubeadm": "1.35.4", "address": "10.0.0.2", "interface": "eth0", "changed": False,
    }  # fmt: skip
    assert expected.items() <= found.items()


def test_a_control_plane_whose_name_has_no_address_is_an_error(node: Node) -> None:
    found = node.call("kubernetes_host_info", {"endpoint": "nowhere.invalid:6443"})
    assert found["failed"]
    assert "nowhere.invalid has no address here" in found["msg"]


def test_control_planes_are_joined_upgraded_and_restarted_one_by_one() -> None:
    tasks = yaml.safe_load((ROOT / "roles/kubernetes/tasks/join.yml").read_text(encoding="utf-8"))
    alone = {task["name"] for task in tasks if "1 if kubernetes_role" in str(task.get("throttle"))}
    assert alone == {
        "Join the cluster",
        "Upgrade the member by kubeadm",
        "Restart the kubelet where its program has changed",
    }
