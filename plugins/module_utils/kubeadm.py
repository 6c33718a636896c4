"""kubeadm on a node: its files, one run at a time, and the reason where it failed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from .node import run, system_path

SETTINGS = "/etc/kubernetes/gcluster"
KUBELET = "/etc/kubernetes/kubelet.conf"
ADMIN = "/etc/kubernetes/admin.conf"
INIT_UNFINISHED, JOIN_UNFINISHED = f"{SETTINGS}/init-unfinished", f"{SETTINGS}/join-unfinished"
"""Marks of runs that were cut off; the next run takes this host back and begins again."""
MANIFESTS = "/etc/kubernetes/manifests"
LOCK = "/run/gcluster-kubeadm.lock"
LOGS = "/var/log/gcluster"
RUNTIME = "unix:///run/containerd/containerd.sock"
STATE = "/usr/local/libexec/gcluster/kubernetes-state.py"
SEED = "/var/lib/gcluster/kubernetes-state.tar.gz"
"""What the control plane that is made next begins with: a backup of one that was lost."""
SHOWN_LINES, SEARCHED_LINES = 5, 60


@contextlib.contextmanager
def exclusive(lock: str = LOCK) -> Iterator[None]:
    """Wait for the lock: a run whose caller was killed may still be at work."""
    with system_path(lock).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_member() -> bool:
    """Return whether an init or a join was finished on this host."""
    unfinished = (INIT_UNFINISHED, JOIN_UNFINISHED)
    return system_path(KUBELET).exists() and not any(
        system_path(mark).exists() for mark in unfinished
    )


def kubeadm(*arguments: str) -> tuple[int, str]:
    """Run kubeadm; return its status, and from its log the lines that give the reason.

    The log is appended to, and read by root alone.
    """
    log = log_path(arguments[0])
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as output:
        done = subprocess.run(["kubeadm", *arguments], stdout=output, stderr=output, check=False)
    lines = [each.strip() for each in log.read_text(errors="replace").splitlines() if each.strip()]
    errors = [
        line for line in lines[-SEARCHED_LINES:] if "[ERROR" in line or line.startswith("error")
    ]
    return done.returncode, "; ".join((errors or lines)[-SHOWN_LINES:])


def log_path(command: str) -> Path:
    """Return the log of kubeadm's command."""
    return system_path(f"{LOGS}/kubeadm-{command}.log")


def reset() -> None:
    """Remove what an unfinished run left of this host; its kubeadm may have outlived it."""
    run("pkill", "-KILL", "--exact", "kubeadm")
    kubeadm("reset", "--force", f"--cri-socket={RUNTIME}")


def place_static_pods(*, bootstrap: bool = False) -> None:
    """Have the kubelet run what moves the control planes' address.

    Args:
        bootstrap: with the rights that only the first minutes of a cluster need, before its API
            server is reached by that address.
    """
    for manifest in sorted(system_path(f"{SETTINGS}/static").glob("*.yaml")):
        folder = system_path(MANIFESTS)
        folder.mkdir(parents=True, exist_ok=True)
        text = manifest.read_text()
        if not bootstrap:
            text = text.replace("/super-admin.conf", "/admin.conf")
        (folder / manifest.name).write_text(text)


def use_common_name() -> None:
    """Resolve the control planes' common name to this host, where a load balancer has that name.

    A cloud's load balancer gives no response when it balances a machine's request to itself. The
    file own-name holds "ADDRESS NAME". Before a control plane serves, the name must be the
    balancer's: so this comes before the first one is created, and on others once they have joined.
    """
    own, hosts = system_path(f"{SETTINGS}/own-name"), system_path("/etc/hosts")
    if not own.exists():
        return
    line, text = own.read_text().strip(), hosts.read_text()
    if line not in text.splitlines():
        with hosts.open("a") as file:
            file.write(("" if text.endswith("\n") or not text else "\n") + line + "\n")
