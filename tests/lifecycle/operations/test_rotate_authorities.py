"""Authorities are exchanged: at no time does anyone meet a certificate that they don't trust.

The programs of role kubernetes run, over folders of three control planes and a node.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession, Unreachable
from gcluster.lifecycle.nodes.ssh.arguments import AS_ROOT
from gcluster.lifecycle.operations.rotate import authorities
from gcluster.lifecycle.operations.rotate.authorities import rotate_authorities
from gcluster.schemas.load import load_text
from gcluster.stacks.registry import provider

from . import authorities_double as double
from .test_rotate_service_accounts import SLURM, SPEC, Killed

PROGRAMS = Path(__file__).parents[3] / "roles/kubernetes/files/libexec"
NAMES = ("ca", "front-proxy-ca", "etcd/ca")


class Fleet(SshSession):
    """Control planes and nodes as folders, and the certificates by which they talk."""

    def __init__(self, folder: Path, spec: str = SPEC) -> None:
        """Make the cluster as kubeadm leaves it."""
        super().__init__(folder)
        read = load_text(spec).spec
        assert read is not None
        planned = provider("local").planned_hosts(read, "here")
        self.hosts = ClusterInventory(cluster="demo", hosts=planned)
        self.spec, self.folder = read, folder
        self.kill_at, self.silent = -1, ""
        self.commands: list[str] = []
        self.pods: list[Any] = []
        self.turn = threading.RLock()
        self.api = folder / "api"
        for name in ("api", "bin"):
            (folder / name).mkdir()
        scripts = {name: f"#!/bin/sh\n{text}\n" for name, text in double.PROGRAMS.items()}
        scripts["double"] = f"#!{sys.executable}\n{Path(double.__file__).read_text()}"
        for name, text in scripts.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        self.planes = [host.name for host in self.hosts.with_role("controller")]
        self.workers = [h.name for h in self.hosts.hosts if h.name not in self.planes]
        self._lay_down()

    def _lay_down(self) -> None:
        made = {}
        for name in NAMES:
            key, text = double.private_key()
            named = double.subject(name)
            made[name] = double.signed(None, named, key, key.public_key()), text
        (self.api / "leader").write_text(str(self.folder / self.planes[-1]))
        (self.api / "cluster-info").write_text(double.config(made["ca"][0]))
        (self.api / "extension").write_text(made["ca"][0] + made["front-proxy-ca"][0])
        flag = "    - --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt\n"
        for host in (*self.planes, *self.workers):
            root = self.folder / host
            for part in ("pki/etcd", "gcluster", "manifests", "kubelet/pki"):
                (root / part).mkdir(parents=True)
            (root / "pki/ca.crt").write_text(made["ca"][0])
            (root / "kubelet.conf").write_text(double.config(made["ca"][0]))
        for host in self.planes:
            root = self.folder / host
            for name, (certificate, text) in made.items():
                (root / f"pki/{name}.crt").write_text(certificate)
                (root / f"pki/{name}.key").write_text(text)
            double.renew(root)
            for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
                manifest = root / f"manifests/{name}.yaml"
                manifest.write_text(f"metadata:\n  name: {name}\nspec:\n{flag}")
                later = time.time() + 0.1
                os.utime(manifest, (later, later))
        for host in (*self.planes, *self.workers):
            held = self.folder / host / "kubelet"
            key, text = double.private_key()
            named = double.subject(f"system:node:{host}", "system:nodes")
            mine = double.cluster_signs(self.api, named, key.public_key()) + text
            (held / "pki/first.pem").write_text(mine)
            (held / "pki/kubelet-client-current.pem").symlink_to(held / "pki/first.pem")
            double.serve(self.api, held)

    def text(self, host: str, name: str) -> str:
        """Return a file below a host's /etc/kubernetes."""
        return (self.folder / host / name).read_text()

    def first(self, host: str = "head", name: str = "ca") -> str:
        """Return the authority that signs on a control plane."""
        return double.authority_of(self.folder / host, name)[0]

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Any:
        """Run a program as if on a host, and see after it whether all trust each other."""
        assert timeout_s
        with self.turn:  # of nodes that are given something at once
            return self._run(host, command, stdin)

    def _run(self, host: Host, command: str, stdin: str | None) -> Any:
        if len(self.commands) == self.kill_at:
            raise Killed
        if host.name == self.silent:
            return Unreachable(reason="no route to host")
        line = command.removeprefix(AS_ROOT)
        words = line.replace("/usr/local/libexec/gcluster", str(PROGRAMS)).split()
        if "kubectl" in words:
            return SshResult(returncode=0, stdout=json.dumps(self._objects(words)), stderr="")
        self.commands.append(f"{host.name} {Path(words[-1]).name}")
        if words[0] == "cat":
            return SshResult(returncode=0, stdout=self.text(host.name, "pki/ca.crt"), stderr="")
        if words[0] == "test":
            return SshResult(returncode=0, stdout="", stderr="")
        done = self.program(host.name, *words, stdin=stdin)
        assert "PRIVATE" not in command
        self.all_trust_each_other(command)
        return done

    def program(self, host: str, program: str, *words: str, stdin: str | None = None) -> Any:
        """Run a program of the role on a host."""
        root = self.folder / host
        environment = {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "GCLUSTER_KUBERNETES": str(root),
            "GCLUSTER_KUBELET": str(root / "kubelet"),
            "GCLUSTER_API": str(self.api),
            "DOUBLE": str(self.folder / "bin/double"),
        }
        run = [sys.executable, program, *words]
        done = subprocess.run(
            run, env=environment, input=stdin or "", capture_output=True, text=True, check=False
        )
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def _objects(self, words: list[str]) -> Any:
        spaces = [{"metadata": {"name": "kube-system"}, "status": {"phase": "Active"}}]
        written = [{"time": "2026-11-29T12:00:00Z"}]
        told = {
            "metadata": {"namespace": "kube-system", "managedFields": written},
            "data": {"ca.crt": self.text(self.planes[-1], "pki/ca.crt")},
        }
        kinds = {"namespaces": spaces, "configmaps": [told], "pods": self.pods}
        return {"items": next(found for kind, found in kinds.items() if kind in words)}

    def _meetings(self) -> Iterator[tuple[str, str, str]]:
        """Yield who shows a certificate to whom, the certificate, and what that one trusts."""
        everyone = [*self.planes, *self.workers]
        for one in self.planes:
            for name, by in double.LEAVES.items():
                for other in self.planes:
                    trusted = self.text(other, f"pki/{by}.crt")
                    yield f"{one} {name} to {other}", self.text(one, f"pki/{name}.crt"), trusted
            for other in everyone:
                shown = self.text(one, "pki/apiserver.crt")
                yield (
                    f"{one} to {other}'s kubelet",
                    shown,
                    _trusted(self.text(other, "kubelet.conf")),
                )
                client = self.text(one, "pki/apiserver-kubelet-client.crt")
                yield f"{one}'s client to {other}", client, self.text(other, "pki/ca.crt")
            for other in self.planes:
                for name in double.CONFIGS:
                    config = self.text(other, name)
                    yield f"{one} to {other}'s {name}", shown, _trusted(config)
                    mine = _decoded(config, "client-certificate-data")
                    yield f"{other}'s {name} to {one}", mine, self.text(one, "pki/ca.crt")
            for other in everyone:
                for name in ("client", "server"):
                    held = self.text(other, f"kubelet/pki/kubelet-{name}-current.pem")
                    yield f"{other}'s {name} to {one}", held, self.text(one, "pki/ca.crt")
            yield f"{one} to who joins", shown, _trusted((self.api / "cluster-info").read_text())

    def all_trust_each_other(self, after: str) -> None:
        """See that each certificate is by an authority that those who meet it trust."""
        for what, shown, trusted in self._meetings():
            certificate = x509.load_pem_x509_certificate(shown.encode())
            assert any(_is_by(certificate, one) for one in double.CERTIFICATE.findall(trusted)), (
                f"after {after}: {what}"
            )

    def rotate(self, *, now: bool = False) -> Any:
        """Rotate."""
        run: Any = SimpleNamespace(cluster=SimpleNamespace(name="demo", spec=self.spec))
        return rotate_authorities(run, self.hosts, self, silent, now=now)

    def is_done(self, before: dict[str, str]) -> bool:
        """Return whether all certificates are by others than before, whom no one trusts."""
        files = [p for p in self.folder.rglob("*") if p.is_file() and p.suffix != ".key"]
        coded = {base64.b64encode(text.encode()).decode() for text in before.values()}
        for path in files:
            text = path.read_text(errors="replace")
            assert not [one for one in (*before.values(), *coded) if one in text], path
        for plane in self.planes:
            root = self.folder / plane
            assert not (root / "gcluster/authorities-next").exists()
            assert not (root / "pki/signing-ca.crt").exists()
            assert [p.stat().st_mode & 0o777 for p in root.rglob("pki/*ca.key")] == [0o600] * 2
            newest = max(path.stat().st_mtime for path in root.rglob("pki/**/*.crt"))
            for manifest in (root / "manifests").iterdir():
                assert manifest.stat().st_mtime >= newest, manifest
                assert (
                    "cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt" in manifest.read_text()
                )
        marks = list(self.folder.rglob("restarts-kubelet"))
        same = {self.first(plane) for plane in self.planes}
        return not marks and len(same) == 1 and same != {before["ca"]}


