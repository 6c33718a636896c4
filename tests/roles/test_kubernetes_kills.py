"""Renewal, upgrade and snapshot of a control plane are killed at every step, and done by the next.

The programs are the role's own; kubeadm, kubectl and etcd's tools are doubles.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from .kill_points import kill_points
from .kubernetes_node import LIBEXEC, Node, a_node
from .test_kubernetes_certificates import ALL, NAMES, ControlPlane

_TARGET = "1.35.4"


def _is_renewed(plane: ControlPlane) -> None:
    new = (plane.root / "new.crt").read_bytes()
    assert [(plane.root / "pki" / name).read_bytes() == new for name in NAMES] == [True] * 3
    assert plane.restarted() == ALL
    assert list((plane.root / "gcluster").iterdir()) == []


def _manifests_are_whole(plane: ControlPlane) -> None:
    for name in ALL:
        assert "metadata:" in (plane.root / f"manifests/{name}.yaml").read_text()


def test_a_renewal_killed_at_any_step_is_done_by_the_next_and_no_manifest_is_ever_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planes: dict[Path, ControlPlane] = {}

    def begin(here: Path) -> int:
        planes[here] = ControlPlane(here, days=30)
        return planes[here].renew().returncode

    points = 0
    for step, here in kill_points(begin, tmp_path, monkeypatch):
        plane = planes[here]
        _manifests_are_whole(plane)
        done = plane.renew()
        assert done.returncode == 0, (step, done.stderr)
        _is_renewed(plane)
        points = step
    assert points > 60


@pytest.mark.parametrize("written", range(len(NAMES) + 1))
@pytest.mark.parametrize("torn", [True, False])
def test_a_renewal_killed_while_kubeadm_writes_is_done_by_the_next(
    tmp_path: Path, written: int, *, torn: bool
) -> None:
    plane = ControlPlane(tmp_path, days=30)
    lines = [f"cat new.crt >pki/{name}" for name in NAMES[:written]]
    lines += [f"printf -- '-----BEGIN' >pki/{name}" for name in NAMES[written : written + torn]]
    kubeadm = plane.bin / "kubeadm"
    whole = kubeadm.read_text()
    script = ['#!/bin/sh\ncd "$GCLUSTER_KUBERNETES"', *lines, "kill -KILL $PPID"]
    kubeadm.write_text("\n".join(script))
    assert plane.renew().returncode == -signal.SIGKILL
    assert plane.restarted() == set()
    kubeadm.write_text(whole)
    assert plane.renew().returncode == 0
    _is_renewed(plane)


def _old_control_plane(root: Path) -> Node:
    node = a_node(root)
    for path in ("kubelet.conf", "admin.conf", "gcluster/kubeadm.yaml", "gcluster/upgrade.yaml"):
        node.write(f"etc/kubernetes/{path}")
    node.write("usr/bin/kubelet", "#!/bin/sh\necho Kubernetes v1.34.4\n").chmod(0o755)
    snapshot = node.write("usr/local/libexec/gcluster/kubernetes-snapshot.sh")
    snapshot.write_text(f'#!/bin/sh\necho "snapshot" >>{root}/calls\n', encoding="utf-8")
    snapshot.chmod(0o755)
    return node


@pytest.mark.parametrize(("turn", "verb"), [("first", "apply"), ("controller", "node")])
def test_an_upgrade_killed_at_any_step_is_done_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: str, verb: str
) -> None:
    nodes: dict[Path, Node] = {}

    def upgrade(node: Node) -> tuple[int, str, str]:
        program = str(node.bin / "kubeadm")
        return node.run("kubernetes-upgrade.py", _TARGET, turn, program)

    def begin(here: Path) -> int:
        nodes[here] = _old_control_plane(here)
        return upgrade(nodes[here])[0]

    points = 0
    for step, here in kill_points(begin, tmp_path, monkeypatch):
        node = nodes[here]
        code, _, error = upgrade(node)
        assert code == 0, (step, error)
        folder = node.root / "etc/kubernetes/gcluster"
        assert (folder / "upgraded-to").read_text() == f"{_TARGET}\n"
        applied = [call for call in node.calls() if call.startswith(f"kubeadm upgrade {verb}")]
        assert len(applied) in {1, 2}  # kubeadm goes on where it was
        if turn == "first":  # before anything is moved, each time
            assert node.calls()[0] == "snapshot"
        before = node.calls()
        assert upgrade(node) == (0, "", "")
        assert node.calls() == before
        points = step
    assert points >= 8


TOOL = """\
#!/bin/sh
case "$*" in
  *"snapshot save"*) for last; do :; done; printf half >$last.part
    [ "$KILL" != save ] || kill -KILL $PPID
    echo whole >$last.part; mv $last.part $last ;;
  *"snapshot status"*) for last; do :; done; grep -q whole $last || exit 1
    [ "$KILL" != status ] || kill -KILL $PPID ;;
esac
"""


@pytest.mark.parametrize("kill", ["save", "status"])
def test_a_snapshot_that_was_killed_is_none_and_goes_with_a_later_one(
    tmp_path: Path, kill: str
) -> None:
    libexec, folder = tmp_path / "libexec", tmp_path / "snapshots"
    libexec.mkdir()
    (libexec / "kubernetes-etcd.sh").write_text(TOOL, encoding="utf-8")
    (libexec / "kubernetes-etcd.sh").chmod(0o755)
    text = (LIBEXEC / "kubernetes-snapshot.sh").read_text(encoding="utf-8")
    for path, here in (
        ("/var/lib/gcluster/etcd-snapshots", folder),
        ("/usr/local/libexec/gcluster", libexec),
    ):
        assert path in text
        text = text.replace(path, str(here))

    def snapshot(kill: str = "") -> int:
        command = ["sh", "-c", text, "snapshot", "2"]
        environment = {"PATH": "/usr/bin:/bin", "KILL": kill}
        return subprocess.run(command, check=False, env=environment).returncode

    assert snapshot(kill) == -signal.SIGKILL
    left = list(folder.iterdir())
    assert left
    assert [path for path in left if path.suffix == ".db"] == []
    assert snapshot() == 0
    assert len(list(folder.glob("*.db"))) == 1
    subprocess.run(["touch", "-d", "2 hours ago", *left], check=True)
    assert snapshot() == 0
    assert [path.suffix for path in folder.iterdir() if path in left] == []
    assert {path.suffix for path in folder.iterdir()} == {".db"}
