"""Certificates of a control plane are renewed as a whole, wherever the program is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PROGRAM = Path(__file__).parents[2] / "roles/kubernetes/files/libexec/kubernetes-certificates.py"
NAMES = ("apiserver.crt", "front-proxy-client.crt", "etcd/server.crt")
KUBEADM = """#!/bin/sh
cd "$GCLUSTER_KUBERNETES"
echo renew >>asked
case "$KILL" in
  torn) printf -- '-----BEGIN' >pki/apiserver.crt; kill -KILL $PPID; exit ;;
  fails) printf -- '-----BEGIN' >pki/apiserver.crt; echo no >&2; exit 1 ;;
esac
for name in apiserver.crt front-proxy-client.crt etcd/server.crt; do cat new.crt >"pki/$name"; done
[ "$KILL" != renewed ] || kill -KILL $PPID
"""
PS = "#!/bin/sh\necho 0\n"
KUBECTL = "#!/bin/sh\nprintf ok\n"
MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  labels:
    component: {name}
spec: {{}}
"""
VIP = "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-vip, namespace: kube-system}\nspec: {}\n"


def certificate(days: int) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=300))
        .not_valid_after(now + timedelta(days=days, hours=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


class ControlPlane:
    """A folder like /etc/kubernetes, with doubles of kubeadm, ps and kubectl."""

    def __init__(self, folder: Path, days: int) -> None:
        """Write certificates of so many days, and manifests that are younger."""
        self.root, self.bin = folder / "kubernetes", folder / "bin"
        for path in (self.root / "pki/etcd", self.root / "gcluster", self.root / "manifests"):
            path.mkdir(parents=True)
        self.bin.mkdir()
        self.old = certificate(days)
        for name in NAMES:
            self._write(f"pki/{name}", self.old)
        (self.root / "new.crt").write_bytes(certificate(364))
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            self._write(f"manifests/{name}.yaml", MANIFEST.format(name=name).encode(), later=1)
        self._write("manifests/kube-vip.yaml", VIP.encode(), later=1)
        for name, text in (("kubeadm", KUBEADM), ("ps", PS), ("kubectl", KUBECTL)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def _write(self, name: str, content: bytes, later: float = 0) -> None:
        path = self.root / name
        path.write_bytes(content)
        at = time.time() - 3600 + later
        os.utime(path, (at, at))

    def renew(self, kill: str = "", verb: str = "--renew") -> subprocess.CompletedProcess[str]:
        """Run what the timer runs, or what a rotation of keys runs."""
        environment = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "GCLUSTER_KUBERNETES": str(self.root),
            "KILL": kill,
        }
        command = ["python3", str(PROGRAM), verb]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def restarted(self) -> set[str]:
        """Return the static pods whose manifest has another annotation than before."""
        manifests = (self.root / "manifests").iterdir()
        return {path.stem for path in manifests if "gcluster.local/restarted" in path.read_text()}

    def is_old(self) -> bool:
        """Return whether every certificate is the old one."""
        return all((self.root / "pki" / name).read_bytes() == self.old for name in NAMES)


ALL = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-vip"}


def test_certificates_that_hold_for_long_are_left_alone(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, days=90)
    done = plane.renew()
    assert (done.returncode, done.stdout) == (0, "")
    assert plane.restarted() == set()
    assert not (plane.root / "asked").exists()


def test_what_reads_renewed_certificates_is_restarted_once(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, days=30)
    done = plane.renew()
    assert done.returncode == 0, done.stderr
    assert plane.restarted() == ALL
    assert sorted((plane.root / "gcluster").iterdir()) == []
    manifest = plane.root / "manifests/kube-vip.yaml"
    assert re.search(
        r'^metadata: \{annotations: \{gcluster.local/restarted: "[^"]+"\}, name: kube-vip, ',
        manifest.read_text(),
        re.MULTILINE,
    )
    before = manifest.read_bytes()
    assert plane.renew().stdout == ""
    assert manifest.read_bytes() == before


def test_nothing_is_renewed_while_the_authorities_are_exchanged(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, days=30)
    (plane.root / "gcluster/authorities-next").mkdir()
    done = plane.renew()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert plane.is_old()


@pytest.mark.parametrize("kill", ["torn", "renewed"])
def test_a_renewal_that_was_killed_is_done_by_the_next(tmp_path: Path, kill: str) -> None:
    plane = ControlPlane(tmp_path, days=30)
    assert plane.renew(kill).returncode == -signal.SIGKILL
    assert plane.restarted() == set()
    done = plane.renew()
    assert done.returncode == 0, done.stderr
    assert plane.restarted() == ALL
    assert not plane.is_old()
    assert (plane.root / "pki/apiserver.crt").read_bytes() == (plane.root / "new.crt").read_bytes()


def test_where_kubeadm_fails_everything_is_as_before(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, days=30)
    done = plane.renew("fails")
    assert (done.returncode, done.stderr.strip()) == (1, "kubeadm certs renew failed: no")
    assert plane.is_old()
    assert plane.restarted() == set()


def test_a_manifest_that_was_away_comes_back(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, days=90)
    away = plane.root / "gcluster/kube-apiserver.yaml"
    (plane.root / "manifests/kube-apiserver.yaml").rename(away)
    assert plane.renew().returncode == 0
    assert (plane.root / "manifests/kube-apiserver.yaml").exists()


def test_other_keys_of_secrets_at_rest_are_read_by_the_api_server_alone_and_once(
    tmp_path: Path,
) -> None:
    plane = ControlPlane(tmp_path, days=90)
    assert plane.renew(verb="--keys").stdout == ""  # nothing is encrypted
    keys = plane.root / "gcluster/encryption.yaml"
    keys.write_text("one")
    os.utime(keys, (time.time() - 7200,) * 2)
    assert plane.renew(verb="--keys").stdout == ""
    keys.write_text("two")
    done = plane.renew(verb="--keys")
    assert (done.returncode, done.stderr) == (0, "")
    assert plane.restarted() == {"kube-apiserver"}
    assert plane.renew(verb="--keys").stdout == ""