def _decoded(config: str, field: str) -> str:
    return base64.b64decode(re.findall(rf"{field}: (\S+)", config)[0]).decode()


def _trusted(config: str) -> str:
    return _decoded(config, "certificate-authority-data")


def _is_by(certificate: x509.Certificate, authority: str) -> bool:
    try:
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.encode()))
    except Exception:  # noqa: BLE001  # whatever is wrong, it isn't by that one
        return False
    return True


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(authorities, "_nodes", lambda _, hosts: list(hosts.hosts))
    return Fleet(tmp_path)


def before(fleet: Fleet) -> dict[str, str]:
    return {name: fleet.first(name=name) for name in NAMES}


def test_everyone_trusts_the_new_ones_before_one_signs_by_them(fleet: Fleet) -> None:
    old = before(fleet)
    assert fleet.rotate().exit_code is Exit.OK
    assert fleet.is_done(old)
    turns = [c for c in fleet.commands if c.startswith("head") and "--" in c]
    planes = fleet.planes
    assert turns == [
        "head --make",
        *(f"{name} --trust" for name in planes),
        *(f"{name} --use" for name in planes),
        *(f"{name} --certificates" for name in planes),
        *(f"{name} --drop" for name in planes),
    ]


@pytest.mark.parametrize("at", [8, 12, 14, 18, 24])
def test_a_rotation_that_was_killed_goes_on_with_the_same_authorities(
    fleet: Fleet, at: int
) -> None:
    old, fleet.kill_at = before(fleet), at
    with pytest.raises(Killed):
        fleet.rotate()
    kept = fleet.folder.rglob("authorities.json")
    begun = {json.loads(path.read_text())["ca"][0] for path in kept}
    assert len(begun) == 1
    fleet.kill_at = -1
    assert fleet.rotate().exit_code is Exit.OK
    assert fleet.is_done(old)
    assert fleet.first() in begun


