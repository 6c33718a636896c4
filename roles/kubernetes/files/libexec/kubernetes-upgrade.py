#!/usr/bin/python3
"""Upgrade what kubeadm keeps of this host; print what was done, nothing where it is done.

usage: kubernetes-upgrade.py VERSION first|controller|node [KUBEADM]
       kubernetes-upgrade.py --kubelet   restart the kubelet where its program has changed
       kubernetes-upgrade.py --settings  write etcd's and the API server's pods again where
                                         kubeadm.yaml differs from what they were made of
       kubernetes-upgrade.py --settled   note that they were just made of it
       kubernetes-upgrade.py --addons    upgrade kube-proxy and CoreDNS after every node

first: the first control plane, which writes etcd away before and moves what all share. KUBEADM: a
program that answers to that name; default: the host's own. The kubelet's program is exchanged after
it.

kubeadm would bring kube-proxy and CoreDNS with the control plane, to nodes that wait for their jobs
to end. Where images come in an archive, those have the new ones only when their own turn was.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

Done = subprocess.CompletedProcess[str]
FOLDER = Path("/etc/kubernetes/gcluster")
KUBELET = Path("/etc/kubernetes/kubelet.conf")
DONE = FOLDER / "upgraded-to"
SETTLED = FOLDER / "settings-of"
"""Holds the hash of the kubeadm.yaml that etcd and the API server here were made of."""
ADDONS = FOLDER / "addons-upgraded-to"
LOG = Path("/var/log/gcluster/kubeadm-upgrade.log")
LIBEXEC = "/usr/local/libexec/gcluster"
ADMIN = Path("/etc/kubernetes/admin.conf")
KUBECTL = ["kubectl", f"--kubeconfig={ADMIN}"]
LATER = "--skip-phases=addon"
KEPT = "28"
LIMIT_S = 300
"""On two cores with a load of 40 an API server was steady again after 240 s."""
STEADY_S = 15
LEADERS = ("kube-controller-manager", "kube-scheduler")
RENEWALS = 3
"""Of a lease, after which its holder has had time to take up its work."""


def main() -> None:
    """Do the one or the other."""
    if "--kubelet" in sys.argv:
        kubelet()
        return
    if "--settled" in sys.argv:
        SETTLED.write_text(settings_digest())
        return
    if "--settings" in sys.argv:
        settings()
        return
    if "--addons" in sys.argv:
        addons()
        return
    version, turn, program = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["/usr/bin/kubeadm"])[0]
    if version.count(".") == 1:  # the newest of a minor that the repository had
        requested = subprocess.run(
            ["kubeadm", "version", "--output=short"],
            executable=program,
            capture_output=True,
            text=True,
            check=True,
        )
        version = requested.stdout.strip().removeprefix("v")
    if not KUBELET.exists() or version in {
        runs(),
        DONE.read_text().strip() if DONE.exists() else "",
    }:
        return
    refuse_while_exchanged()
    if turn == "first":
        subprocess.run(
            [f"{LIBEXEC}/kubernetes-snapshot.sh", KEPT], check=True, stdout=subprocess.DEVNULL
        )
        kubeadm(
            program, "init", "phase", "upload-config", "kubeadm", f"--config={FOLDER}/kubeadm.yaml"
        )
        kubeadm(program, "upgrade", "apply", "--yes", LATER, f"--config={FOLDER}/upgrade.yaml")
    else:
        kubeadm(program, "upgrade", "node", LATER, f"--config={FOLDER}/upgrade.yaml")
    DONE.write_text(version + "\n")
    if ADMIN.exists():
        SETTLED.write_text(settings_digest())
    print(f"brought {'the control plane' if turn == 'first' else 'this host'} to {version}")


def runs() -> str:
    """Return the version of the kubelet that is in use."""
    stdout = subprocess.run(
        ["/usr/bin/kubelet", "--version"], capture_output=True, text=True, check=False
    ).stdout
    return stdout.strip().rpartition(" v")[2]


def refuse_while_exchanged() -> None:
    """End where the certificate authorities are exchanged: kubeadm would write another manifest."""
    if (FOLDER / "authorities-next").exists():
        sys.exit(
            "the certificate authorities are exchanged: gcluster rotate certificate-authority goes"
            " on with that, and comes first"
        )


def kubeadm(program: str, *arguments: str) -> None:
    """Run kubeadm, with a log that only root reads; exit with its message where it fails."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as log:
        # One program answers to many names: it goes by what it is called.
        done = subprocess.run(
            ["kubeadm", *arguments], executable=program, stdout=log, stderr=log, check=False
        )
    if done.returncode != 0:
        lines = [
            line.strip() for line in LOG.read_text(errors="replace").splitlines() if line.strip()
        ]
        messages = [line for line in lines[-60:] if "[ERROR" in line or line.startswith("error")]
        sys.exit(
            f"kubeadm {arguments[0]} {arguments[1]} failed ({LOG}): "
            + "; ".join((messages or lines)[-5:])
        )


