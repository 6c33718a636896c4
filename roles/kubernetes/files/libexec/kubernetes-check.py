#!/usr/bin/python3
"""Check whether Kubernetes works here, and print why not.

usage: kubernetes-check.py controller|node [SECONDS] [--network-later]
       SECONDS: how long to wait for that (default 0)

With --network-later a node that lacks nothing but its pod network works: that comes as an add-on
when nodes have joined. A node runs its kubelet, with a certificate that a control plane signed, and
the control plane counts it as ready. On a control plane the API server and etcd are ready too,
secrets are stored encrypted where that is configured, and no certificate is about to run out. Exit
0: it works; 1: it doesn't, reason on stderr.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

ADMIN, KUBELET = "/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf"
SERVING = Path("/var/lib/kubelet/pki/kubelet-server-current.pem")
ENCRYPTION = Path("/etc/kubernetes/gcluster/encryption.yaml")
FEWEST_DAYS = 30
LATER = "--network-later"
NO_NETWORK = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
"""Prefix of a kubelet's message when only that is missing; several are a list in brackets."""


class UnwellError(Exception):
    """Why it doesn't work."""


def main() -> None:
    """Poll until it works or the time is over."""
    words = [word for word in sys.argv[1:] if word != LATER]
    role, wait = words[0], int((words[1:] or ["0"])[0])
    until = time.monotonic() + wait
    while True:
        try:
            node_is_ready(without_network=LATER in sys.argv)
            if role == "controller":
                control_plane_works()
        except UnwellError as why:
            if time.monotonic() >= until:
                sys.exit(str(why))
            time.sleep(1)
        else:
            return


def run(*command: str) -> str:
    """Return a program's output; its message is the reason where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnwellError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def node_is_ready(*, without_network: bool) -> None:
    """Check that the kubelet runs, and that the control plane reports this node as ready."""
    for unit in ("containerd", "kubelet"):
        state = subprocess.run(
            ["systemctl", "is-active", unit], capture_output=True, text=True, check=False
        )
        if state.stdout.strip() != "active":
            raise UnwellError(f"{unit} does not run: see journalctl -u {unit}")
    if not Path(KUBELET).exists():
        raise UnwellError("this host has not joined the cluster")
    if not SERVING.exists():
        raise UnwellError("no control plane has signed the certificate of its kubelet's own port")
    name = socket.gethostname()
    node = json.loads(
        run("kubectl", f"--kubeconfig={KUBELET}", "get", "node", name, "--output=json")
    )
    conditions = {c["type"]: c for c in node["status"]["conditions"]}
    ready = conditions.get("Ready", {})
    lacks = ready.get("message", "")
    if (
        without_network
        and ready.get("reason") == "KubeletNotReady"
        and lacks.startswith(NO_NETWORK)
    ):
        return
    if ready.get("status") != "True":
        raise UnwellError(f"node {name} is not ready: {ready.get('message', 'it has not said so')}")


def control_plane_works() -> None:
    """Have API server and etcd of this host be ready, and what they keep be safe."""
    kubectl = ("kubectl", f"--kubeconfig={ADMIN}")
    answer = run(*kubectl, "--server=https://localhost:6443", "get", "--raw=/readyz")
    if answer.strip() != "ok":
        raise UnwellError(f"the API server here is not ready: {answer.strip()[-400:]}")
    if ENCRYPTION.exists():
        arguments = Path("/etc/kubernetes/manifests/kube-apiserver.yaml").read_text()
        if f"--encryption-provider-config={ENCRYPTION}" not in arguments:
            raise UnwellError("the API server runs without encryption at rest")
    left = json.loads(run("/usr/local/libexec/gcluster/kubernetes-certificates.py"))
    soon = {name: days for name, days in left.items() if days < FEWEST_DAYS}
    if soon:
        raise UnwellError(
            f"certificates that run out within {FEWEST_DAYS} days: {', '.join(sorted(soon))}"
        )


main()