def test_pods_of_before_are_waited_for_while_both_are_trusted(fleet: Fleet) -> None:
    old = before(fleet)
    token = {"projected": {"sources": [{"serviceAccountToken": {}}]}}
    meta = {"namespace": "kube-system", "name": "long"}
    status = {"phase": "Running", "startTime": "2026-11-29T11:00:00Z"}
    fleet.pods = [{"metadata": meta, "spec": {"volumes": [token]}, "status": status}]
    first = fleet.rotate()
    assert (first.exit_code, first.changed) == (Exit.PENDING, ())
    assert list(first.waits_for) == ["kube-system/long"]
    assert before(fleet) == old
    assert fleet.rotate().exit_code is Exit.PENDING
    assert fleet.rotate(now=True).exit_code is Exit.OK
    assert fleet.is_done(old)


def test_nothing_is_changed_where_a_node_is_silent(fleet: Fleet) -> None:
    fleet.silent = fleet.workers[0]
    with pytest.raises(LifecycleError, match="no route to host") as error:
        fleet.rotate()
    assert error.value.diagnostics[0].code == "GC999"
    assert not [command for command in fleet.commands if "--" in command]


def test_a_cluster_of_slurm_has_none(tmp_path: Path) -> None:
    read = load_text(SLURM).spec
    assert read is not None
    hosts = ClusterInventory(cluster="demo", hosts=provider("local").planned_hosts(read, "here"))
    run: Any = SimpleNamespace(cluster=SimpleNamespace(name="demo", spec=read))
    with pytest.raises(LifecycleError, match="no control planes of Kubernetes"):
        rotate_authorities(run, hosts, SshSession(tmp_path), silent)


def test_a_backup_has_the_authority_that_signs_alone_and_fits_while_both_are_trusted(
    fleet: Fleet,
) -> None:
    old, fleet.kill_at = before(fleet), 12
    with pytest.raises(Killed):
        fleet.rotate()
    state: dict[str, Any] = {"__name__": "state"}
    text = (PROGRAMS / "kubernetes-state.py").read_text().rpartition("\nmain()")[0]
    exec(compile(text, "kubernetes-state.py", "exec"), state)  # noqa: S102  # a program of ours
    two = fleet.text("head", "pki/ca.crt").encode()
    assert len(double.CERTIFICATE.findall(two.decode())) == 2
    assert state["signing"](two) == old["ca"].encode()
    key = fleet.text("head", "pki/ca.key").encode()
    assert state["signing"](key) == key


def test_meanwhile_no_control_plane_joins_and_none_is_made_of_other_settings(
    fleet: Fleet,
) -> None:
    fleet.kill_at = 12
    with pytest.raises(Killed):
        fleet.rotate()
    text = (PROGRAMS / "kubernetes-upgrade.py").read_text()
    text = text.replace('"/etc/kubernetes', f'"{fleet.folder / "head"}')
    (fleet.folder / "head/gcluster/kubeadm.yaml").write_text("other: settings\n")
    words = [sys.executable, "-c", text, "--settings"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "gcluster rotate certificate-authority goes on" in done.stderr
