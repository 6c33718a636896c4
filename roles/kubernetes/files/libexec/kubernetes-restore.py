#!/usr/bin/python3
"""Have the control plane begin again from a snapshot of etcd. What was written since is lost.

usage: kubernetes-restore.py [SNAPSHOT]   default: the newest in /var/lib/gcluster/etcd-snapshots

With one control plane this is all. With several: stop etcd on the others (move their
/etc/kubernetes/manifests/etcd.yaml away), restore here, then `kubeadm reset` the others and
converge: they join as new members. The data there was stays beside the new, as data.before-DATE.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

SNAPSHOTS = Path("/var/lib/gcluster/etcd-snapshots")
MANIFESTS = Path("/etc/kubernetes/manifests")
STOPPED = Path("/etc/kubernetes/gcluster/stopped")
DATA = Path("/var/lib/etcd/data")
PARTS = ("kube-apiserver.yaml", "etcd.yaml")
TOOL = "/usr/local/libexec/gcluster/kubernetes-etcd.sh"
LIMIT_S = 180


def main() -> None:
    """Stop what uses etcd, put the snapshot's data in place, and start again."""
    snapshot = Path(sys.argv[1]) if sys.argv[1:] else max(SNAPSHOTS.glob("*.db"), default=None)
    if snapshot is None or not snapshot.is_file():
        sys.exit(f"there is no snapshot {snapshot or 'in ' + str(SNAPSHOTS)}")
    arguments = etcd_arguments()
    run(TOOL, "etcdutl", "snapshot", "status", str(snapshot))
    stop()
    fresh = DATA.with_name("data.restored")
    subprocess.run(["rm", "-rf", str(fresh)], check=True)
    name, peer = (
        arguments.get("--name", socket.gethostname()),
        arguments["--initial-advertise-peer-urls"],
    )
    run(
        TOOL,
        "etcdutl",
        "snapshot",
        "restore",
        str(snapshot),
        f"--data-dir={fresh}",
        f"--name={name}",
        f"--initial-cluster={name}={peer}",
        f"--initial-advertise-peer-urls={peer}",
        # Else a watcher that saw later revisions would miss what comes now under their numbers.
        "--bump-revision=1000000000",
        "--mark-compacted",
    )
    if DATA.exists():
        DATA.rename(DATA.with_name(f"data.before-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"))
    fresh.rename(DATA)
    for part in PARTS:
        if (STOPPED / part).exists():
            (STOPPED / part).rename(MANIFESTS / part)
    wait("answers", ready)
    print(f"restored {snapshot}")


def etcd_arguments() -> dict[str, str]:
    """Return the flags of etcd's manifest."""
    found = [p for p in (MANIFESTS / "etcd.yaml", STOPPED / "etcd.yaml") if p.exists()]
    if not found:
        sys.exit("no etcd is set up on this host")
    lines = [line.strip().removeprefix("- ") for line in found[0].read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if line.startswith("--") and "=" in line)


def stop() -> None:
    """Take the manifests away and wait until nothing runs of them."""
    STOPPED.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        if (MANIFESTS / part).exists():
            (MANIFESTS / part).rename(STOPPED / part)
    wait("stopped", lambda: not any(runs(name) for name in ("etcd", "kube-apiserver")))


def runs(program: str) -> bool:
    """Say whether a program runs, by its name."""
    return (
        subprocess.run(
            ["pgrep", "--exact", program[:15]], capture_output=True, check=False
        ).returncode
        == 0
    )


def ready() -> bool:
    """Say whether the API server answers."""
    command = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "--raw=/readyz"]
    return (
        subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == "ok"
    )


def wait(what: str, holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    until = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(
                f"the control plane is not {what} after {LIMIT_S} s: see journalctl -u kubelet"
            )
        time.sleep(1)


def run(*command: str) -> None:
    """Run a program; its words are the reason where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[1:4])} failed: {done.stderr.strip()[-400:]}")


main()
