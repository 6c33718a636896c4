"""Three real etcds are one again after a restore: of our own bundle, as processes on loopback.

The program of role kubernetes runs on each; kubelet, containers and kubectl are doubles.
"""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.free_port import free_port
from tests.roles.kubernetes_node import a_node

from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.release.build import ensure_program

pytestmark = pytest.mark.kubernetes_api

NAMES = ("head", "head002", "head003")
TOOL = """\
#!/bin/sh
name=$1; shift
export ETCDCTL_ENDPOINTS={client}
exec {folder}/$name "$@"
"""


class Member:
    """A control plane in a folder, whose etcd is real."""

    def __init__(self, root: Path, name: str, etcd: Path) -> None:
        """Lay everything down; nothing runs yet."""
        root.mkdir()
        self.name, self.node = name, a_node(root)
        self.peer, self.client = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        for program in ("etcd", "etcdctl", "etcdutl"):
            (root / program).symlink_to(etcd)
        tool = self.node.write("usr/local/libexec/gcluster/kubernetes-etcd.sh")
        tool.write_text(TOOL.format(client=self.client, folder=root))
        tool.chmod(0o755)
        manifest = f"- --name={name}\n- --initial-advertise-peer-urls={self.peer}\n"
        self.node.write("etc/kubernetes/manifests/etcd.yaml", manifest)
        for file in ("ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt"):
            self.node.write(f"etc/kubernetes/pki/{file}", file)
        for file in ("front-proxy-ca.key", "etcd/ca.crt", "etcd/ca.key"):
            self.node.write(f"etc/kubernetes/pki/{file}", file)
        self.node.double("pgrep", "exit 1")
        self.running: subprocess.Popen[bytes] | None = None

    def start(self, members: str) -> None:
        """Start its etcd, with the data that are there."""
        root = self.node.root
        words = [
            *("--name", self.name, "--data-dir", str(root / "var/lib/etcd/data")),
            *("--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer),
            *("--listen-client-urls", self.client, "--advertise-client-urls", self.client),
            *("--initial-cluster", members, "--unsafe-no-fsync"),
        ]
        with (root / "log").open("ab") as log:
            self.running = subprocess.Popen([str(root / "etcd"), *words], stdout=log, stderr=log)

    def stop(self) -> None:
        """End its etcd."""
        if self.running is not None:
            self.running.kill()
            self.running.wait()

    def etcdctl(self, *words: str) -> str:
        """Return what etcdctl says here."""
        command = [str(self.node.root / "etcdctl"), f"--endpoints={self.client}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def program(self, *words: str) -> str:
        """Run the program of the role."""
        code, told, errors = self.node.run("kubernetes-state.py", *words)
        assert code == 0, errors
        return told


def _serve(members: list[Member]) -> None:
    together = ",".join(f"{one.name}={one.peer}" for one in members)
    for one in members:
        one.start(together)
    for one in members:
        for _ in range(120):
            if "true" in one.etcdctl("endpoint", "health", "--write-out=json"):
                break
            time.sleep(0.5)
        else:
            raise AssertionError((one.node.root / "log").read_text()[-2000:])


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[Member]]:
    """Three control planes whose etcds are one."""
    etcd = ensure_program("etcd", silent)
    made = [Member(tmp_path / name, name, etcd) for name in NAMES]
    _serve(made)
    yield made
    for one in made:
        one.stop()


def test_three_control_planes_are_one_etcd_again_with_what_was_deleted(
    members: list[Member],
) -> None:
    first = members[0]
    first.etcdctl("put", "kept", "word")
    archive = base64.b64decode(first.program("save"))
    revision = first.etcdctl("endpoint", "status", "--write-out=fields")
    first.etcdctl("del", "kept")
    told = []
    for one in members:
        path = one.node.write("var/lib/gcluster/kubernetes-state.tar.gz")
        path.write_bytes(archive)
        told.append(one.program("check").strip())
    for one in members:
        one.program("prepare", "restored-1", *told)
        assert one.etcdctl("get", "kept") == ""  # nothing that runs was touched
    for one in members:
        one.stop()
        one.program("replace")
    _serve(members)
    for one in members:
        assert one.etcdctl("get", "kept", "--print-value-only").strip() == "word"
        assert len(one.etcdctl("member", "list").splitlines()) == len(NAMES)
    after = first.etcdctl("endpoint", "status", "--write-out=fields")
    assert _revision(after) > _revision(revision) + 1_000_000  # no watcher misses what comes now


def _revision(fields: str) -> int:
    (line,) = [one for one in fields.splitlines() if one.startswith('"Revision"')]
    return int(line.rpartition(":")[2])
