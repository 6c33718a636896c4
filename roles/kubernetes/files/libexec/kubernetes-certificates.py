#!/usr/bin/python3
"""Print how long the certificates of this control plane are valid, and renew them in time.

usage: kubernetes-certificates.py           prints {path: days left} of all but the authorities'
       kubernetes-certificates.py --renew   renews all when one has less than 60 days left, and
                                            restarts what reads them; prints what it did
       kubernetes-certificates.py --keys    restarts what reads the keys of secrets at rest and of
                                            service accounts, where one is younger than its
                                            manifest; prints what it did
       kubernetes-certificates.py --authorities
                                            makes all certificates again where one isn't by the
                                            first certificate of its authority's file, and restarts
                                            what reads them; prints what it did

The timer kubernetes-certificates runs the second one each week, which renews nothing while the
authorities are exchanged (kubernetes-authorities.py): an upgrade of Kubernetes renews them anyway.
It may be killed at any point: what kubeadm had begun to write is restored first, what reads a
certificate is restarted as long as its manifest is older, and a manifest is replaced whole, by one
of which an annotation differs.

GCLUSTER_KUBERNETES replaces /etc/kubernetes where a test has another folder.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(os.environ.get("GCLUSTER_KUBERNETES", "/etc/kubernetes"))
PKI = ROOT / "pki"
CONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")
RENEWED_BELOW_DAYS = 60
MANIFESTS = ROOT / "manifests"
ASIDE = ROOT / "gcluster"
"""On the same file system, and outside of the kubelet's folder."""
BEFORE = ASIDE / "certificates-before"
"""Copies of what a renewal writes, while it lasts."""
EXCHANGED = ASIDE / "authorities-next"
"""There while the authorities are exchanged."""
READERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-vip")
KEYS = {
    "kube-apiserver": (ASIDE / "encryption.yaml", PKI / "sa.key", PKI / "sa.pub"),
    "kube-controller-manager": (PKI / "sa.key",),
}
"""Static pod -> the keys that it reads when it starts."""
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", re.DOTALL)
RESTARTED = "gcluster.local/restarted"
_READY_WITHIN_S = 240
"""The kubelet reads its manifests every 20 s, and waits for a pod that ends for 30 s."""


def main() -> None:
    """Print the days left, or renew."""
    if "--keys" in sys.argv:
        read_keys()
        return
    if "--authorities" in sys.argv:
        put_back()
        reissue()
        read_again([*PKI.rglob("*.crt"), *holders()])
        return
    if "--renew" not in sys.argv:
        print(json.dumps(days_left()))
        return
    put_back()
    low = sorted(name for name, days in days_left().items() if days < RENEWED_BELOW_DAYS)
    if low and not EXCHANGED.exists():
        renew()
        print(f"renewed, since they would have run out soon: {', '.join(low)}")
    read_again(holders())


def read_again(files: list[Path]) -> None:
    """Restart what reads certificates, where one of these files is younger than its manifest."""
    newest = max((path.stat().st_mtime for path in files), default=0.0)
    restarted = [name for name in READERS if restart(MANIFESTS / f"{name}.yaml", newest)]
    if restarted:
        print(f"restarted, to read their certificates: {', '.join(restarted)}")
        wait_until_ready("kube-apiserver", "etcd")


def reissue() -> None:
    """Have certificates be by the first of an authority's file, and kubeconfigs trust all."""
    if not all(is_issued(path) for path in holders()):
        renew()
        print("made all certificates again")
    trusted = base64.b64encode((PKI / "ca.crt").read_bytes()).decode()
    for config in (ROOT / name for name in CONFIGS):
        if not config.exists():
            continue
        text = config.read_text()
        made = re.sub(r"(certificate-authority-data: )\S+", rf"\g<1>{trusted}", text)
        if made != text:  # kubeadm writes the first one alone
            fresh = ASIDE / f".{config.name}.new"
            fresh.touch(mode=0o600)
            fresh.write_text(made)
            fresh.rename(config)


def is_issued(path: Path) -> bool:
    """Return whether a certificate is by the first one in its authority's file."""
    relative = path.relative_to(ROOT).as_posix()
    of_etcd = "etcd" in relative
    name = "etcd/ca" if of_etcd else "front-proxy-ca" if "front-proxy" in relative else "ca"
    text = path.read_text() if path.suffix == ".crt" else embedded(path)
    with tempfile.NamedTemporaryFile("w", dir=ASIDE) as authority:
        authority.write(_CERTIFICATE.findall((PKI / f"{name}.crt").read_text())[0])
        authority.flush()
        words = ["openssl", "verify", "-CAfile", authority.name]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0


def read_keys() -> None:
    """Have keys be read, which is done at a start alone."""
    restarted = []
    for name, files in KEYS.items():
        newest = max((path.stat().st_mtime for path in files if path.exists()), default=0.0)
        if restart(MANIFESTS / f"{name}.yaml", newest):
            restarted.append(name)
    if restarted:
        print(f"restarted, to read their keys: {', '.join(restarted)}")
        wait_until_ready(*(name for name in restarted if name == "kube-apiserver"))


