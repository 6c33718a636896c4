#!/usr/bin/python3
"""Print how long the certificates of this control plane are valid, and renew them in time.

usage: kubernetes-certificates.py           prints {path: days left} of all but the authorities'
       kubernetes-certificates.py --renew   renews all when one has less than 60 days left, and
                                            restarts what reads them; prints what it did

The timer kubernetes-certificates runs the second one each week: it needs no one's time, and an
upgrade of Kubernetes renews them anyway.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

PKI = Path("/etc/kubernetes/pki")
CONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")
RENEWED_BELOW_DAYS = 60
MANIFESTS = Path("/etc/kubernetes/manifests")
READERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_DAY_S = 86400


def main() -> None:
    """Print the days left, or renew."""
    left = days_left()
    if "--renew" not in sys.argv:
        print(json.dumps(left))
        return
    low = sorted(name for name, days in left.items() if days < RENEWED_BELOW_DAYS)
    if not low:
        return
    done = subprocess.run(
        ["kubeadm", "certs", "renew", "all"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"kubeadm certs renew failed: {done.stderr.strip()[-400:]}")
    for reader in READERS:
        restart(MANIFESTS / f"{reader}.yaml")
    print(f"renewed, since they would have run out soon: {', '.join(low)}")


def days_left() -> dict[str, int]:
    """Return path -> whole days left of this host's certificates, but not the authorities'."""
    files = [p for p in sorted(PKI.rglob("*.crt")) if not p.name.endswith("ca.crt")]
    found = {str(p): p.read_text() for p in files}
    for name in CONFIGS:
        path = Path("/etc/kubernetes") / name
        if path.exists():
            found[str(path)] = embedded(path)
    return {name: remaining(text) for name, text in found.items()}


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


def restart(manifest: Path) -> None:
    """Restart a static pod: the kubelet does so when its manifest goes and comes back."""
    if not manifest.exists():
        return
    away = Path("/etc/kubernetes/gcluster") / manifest.name
    manifest.rename(away)
    time.sleep(22)  # the kubelet looks every 20 s
    away.rename(manifest)


main()
