#!/usr/bin/python3
"""Have this host's kubelet trust other certificate authorities, and be certified by the first one.

usage: kubernetes-node-authority.py                 reads the certificates to trust (PEM)
       kubernetes-node-authority.py --certificates  the same; its own two are made again by the
                                                    first one

Pods go on while a kubelet restarts, for which its node is not ready for some seconds. Its client's
certificate it requests itself, by the one before, as at each renewal; that by which it serves it
requests where it has none. May be killed at any point, and run again: what was written is read, for
the mark restarts-kubelet lasts until it was.

GCLUSTER_KUBERNETES and GCLUSTER_KUBELET replace /etc/kubernetes and /var/lib/kubelet in a test.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

ROOT = Path(os.environ.get("GCLUSTER_KUBERNETES", "/etc/kubernetes"))
HELD = Path(os.environ.get("GCLUSTER_KUBELET", "/var/lib/kubelet")) / "pki"
AUTHORITY, CONFIG = ROOT / "pki/ca.crt", ROOT / "kubelet.conf"
MARK = ROOT / "gcluster/restarts-kubelet"
CLIENT, SERVER = HELD / "kubelet-client-current.pem", HELD / "kubelet-server-current.pem"
KUBECTL = ["kubectl", f"--kubeconfig={CONFIG}"]
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", re.DOTALL)
LIMIT_S, AGAIN_S = 240, 2
"""A controller manager that signed by the authority before may still be at its end."""


def main() -> None:
    """Bring trust and certificates to what they are to be, and have them read."""
    bundle = "".join(_CERTIFICATE.findall(sys.stdin.read()))
    if not bundle:
        sys.exit("no certificate was given")
    lay(AUTHORITY, bundle, 0o644)
    encoded = base64.b64encode(bundle.encode()).decode()
    config = re.sub(r"(certificate-authority-data: )\S+", rf"\g<1>{encoded}", CONFIG.read_text())
    lay(CONFIG, config, 0o600)
    if "--certificates" in sys.argv:
        if not is_by(CLIENT, bundle):
            wait("signed by the new authority", lambda: requested(bundle))
        if SERVER.exists() and not is_by(SERVER, bundle):
            MARK.touch()
            SERVER.unlink()
    read_again()
    if "--certificates" in sys.argv:
        wait("signed to serve by", lambda: SERVER.exists() and is_by(SERVER, bundle))


def requested(bundle: str) -> bool:
    """Request a certificate, and take it where it is by the first authority."""
    named = names_of(CLIENT)
    subject = f"/O={named['O']}/CN={named['CN']}"
    with TemporaryDirectory() as scratch:
        key = Path(scratch, "key")
        key.touch(mode=0o600)
        key.write_text(openssl("genpkey", "-algorithm", "EC", "-pkeyopt",
                               "ec_paramgen_curve:P-256"))  # fmt: skip
        request = openssl("req", "-new", "-key", str(key), "-subj", subject)
        certificate = signed(request)
        made = HELD / f"kubelet-client-{datetime.now(timezone.utc):%Y-%m-%d-%H-%M-%S}.pem"
        fresh = HELD / ".kubelet-client.new"
        write(fresh, certificate + key.read_text(), 0o600)
        if not is_by(fresh, bundle):
            fresh.unlink()
            return False
    MARK.touch()
    fresh.rename(made)
    link = HELD / ".kubelet-client-current.new"
    link.unlink(missing_ok=True)
    link.symlink_to(made)
    link.rename(CLIENT)
    return True


def signed(request: str) -> str:
    """Return the certificate of a request, which a node may make for itself; "": not yet."""
    wish = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(request.encode()).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
        },
    }
    name = kubectl("create", "--filename=-", "--output=name", given=json.dumps(wish)).strip()
    for _ in range(10 if name else 0):
        coded = kubectl("get", name, "--output=jsonpath={.status.certificate}")
        if coded:
            return base64.b64decode(coded).decode()
        time.sleep(1)
    return ""


def is_by(path: Path, bundle: str) -> bool:
    """Return whether a certificate is by the first one of a bundle."""
    with NamedTemporaryFile("w") as first:
        first.write(_CERTIFICATE.findall(bundle)[0])
        first.flush()
        words = ["openssl", "verify", "-CAfile", first.name, str(path)]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0


def read_again() -> None:
    """Restart the kubelet, where it has not read what was written, until the API takes it."""
    if not MARK.exists():
        return
    began = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    done = subprocess.run(
        ["systemctl", "restart", "kubelet"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"the kubelet does not restart: {done.stderr.strip()[-400:]}")
    wait("ready", lambda: is_ready(began))
    MARK.unlink()


def is_ready(since: str) -> bool:
    """Return whether the kubelet has reported a ready node since then."""
    name = names_of(CLIENT)["CN"].rpartition(":")[2]
    ready = '{.status.conditions[?(@.type=="Ready")]'
    fields = f"--output=jsonpath={ready}.status}} {ready}.lastHeartbeatTime}}"
    status, _, at = kubectl("get", "node", name, fields).partition(" ")
    return status == "True" and at >= since


def names_of(path: Path) -> dict[str, str]:
    """Return the parts of a certificate's subject."""
    subject = openssl("x509", "-in", str(path), "-noout", "-subject", "-nameopt", "RFC2253")
    return dict(re.findall(r"(CN|O)=([^,\s]+)", subject))


def wait(what: str, holds: Callable[[], bool]) -> None:
    """Wait until it holds; end where it doesn't in time."""
    until = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"the kubelet is not {what} after {LIMIT_S} s: journalctl -u kubelet")
        time.sleep(AGAIN_S)


def kubectl(*words: str, given: str = "") -> str:
    """Return what the API answers to this node; "" where it doesn't."""
    done = subprocess.run(
        [*KUBECTL, *words], input=given, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def openssl(*words: str) -> str:
    """Return the output of openssl; end with its message where it fails."""
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"openssl {words[0]}: {done.stderr.strip()[-400:]}")
    return done.stdout


def lay(path: Path, text: str, mode: int) -> None:
    """Write a file that the kubelet reads, unless it is so."""
    if path.read_text() != text:
        MARK.touch()
        write(path, text, mode)


def write(path: Path, text: str, mode: int) -> None:
    """Replace a file as a whole."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    fresh.rename(path)


main()