def renew() -> None:
    """Have kubeadm renew everything, or leave everything as it was: it replaces no file whole."""
    copying = BEFORE.with_suffix(".new")
    shutil.rmtree(copying, ignore_errors=True)
    copying.mkdir(mode=0o700)
    for path in renewed_files():
        kept = copying / path.relative_to(ROOT)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, kept)
    copying.rename(BEFORE)
    done = subprocess.run(
        ["kubeadm", "certs", "renew", "all"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        put_back()
        sys.exit(f"kubeadm certs renew failed: {done.stderr.strip()[-400:]}")
    shutil.rmtree(BEFORE)


def renewed_files() -> list[Path]:
    """Return the files that kubeadm writes: certificates, their keys, and kubeconfigs."""
    configs = [ROOT / name for name in (*CONFIGS, "super-admin.conf")]
    return [p for p in (*PKI.rglob("*.crt"), *PKI.rglob("*.key"), *configs) if p.exists()]


def put_back() -> None:
    """Put back what was there before a renewal that came to no end.

    Of an older version of this program that may be a manifest.
    """
    for kept in BEFORE.rglob("*") if BEFORE.exists() else ():
        if kept.is_file():
            made = ASIDE / ".certificate.new"
            shutil.copy2(kept, made)
            made.rename(ROOT / kept.relative_to(BEFORE))
    shutil.rmtree(BEFORE, ignore_errors=True)
    for name in READERS:
        away, manifest = ASIDE / f"{name}.yaml", MANIFESTS / f"{name}.yaml"
        if away.exists() and not manifest.exists():
            away.rename(manifest)


def days_left() -> dict[str, int]:
    """Return path -> whole days left of this host's certificates, but not the authorities'."""
    found = {p: p.read_text() if p.suffix == ".crt" else embedded(p) for p in holders()}
    return {str(path): remaining(text) for path, text in found.items()}


def holders() -> list[Path]:
    """Return the files that hold a certificate of this host, but not the authorities'."""
    files = [p for p in sorted(PKI.rglob("*.crt")) if not p.name.endswith("ca.crt")]
    return files + [path for name in CONFIGS if (path := ROOT / name).exists()]


def embedded(config: Path) -> str:
    """Return the client certificate of a kubeconfig."""
    for line in config.read_text().splitlines():
        key, _, value = line.strip().partition(": ")
        if key == "client-certificate-data":
            return base64.b64decode(value).decode()
    return ""


def remaining(certificate: str) -> int:
    """Return the whole days that a certificate holds; 0 where there is none."""
    done = subprocess.run(
        ["openssl", "x509", "-enddate", "-noout"],
        input=certificate,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return 0
    ends = datetime.strptime(done.stdout.strip().partition("=")[2], "%b %d %H:%M:%S %Y %Z").replace(
        tzinfo=timezone.utc
    )
    return max(0, (ends - datetime.now(timezone.utc)).days)


def restart(manifest: Path, read: float) -> bool:
    """Restart a static pod whose manifest is older than what it reads; return whether that is so.

    The kubelet replaces the pod, since its manifest has another annotation.
    """
    if not manifest.exists() or manifest.stat().st_mtime > read:
        return False
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    made = ASIDE / f".{manifest.name}.new"
    made.touch(mode=0o600)
    made.write_text(annotated(manifest.read_text(), now))
    made.chmod(manifest.stat().st_mode)
    made.rename(manifest)
    return True


def annotated(manifest: str, now: str) -> str:
    """Return the text of a pod's manifest with the annotation, written as its metadata are."""
    if RESTARTED in manifest:
        return re.sub(rf"{RESTARTED}: \"[^\"]*\"", f'{RESTARTED}: "{now}"', manifest)
    entry = f'{RESTARTED}: "{now}"'
    for pattern, text in (
        (r"^metadata: \{", f"metadata: {{annotations: {{{entry}}}, "),
        (r"^  annotations:\n", f"  annotations:\n    {entry}\n"),
        (r"^metadata:\n", f"metadata:\n  annotations:\n    {entry}\n"),
    ):
        changed, count = re.subn(pattern, text, manifest, count=1, flags=re.MULTILINE)
        if count:
            return changed
    sys.exit("a manifest has no metadata: it was left as it is")


def wait_until_ready(*programs: str) -> None:
    """Wait until these have restarted and the API server is ready; the unit fails otherwise."""
    began = time.monotonic()
    while time.monotonic() - began < _READY_WITHIN_S:
        spent = time.monotonic() - began
        if all(younger(program, spent) for program in programs) and is_ready():
            return
        time.sleep(1)
    sys.exit(f"the API server was not ready within {_READY_WITHIN_S} s: journalctl -u kubelet")


def younger(program: str, seconds: float) -> bool:
    """Return whether each process of a program started within so many seconds, or none runs."""
    done = subprocess.run(
        ["ps", "-C", program, "-o", "etimes="], capture_output=True, text=True, check=False
    )
    return all(int(age) <= seconds + 1 for age in done.stdout.split())


def is_ready() -> bool:
    """Return whether the API server here is ready."""
    at = ["--server=https://localhost:6443", f"--kubeconfig={ROOT}/admin.conf"]
    command = ["kubectl", *at, "get", "--raw=/readyz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() == "ok"


main()