def addons() -> None:
    """Upgrade kube-proxy and CoreDNS to the version of this control plane, after all nodes."""
    version = DONE.read_text().strip() if DONE.exists() else ""
    if not version or (ADDONS.exists() and ADDONS.read_text().strip() == version):
        return
    requested = wait(
        "the API server says which versions nodes run",
        lambda: subprocess.run(
            [*KUBECTL, "get", "nodes", "--output=json"], capture_output=True, text=True, check=False
        ),
        lambda done: done.returncode == 0,
    )
    nodes = {
        one["status"]["nodeInfo"]["kubeletVersion"] for one in json.loads(requested.stdout)["items"]
    }
    if nodes != {f"v{version}"}:
        return
    kubeadm(
        "kubeadm", "upgrade", "apply", "phase", "addon", "all", f"--config={FOLDER}/upgrade.yaml"
    )
    for what in ("daemonset/kube-proxy", "deployment/coredns"):
        rollout = ["--namespace=kube-system", "rollout", "status", what, "--timeout=120s"]
        subprocess.run([*KUBECTL, *rollout], capture_output=True, check=False)
    ADDONS.write_text(version + "\n")
    print(f"brought kube-proxy and CoreDNS to {version}")


def settings_digest() -> str:
    """Return the hash of what a control plane is made of."""
    return hashlib.sha256((FOLDER / "kubeadm.yaml").read_bytes()).hexdigest()


def settings() -> None:
    """Have kubeadm write the static pods again, whose kubelet replaces those that differ."""
    digest = settings_digest()
    if not ADMIN.exists() or (SETTLED.exists() and SETTLED.read_text() == digest):
        return
    refuse_while_exchanged()
    config = f"--config={FOLDER}/kubeadm.yaml"
    kubeadm("kubeadm", "init", "phase", "upload-config", "kubeadm", config)
    kubeadm("kubeadm", "init", "phase", "etcd", "local", config)
    kubeadm("kubeadm", "init", "phase", "control-plane", "all", config)
    steady_api()
    for leader in LEADERS:
        leads(leader)
    SETTLED.write_text(digest)
    print("brought the control plane to its settings")


def kubelet() -> None:
    """Start the kubelet again where its process isn't the program that its name leads to."""
    requested = ["systemctl", "show", "kubelet", "--property=MainPID", "--value"]
    pid = subprocess.run(requested, capture_output=True, text=True, check=False).stdout.strip()
    running = Path(f"/proc/{pid}/exe")
    if pid in {"", "0"} or (
        running.exists() and running.resolve() == Path("/usr/bin/kubelet").resolve()
    ):
        return
    subprocess.run(["systemctl", "restart", "kubelet"], check=True)
    takes_up()
    print("started the kubelet again")


def takes_up() -> None:
    """Wait until the new kubelet has reported itself, and a control plane has what it starts again.

    One of another minor starts every container again, the API server's and etcd's among them.
    """
    requested = [
        "get",
        "node",
        socket.gethostname(),
        "--output=jsonpath={.status.nodeInfo.kubeletVersion}",
    ]
    command = ["kubectl", f"--kubeconfig={KUBELET}", *requested]
    version = runs()
    wait(
        f"the kubelet {version} has reported itself",
        lambda: subprocess.run(command, capture_output=True, text=True, check=False),
        lambda done: done.stdout.strip() == f"v{version}",
    )
    if ADMIN.exists():
        steady_api()


def steady_api() -> None:
    """Wait until the API server here has been ready for a while."""
    own = [*KUBECTL, "--server=https://localhost:6443", "get", "--raw=/readyz"]
    steady = 0
    until = time.monotonic() + LIMIT_S
    while steady < STEADY_S:
        if time.monotonic() > until:
            sys.exit(
                f"the API server here is not steady after {LIMIT_S} s: see journalctl -u kubelet"
            )
        done = subprocess.run(own, capture_output=True, text=True, check=False)
        steady = steady + 1 if done.stdout.strip() == "ok" else 0
        time.sleep(1)


def leads(program: str) -> None:
    """Wait until one of this program is at work: it renews its lease every few seconds.

    While no API server answers it gives up, and starts again later than that one.
    """
    lease = ["get", "lease", program, "--namespace=kube-system"]
    command = [*KUBECTL, *lease, "--output=jsonpath={.spec.holderIdentity} {.spec.renewTime}"]
    seen: set[str] = set()

    def renewed(done: Done) -> bool:
        if done.returncode == 0 and done.stdout.strip():
            seen.add(done.stdout.strip())
        return len(seen) > RENEWALS

    wait(
        f"a {program} leads",
        lambda: subprocess.run(command, capture_output=True, text=True, check=False),
        renewed,
    )


def wait(what: str, ask: Callable[[], Done], holds: Callable[[Done], bool]) -> Done:
    """Poll until it holds; return the result, or exit with the last error."""
    until = time.monotonic() + LIMIT_S
    while not holds(done := ask()):
        if time.monotonic() > until:
            sys.exit(
                f"waited {LIMIT_S} s until {what}: {(done.stderr or done.stdout).strip()[-400:]}"
            )
        time.sleep(1)
    return done


main()
