"""Tokens are signed by another key: at no time is there one that an API server can't verify.

The program of role kubernetes runs, over folders of three control planes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession, Unreachable
from gcluster.lifecycle.operations.rotate.service_accounts import TOOL, rotate_service_accounts
from gcluster.schemas.load import load_text
from gcluster.stacks.registry import provider

PROGRAM = (
    Path(__file__).parents[3] / "roles/kubernetes/files/libexec/kubernetes-service-accounts.py"
)
SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller, count: 3}
  gpu: {site: here, machine: sim.h100x8, count: 1}
scheduler: {type: kubernetes, virtual_address: {address: 10.22.0.250, by: keepalived}}
"""
SLURM = SPEC.partition("scheduler")[0].replace(", count: 3", "") + "scheduler: {type: slurm}\n"
COMMANDS = 10
"""Of one rotation: three are looked at, one makes the key, three add it, three use it."""


class Killed(Exception):  # noqa: N818  # what happens, not an error of ours
    """The command ends here."""


def openssl(*words: str, given: str = "") -> str:
    done = subprocess.run(
        ["openssl", *words], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


class Planes(SshSession):
    """Three control planes with one key, and what runs on them."""

    def __init__(self, folder: Path, spec: str = SPEC) -> None:
        """Make the cluster as kubeadm leaves it."""
        super().__init__(folder)
        read = load_text(spec).spec
        assert read is not None
        planned = provider("local").planned_hosts(read, "here")
        self.hosts = ClusterInventory(cluster="demo", hosts=planned)
        self.spec, self.folder = read, folder
        self.kill_at, self.silent, self.inputs = -1, "", [""]
        self.commands: list[str] = []
        key = openssl("genrsa", "-traditional", "2048")
        for name, text in (("ps", "echo 0"), ("kubectl", "printf ok")):
            path = folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        for plane in self.names:
            for part in ("pki", "gcluster", "manifests"):
                (folder / plane / part).mkdir(parents=True)
            self.file(plane, "pki/sa.key").write_text(key)
            self.file(plane, "pki/sa.pub").write_text(openssl("pkey", "-pubout", given=key))
            for name in ("kube-apiserver", "kube-controller-manager"):
                self.file(plane, f"manifests/{name}.yaml").write_text("metadata:\n  name: one\n")
                later = time.time() + 0.1
                os.utime(self.file(plane, f"manifests/{name}.yaml"), (later, later))

    @property
    def names(self) -> list[str]:
        """Return the control planes."""
        return [host.name for host in self.hosts.with_role("controller")]

    def file(self, plane: str, name: str) -> Path:
        """Return a file below a control plane's /etc/kubernetes."""
        return self.folder / plane / name

    def signs(self, plane: str) -> str:
        """Return the public part of the key that a control plane signs by."""
        return openssl("pkey", "-pubout", given=self.file(plane, "pki/sa.key").read_text())

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Any:
        """Run the program as if on a control plane, and look at all keys after it."""
        assert timeout_s
        if len(self.commands) == self.kill_at:
            raise Killed
        if host.name == self.silent:
            return Unreachable(reason="no route to host")
        assert command.startswith(TOOL)
        self.commands.append(f"{host.name}{command.removeprefix(TOOL)}")
        self.inputs.append(stdin or "")
        environment = {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "GCLUSTER_KUBERNETES": str(self.folder / host.name),
        }
        words = [sys.executable, str(PROGRAM), *command.removeprefix(TOOL).split()]
        done = subprocess.run(
            words, env=environment, input=stdin or "", capture_output=True, text=True, check=False
        )
        signers = {self.signs(plane) for plane in self.names}
        for plane in self.names:
            verify = self.file(plane, "pki/sa.pub").read_text()
            assert all(key in verify for key in signers), (plane, command)
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def rotate(self) -> Any:
        """Rotate."""
        run: Any = SimpleNamespace(cluster=SimpleNamespace(name="demo", spec=self.spec))
        return rotate_service_accounts(run, self.hosts, self, silent)

    def signs_since(self, hours: float) -> None:
        """Let all have signed by their key for so long."""
        before = time.time() - hours * 3600
        for plane in self.names:
            os.utime(self.file(plane, "pki/sa.key"), (before, before))

    def is_done(self, before: str) -> bool:
        """Return whether all sign by one new key, and verify by it and the one before."""
        signers = {self.signs(plane) for plane in self.names}
        (now,) = signers
        for plane in self.names:
            keys = [self.file(plane, f"pki/{name}") for name in ("sa.key", "sa.pub")]
            assert [path.stat().st_mode & 0o777 for path in keys] == [0o600, 0o644]
            assert keys[1].read_text() == now + before
            assert not self.file(plane, "gcluster/sa-next.key").exists()
            newest = max(path.stat().st_mtime for path in keys)
            for name in ("kube-apiserver", "kube-controller-manager"):
                manifest = self.file(plane, f"manifests/{name}.yaml")
                assert "gcluster.local/restarted" in manifest.read_text()
                assert manifest.stat().st_mtime >= newest
        return now != before


@pytest.fixture
def planes(tmp_path: Path) -> Planes:
    return Planes(tmp_path)


def test_each_verifies_by_the_new_key_before_one_signs_by_it(planes: Planes) -> None:
    before = planes.signs("head")
    assert planes.rotate().exit_code is Exit.OK
    assert planes.is_done(before)
    assert len(planes.commands) == COMMANDS
    turns = [f"{name} --add" for name in planes.names] + [f"{n} --use" for n in planes.names]
    assert planes.commands[4:] == turns


def test_the_key_before_verifies_until_the_next_rotation(planes: Planes) -> None:
    first = planes.signs("head")
    planes.rotate()
    second = planes.signs("head")
    planes.signs_since(hours=2)
    planes.rotate()
    assert planes.is_done(second)
    assert first not in planes.file("head002", "pki/sa.pub").read_text()


def test_no_key_is_dropped_while_pods_may_hold_its_tokens(planes: Planes) -> None:
    planes.rotate()
    second = planes.signs("head")
    looked_at = len(planes.commands) + len(planes.names)
    with pytest.raises(LifecycleError, match="may still hold tokens") as error:
        planes.rotate()
    (told,) = error.value.diagnostics
    assert (told.code, told.hint.split(":")[0]) == ("GC1033", "the same command in 63 min")
    assert len(planes.commands) == looked_at
    assert planes.signs("head003") == second


@pytest.mark.parametrize("at", [3, 4, 6, 7, 9])
def test_a_rotation_that_was_killed_goes_on_with_its_key(planes: Planes, at: int) -> None:
    before = planes.signs("head")
    planes.kill_at = at
    with pytest.raises(Killed):
        planes.rotate()
    next_keys = [planes.file(name, "gcluster/sa-next.key") for name in planes.names]
    begun = {openssl("pkey", "-pubout", given=k.read_text()) for k in next_keys if k.exists()}
    begun |= {planes.signs(plane) for plane in planes.names} - {before}
    assert len(begun) == int(at > 3)  # the fourth command makes it
    planes.kill_at = -1
    assert planes.rotate().exit_code is Exit.OK
    assert planes.is_done(before)
    assert not begun or planes.signs("head") in begun


def test_nothing_is_changed_where_a_control_plane_is_silent(planes: Planes) -> None:
    before, planes.silent = planes.signs("head"), "head003"
    with pytest.raises(LifecycleError, match="head003 doesn't take another key: no route") as error:
        planes.rotate()
    assert error.value.diagnostics[0].code == "GC999"
    assert {planes.file(name, "pki/sa.pub").read_text() for name in planes.names} == {before}


def test_keys_are_in_no_command(planes: Planes) -> None:
    planes.rotate()
    assert "PRIVATE KEY" in "".join(planes.inputs)
    assert not any("KEY" in command for command in planes.commands)


def test_a_cluster_of_slurm_has_none(tmp_path: Path) -> None:
    planes = Planes(tmp_path, SLURM)
    with pytest.raises(LifecycleError, match="no control planes of Kubernetes"):
        planes.rotate()
