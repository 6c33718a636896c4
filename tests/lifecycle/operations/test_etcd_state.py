"""Control planes are saved whole, encrypted, and come back together, or nothing is changed.

The program of role kubernetes runs here, each control plane in a folder of its own; etcd's tools,
kubectl and ctr are doubles that write down how they were called, and a snapshot is a text.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.lifecycle.sample_cluster import SampleCluster
from tests.roles.kill_points import kill_points
from tests.roles.kubernetes_node import Node, a_node

from gcluster.cli.render.operate.operations import restored_text, saved_text
from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession, Unreachable
from gcluster.lifecycle.operations.etcd_state import (
    PROGRAM,
    SEED,
    WISH,
    bring_etcd,
    restore_etcd,
    save_etcd,
    saved_etcd,
    saved_objects,
)
from gcluster.schemas.load import load_text

HEADS = ("head1", "head2", "head3")
PKI = ("ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key",
       "etcd/ca.crt", "etcd/ca.key")  # fmt: skip
MANIFEST = """\
    - --name={name}
    - --initial-advertise-peer-urls=https://{name}:2380
    image: gcluster.local/k8s/etcd:3.6.5
"""
ETCD = """\
case "$*" in
  *"snapshot save"*) for last; do :; done; echo "of $NODE" >$last ;;
  *"snapshot restore"*)
    data=${5#*=}; mkdir -p $data && cp $4 $data/db ;;
esac"""
SETTINGS = """\
nodeRegistration: {"name": "head1", "criSocket": "unix:///run/containerd/containerd.sock"}
localAPIEndpoint: {"advertiseAddress": "192.0.2.1", "bindPort": 6443}
"""


def keys(*words: str) -> str:
    """Return a line of encryption.yaml, as the role's template writes it."""
    each = [f"{{name: gcluster-{word}, secret: {word}}}" for word in words]
    return f"      - secretbox: {{keys: [{', '.join(each)}]}}\n"


class Planes(SshSession):
    """Control planes in folders, each with the real program over doubles."""

    def __init__(self, folder: Path, names: tuple[str, ...] = HEADS) -> None:
        """Make control planes that serve."""
        super().__init__(folder)
        self.folder, self.off = folder, ""
        self.nodes = {name: self._plane(name) for name in names}

    def hosts(self) -> ClusterInventory:
        """Return the control planes as hosts."""
        alike = {"pool": "head", "role": "controller", "site": "room", "machine": None}
        hosts = [
            msgspec.convert({"name": name, "ssh": {"user": "root"}} | alike, Host)
            for name in self.nodes
        ]
        return ClusterInventory(cluster="trial", hosts=tuple(hosts))

    def _plane(self, name: str) -> Node:
        root = self.folder / name
        root.mkdir(parents=True)
        node = a_node(root)
        node.double("pgrep", "exit 1")
        node.double("ctr", "echo gcluster.local/k8s/etcd:3.6.5")
        node.double("kubeadm", "echo gcluster.local/k8s/etcd:3.6.5")
        node.double("kubelet", "echo Kubernetes v1.35.4")
        tool = node.write("usr/local/libexec/gcluster/kubernetes-etcd.sh", f"#!/bin/sh\n{ETCD}\n")
        tool.write_text(f'#!/bin/sh\nNODE={name}\necho "{tool.name} $*" >>{root}/calls\n{ETCD}\n')
        tool.chmod(0o755)
        node.write("etc/kubernetes/gcluster/encryption.yaml", keys("one"))
        node.write("etc/kubernetes/gcluster/kubeadm.yaml", SETTINGS)
        for part in PKI:
            node.write(f"etc/kubernetes/pki/{part}", f"{part} of the cluster")
        node.write("etc/kubernetes/admin.conf")
        node.write("etc/kubernetes/manifests/etcd.yaml", MANIFEST.format(name=name))
        node.write("etc/kubernetes/manifests/kube-apiserver.yaml")
        node.write("var/lib/etcd/data/db", "newer")
        return node

    def lose(self, *names: str) -> None:
        """Make control planes bare machines again: only what a role writes before init is there."""
        for name in names:
            node = self.nodes[name]
            for path in sorted((node.root / "etc/kubernetes").rglob("*"), reverse=True):
                if path.is_file() and path.parent.name != "gcluster":
                    path.unlink()
            (node.root / "var/lib/etcd/data/db").unlink()

    def data(self) -> dict[str, str]:
        """Return control plane -> what its etcd has."""
        return {
            name: (node.root / "var/lib/etcd/data/db").read_text().strip()
            for name, node in self.nodes.items()
        }

    def run(
        self,
        host: Host,
        command: str,
        *,
        stdin: str | None = None,
        timeout_s: float = 60,  # noqa: ARG002  # nothing waits
    ) -> Answer:
        """Run the program, or a line of the shell with its paths in the host's folder."""
        if host.name == self.off:
            return Unreachable(reason="off")
        node, (_, found, words) = self.nodes[host.name], command.partition(PROGRAM)
        if found:
            code, out, err = node.run("kubernetes-state.py", *words.split())
        else:
            code, out, err = node.shell(command, stdin or "")
        return SshResult(stdout=out, stderr=err, returncode=code)

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Run it on each."""
        return {host.name: self.run(host, command, timeout_s=timeout_s) for host in hosts}


@pytest.fixture
def cluster(sample: SampleCluster) -> Cluster:
    """A cluster with a state of its own."""
    opened = sample.open()
    opened.identify()
    return opened


def test_etcd_authorities_and_key_leave_the_control_plane_encrypted(
    cluster: Cluster, tmp_path: Path
) -> None:
    planes = Planes(tmp_path / "planes")
    saved = save_etcd(cluster, planes.hosts(), planes)
    assert saved_etcd(cluster) == (saved,)
    assert saved.kubernetes == "1.35.4"
    raw = [cluster.store.get(key) or b"" for key in saved_objects(cluster.store)]
    assert len(raw) == 2
    assert not any(word in content for word in (b"of head1", b"secretbox") for content in raw)
    archive = tmp_path / "archive"
    archive.write_bytes(cluster.vault.unseal(f"etcd/{saved.id}", saved.id) or b"")
    with tarfile.open(archive) as tar:
        assert set(tar.getnames()) == {"snapshot.db", "encryption.yaml", *(f"pki/{n}" for n in PKI)}
    left = planes.nodes["head1"].root / "var/lib/gcluster/etcd-snapshots"
    assert list(left.iterdir()) == []


def test_a_backup_killed_at_any_step_on_the_control_plane_is_none_and_the_next_one_is_whole(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[Path, Planes] = {}

    def begin(here: Path) -> int:
        made[here] = Planes(here, HEADS[:1])
        return made[here].nodes["head1"].run("kubernetes-state.py", "save")[0]

    points = 0
    for step, here in kill_points(begin, tmp_path, monkeypatch):
        planes = made[here]
        node = planes.nodes["head1"]
        assert node.run("kubernetes-state.py", "restore")[2].startswith("there is no snapshot")
        saved = save_etcd(cluster, planes.hosts(), planes)
        archive = cluster.vault.unseal(f"etcd/{saved.id}", saved.id) or b""
        assert hashlib.sha256(archive).hexdigest() == saved.sha256
        assert list((node.root / "var/lib/gcluster/etcd-snapshots").iterdir()) == []
        points = step
    assert points >= 4


PREPARE = ["prepare", "token", "head1=https://head1:2380"]


class Killed(BaseException):
    """The process ends here."""


def test_a_backup_killed_between_its_writes_to_the_state_is_none_and_the_next_one_is_whole(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planes = Planes(tmp_path / "planes", HEADS[:1])
    for writes in count():
        kept = saved_etcd(cluster)
        left = writes

        def put(write: Callable[..., Any], *given: Any, **named: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return write(*given, **named)

        with monkeypatch.context() as patch:
            for name in ("put", "put_new"):
                patch.setattr(cluster.store, name, partial(put, getattr(cluster.store, name)))
            try:
                last = save_etcd(cluster, planes.hosts(), planes)
            except Killed:
                last = None
        raw = [cluster.store.get(key) or b"" for key in saved_objects(cluster.store)]
        assert not any(word in content for word in (b"of head1", b"secretbox") for content in raw)
        if last is not None:
            break
        assert saved_etcd(cluster) == kept
        saved = save_etcd(cluster, planes.hosts(), planes)
        assert saved in saved_etcd(cluster)
        archive = cluster.vault.unseal(f"etcd/{saved.id}", saved.id) or b""
        assert hashlib.sha256(archive).hexdigest() == saved.sha256
    assert writes >= 2
    restored = restore_etcd(cluster, planes.hosts(), planes, last.id, discard=True)
    assert restored.saved == last


@pytest.mark.parametrize("verb", ["prepare", "replace"])
def test_a_restore_killed_at_any_step_on_the_control_plane_is_done_by_the_next(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    made: dict[Path, Planes] = {}

    def begin(here: Path) -> int:
        planes = made[here] = Planes(here, HEADS[:1])
        node = planes.nodes["head1"]
        with monkeypatch.context() as alive:
            alive.delenv("PYTHONPATH")
            saved = save_etcd(cluster, planes.hosts(), planes)
            archive = cluster.vault.unseal(f"etcd/{saved.id}", saved.id) or b""
            (node.root / SEED.strip("/")).write_bytes(archive)
            if verb == "replace":
                assert node.run("kubernetes-state.py", *PREPARE)[0] == 0
        return node.run("kubernetes-state.py", *(PREPARE if verb == "prepare" else ["replace"]))[0]

    points = 0
    for step, here in kill_points(begin, tmp_path, monkeypatch):
        planes = made[here]
        restore_etcd(cluster, planes.hosts(), planes, None, discard=True)
        assert planes.data() == {"head1": "of head1"}
        root = planes.nodes["head1"].root
        manifests = {path.name for path in (root / "etc/kubernetes/manifests").iterdir()}
        assert manifests == {"etcd.yaml", "kube-apiserver.yaml"}
        kept = {
            path.read_text().strip() for path in (root / "var/lib/etcd").glob("data.before-*/db")
        }
        assert "newer" in kept
        assert not (root / SEED.strip("/")).exists()
        assert not (root / "var/lib/gcluster/kubernetes-state.db").exists()
        points = step
    assert points >= 5


@pytest.mark.parametrize("names", [HEADS[:1], HEADS])
def test_control_planes_that_are_there_come_back_as_one_etcd(
    cluster: Cluster, tmp_path: Path, names: tuple[str, ...]
) -> None:
    planes = Planes(tmp_path / "planes", names)
    save_etcd(cluster, planes.hosts(), planes)
    with pytest.raises(LifecycleError, match="would be lost"):
        restore_etcd(cluster, planes.hosts(), planes, None)
    assert set(planes.data().values()) == {"newer"}
    result = restore_etcd(cluster, planes.hosts(), planes, None, discard=True)
    assert result.restored == names
    assert planes.data() == dict.fromkeys(names, "of head1")
    members = ",".join(f"{name}=https://{name}:2380" for name in names)
    for node in planes.nodes.values():
        (call,) = [one for one in node.calls() if "snapshot restore" in one]
        assert f"--initial-cluster={members}" in call
        assert {p.name for p in (node.root / "etc/kubernetes/manifests").iterdir()} == {
            "etcd.yaml",
            "kube-apiserver.yaml",
        }
        kept = list((node.root / "var/lib/etcd").glob("data.before-*/db"))
        assert [path.read_text() for path in kept] == ["newer"]
        assert not (node.root / SEED.strip("/")).exists()


@pytest.mark.parametrize(
    ("path", "other", "why"),
    [
        ("etc/kubernetes/pki/ca.crt", "another", "another certificate authority"),
        ("etc/kubernetes/gcluster/encryption.yaml", keys("two"), "another key for secrets at rest"),
    ],
)
def test_none_is_changed_where_one_has_other_authorities_or_another_key(
    cluster: Cluster, tmp_path: Path, path: str, other: str, why: str
) -> None:
    planes = Planes(tmp_path / "planes")
    save_etcd(cluster, planes.hosts(), planes)
    planes.nodes["head3"].write(path, other)
    with pytest.raises(LifecycleError, match=f"head3: .*{why}"):
        restore_etcd(cluster, planes.hosts(), planes, None, discard=True)
    assert set(planes.data().values()) == {"newer"}
    assert (planes.nodes["head1"].root / "etc/kubernetes/manifests/etcd.yaml").exists()


def test_a_backup_from_before_a_rotation_is_read_by_the_key_that_was_kept(
    cluster: Cluster, tmp_path: Path
) -> None:
    planes = Planes(tmp_path / "planes")
    save_etcd(cluster, planes.hosts(), planes)
    for node in planes.nodes.values():
        node.write("etc/kubernetes/gcluster/encryption.yaml", keys("two", "one"))
    assert restore_etcd(cluster, planes.hosts(), planes, None, discard=True).restored == HEADS


def test_a_control_plane_that_is_silent_keeps_the_others_as_they_are(
    cluster: Cluster, tmp_path: Path
) -> None:
    planes = Planes(tmp_path / "planes")
    save_etcd(cluster, planes.hosts(), planes)
    planes.off = "head2"
    with pytest.raises(LifecycleError, match="head2 can't be queried"):
        restore_etcd(cluster, planes.hosts(), planes, None, discard=True)
    assert planes.data()["head1"] == "newer"


def test_where_all_are_lost_the_first_one_is_made_with_the_backup(
    cluster: Cluster, tmp_path: Path
) -> None:
    planes = Planes(tmp_path / "planes")
    saved = save_etcd(cluster, planes.hosts(), planes)
    planes.lose(*HEADS)
    assert restore_etcd(cluster, planes.hosts(), planes, None).restored == ()
    assert cluster.store.get(WISH) == f'"{saved.id}"'.encode()
    bring_etcd(cluster, planes.hosts(), planes, silent)
    assert cluster.store.get(WISH) is None
    first = planes.nodes["head1"]
    assert first.run("kubernetes-state.py", "begin") == (0, "", "")
    pki = first.root / "etc/kubernetes/pki"
    assert (pki / "etcd/ca.key").read_text() == "etcd/ca.key of the cluster"
    assert (pki / "ca.key").stat().st_mode & 0o777 == 0o600
    assert (first.root / "var/lib/etcd/data/db").read_text() == "of head1\n"
    (call,) = [one for one in first.calls() if "snapshot restore" in one]
    assert "--initial-cluster=head1=https://192.0.2.1:2380" in call
    assert not (planes.nodes["head2"].root / SEED.strip("/")).exists()


def test_a_wish_is_dropped_where_a_control_plane_serves_by_now(
    cluster: Cluster, tmp_path: Path
) -> None:
    planes = Planes(tmp_path / "planes")
    saved = save_etcd(cluster, planes.hosts(), planes)
    cluster.store.put(WISH, msgspec.json.encode(saved.id))
    bring_etcd(cluster, planes.hosts(), planes, silent)
    assert cluster.store.get(WISH) is None
    assert not (planes.nodes["head1"].root / SEED.strip("/")).exists()


GKE = """\
apiVersion: gcluster/v1
name: west
sites: {west: {provider: gcp, project: acme, region: us-central1, zone: us-central1-a}}
pools: {gpu: {site: west, machine: a3-megagpu-8g, count: 4}}
scheduler: {type: kubernetes, control_plane: gke}
smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}
"""


def test_a_control_plane_of_a_clouds_is_the_clouds_to_keep(tmp_path: Path) -> None:
    planes = Planes(tmp_path / "planes")
    cluster: Any = SimpleNamespace(name="west", spec=load_text(GKE).spec)
    for ask in (
        lambda: save_etcd(cluster, planes.hosts(), planes),
        lambda: restore_etcd(cluster, planes.hosts(), planes, None),
    ):
        with pytest.raises(LifecycleError, match="no etcd of its own") as refused:
            ask()
        assert refused.value.diagnostics[0].code == "GC1031"


def test_what_was_saved_and_restored_is_reported_in_a_line(
    cluster: Cluster, tmp_path: Path
) -> None:
    planes = Planes(tmp_path / "planes", HEADS[:1])
    saved = save_etcd(cluster, planes.hosts(), planes)
    assert saved_text(saved).endswith("bytes, Kubernetes 1.35.4")
    done = restore_etcd(cluster, planes.hosts(), planes, None, discard=True)
    assert restored_text(done) == f"restored: head1 with etcd of {saved.taken_at}"
