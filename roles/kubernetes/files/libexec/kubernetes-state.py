#!/usr/bin/python3
"""Backup and restore of a control plane: etcd, the authorities, the key of secrets.

usage: kubernetes-state.py save        print an archive of them, base64
       kubernetes-state.py check       read the archive in ARCHIVE; print NAME=URL of etcd's member
                                       here, or nothing where this host is no control plane
       kubernetes-state.py prepare TOKEN NAME=URL..
                                       lay etcd's data of the archive next to those in use
       kubernetes-state.py replace     exchange the two; what was written since is lost
       kubernetes-state.py begin       where no control plane is: lay authorities and data where
                                       `kubeadm init` takes them up
       kubernetes-state.py restore [SNAPSHOT]
                                       by hand, with one control plane: begin again from a snapshot
                                       on this host, by default the newest

Several control planes are each prepared with the same members, and replaced when all of them were:
they are then one etcd, which knows nothing of the one before. The earlier data is kept, as
data.before-DATE.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

ARCHIVE = Path("/var/lib/gcluster/kubernetes-state.tar.gz")
SNAPSHOTS = Path("/var/lib/gcluster/etcd-snapshots")
FOLDER = Path("/etc/kubernetes/gcluster")
MANIFESTS = Path("/etc/kubernetes/manifests")
STOPPED = Path("/etc/kubernetes/gcluster/stopped")
PKI = Path("/etc/kubernetes/pki")
DATA = Path("/var/lib/etcd/data")
FRESH = Path("/var/lib/etcd/data.restored")
PARTS = ("kube-apiserver.yaml", "etcd.yaml")
TOOL = "/usr/local/libexec/gcluster/kubernetes-etcd.sh"
AUTHORITIES_TOOL = Path("/usr/local/libexec/gcluster/kubernetes-authorities.py")
SNAPSHOT, ENCRYPTION = "snapshot.db", "encryption.yaml"
AUTHORITIES = ("ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key",
               "etcd/ca.crt", "etcd/ca.key")  # fmt: skip
"""What kubeadm makes all the others from; it takes up those that are there."""
LIMIT_S = 180


def main() -> None:
    """Run the verb."""
    verb, *words = sys.argv[1:] or ["restore"]
    verbs: dict[str, Callable[..., None]] = {
        "save": save,
        "check": check,
        "prepare": prepare,
        "replace": replace,
        "begin": begin,
        "restore": restore,
    }
    verbs[verb](*words)


def save() -> None:
    """Print an archive of a fresh snapshot, the authorities, and the key of secrets at rest."""
    snapshot = SNAPSHOTS / f".saved-{os.getpid()}.db"
    snapshot.parent.mkdir(parents=True, exist_ok=True)
    drop_abandoned()
    made = io.BytesIO()
    try:
        run(TOOL, "etcdctl", "snapshot", "save", str(snapshot))
        run(TOOL, "etcdutl", "snapshot", "status", str(snapshot))
        with tarfile.open(fileobj=made, mode="w:gz", compresslevel=6) as tar:
            tar.add(snapshot, SNAPSHOT)
            for name in AUTHORITIES:
                content = signing((PKI / name).read_bytes())
                member = tarfile.TarInfo(f"pki/{name}")
                member.size, member.mode = len(content), 0o600
                tar.addfile(member, io.BytesIO(content))
            if (FOLDER / ENCRYPTION).exists():
                tar.add(FOLDER / ENCRYPTION, ENCRYPTION)
    finally:
        for left in SNAPSHOTS.glob(f"{snapshot.name}*"):
            left.unlink()
    print(base64.b64encode(made.getvalue()).decode())


def drop_abandoned() -> None:
    """Remove the snapshots of backups that were killed."""
    for left in SNAPSHOTS.glob(".saved-*"):
        process = left.name.removeprefix(".saved-").partition(".")[0]
        if not Path("/proc", process).exists():
            left.unlink(missing_ok=True)


def check() -> None:
    """Print the member that this host is, where the archive fits what the host has."""
    held = contents()
    if not any((place / "etcd.yaml").exists() for place in (MANIFESTS, STOPPED)):
        return
    if signing((PKI / "ca.crt").read_bytes()) != signing(held["pki/ca.crt"]):
        sys.exit("it has another certificate authority than the backup: nodes and people trust it")
    fits_key(held)
    arguments = etcd_arguments()
    print(f"{arguments['--name']}={arguments['--initial-advertise-peer-urls']}")


def prepare(token: str, *members: str) -> None:
    """Lay etcd's data next to those in use; nothing that runs is touched."""
    arguments = etcd_arguments()
    unpacked = ARCHIVE.with_name("kubernetes-state.db")
    write(unpacked, contents()[SNAPSHOT])
    try:
        lay(unpacked, arguments["--name"], dict(one.split("=", 1) for one in members), token)
    finally:
        unpacked.unlink()


def replace() -> None:
    """Stop what uses etcd, exchange its data, and start again."""
    if not FRESH.exists():
        sys.exit("there is nothing to put in place: prepare comes first")
    stop()
    exchange()
    start()
    publish()
    ARCHIVE.unlink(missing_ok=True)


def begin() -> None:
    """Have the `kubeadm init` that follows begin with what is in the archive."""
    held = contents()
    fits_key(held)
    for name in AUTHORITIES:
        path = PKI / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, held[f"pki/{name}"])
    unpacked = ARCHIVE.with_name("kubernetes-state.db")
    write(unpacked, held[SNAPSHOT])
    os.environ["ETCD_IMAGE"] = etcd_image()
    name = setting("nodeRegistration")["name"]
    address = setting("localAPIEndpoint")["advertiseAddress"]
    at = f"[{address}]" if ":" in address else address
    try:
        lay(unpacked, name, {name: f"https://{at}:2380"}, ARCHIVE.name)
    finally:
        unpacked.unlink()
    shutil.rmtree(DATA, ignore_errors=True)
    FRESH.rename(DATA)


def restore(*words: str) -> None:
    """Begin again from a snapshot that is on this host; the only control plane."""
    snapshot = Path(words[0]) if words else max(SNAPSHOTS.glob("[0-9]*.db"), default=None)
    if snapshot is None or not snapshot.is_file():
        sys.exit(f"there is no snapshot {snapshot or 'in ' + str(SNAPSHOTS)}")
    arguments = etcd_arguments()
    name, peer = arguments["--name"], arguments["--initial-advertise-peer-urls"]
    lay(snapshot, name, {name: peer}, f"{name}-{time.time():.0f}")
    stop()
    exchange()
    start()
    publish()
    print(f"restored {snapshot}")


def contents() -> dict[str, bytes]:
    """Return name -> content of the archive."""
    try:
        with tarfile.open(ARCHIVE, mode="r:gz") as tar:
            files = {one.name: tar.extractfile(one) for one in tar.getmembers() if one.isfile()}
            return {name: file.read() for name, file in files.items() if file is not None}
    except (OSError, tarfile.TarError, EOFError) as error:
        sys.exit(f"{ARCHIVE} can't be read: {error}")


def signing(content: bytes) -> bytes:
    """Return a file of an authority with the certificate of its key alone.

    While `gcluster rotate certificate-authority` is under way there is another one, and the
    controller manager of a control plane that began with two would sign nothing.
    """
    end = b"-----END CERTIFICATE-----\n"
    first, found, _ = content.partition(end)
    return first + found


def fits_key(held: dict[str, bytes]) -> None:
    """End where secrets of the backup could not be read with the key that this host has."""
    there = FOLDER / ENCRYPTION
    known = keys(there.read_bytes() if there.exists() else b"")
    used = keys(held.get(ENCRYPTION, b""))[:1]
    if (known or used) and not set(used).intersection(known):
        sys.exit("it has another key for secrets at rest than the backup: they could not be read")


def keys(configuration: bytes) -> list[str]:
    """Return the names and keys of an encryption configuration; the first one encrypts."""
    return re.findall(r"\{name: [^{}]+, secret: [^{}]+\}", configuration.decode())


def setting(name: str) -> dict[str, str]:
    """Return a part of kubeadm's settings, which the role writes on a line of its own."""
    lines = (FOLDER / "kubeadm.yaml").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{name}: "))
    found: dict[str, str] = json.loads(line.partition(": ")[2])
    return found


def etcd_image() -> str:
    """Return the image of etcd that `kubeadm init` will run, which is on this host then."""
    settings = f"--config={FOLDER}/kubeadm.yaml"
    listed = run("kubeadm", "config", "images", "list", settings).split()
    image = next(one for one in listed if "/etcd:" in one)
    if image not in run("ctr", "--namespace=k8s.io", "images", "list", "--quiet").split():
        run("kubeadm", "config", "images", "pull", settings)
    return image


def lay(snapshot: Path, name: str, members: dict[str, str], token: str) -> None:
    """Make etcd's data out of a snapshot, next to where they are used."""
    run(TOOL, "etcdutl", "snapshot", "status", str(snapshot))
    shutil.rmtree(FRESH, ignore_errors=True)
    run(
        TOOL,
        "etcdutl",
        "snapshot",
        "restore",
        str(snapshot),
        f"--data-dir={FRESH}",
        f"--name={name}",
        f"--initial-cluster={','.join(f'{n}={url}' for n, url in sorted(members.items()))}",
        f"--initial-cluster-token={token}",
        f"--initial-advertise-peer-urls={members[name]}",
        # Else a watcher that saw later revisions would miss what comes now under their numbers.
        "--bump-revision=1000000000",
        "--mark-compacted",
    )


def exchange() -> None:
    """Put the prepared data into etcd's folder; what was there keeps a name of its own."""
    if DATA.exists():
        before = f"data.before-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
        while DATA.with_name(before).exists():
            before += "-again"
        DATA.rename(DATA.with_name(before))
    FRESH.rename(DATA)


def etcd_arguments() -> dict[str, str]:
    """Return the flags of etcd's manifest."""
    found = [p for p in (MANIFESTS / "etcd.yaml", STOPPED / "etcd.yaml") if p.exists()]
    if not found:
        sys.exit("no etcd is set up on this host")
    lines = [line.strip().removeprefix("- ") for line in found[0].read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if line.startswith("--") and "=" in line)


def write(path: Path, content: bytes) -> None:
    """Write a file for root alone, whole or not at all."""
    made = path.with_name(f".{path.name}.new")
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    made.rename(path)


def stop() -> None:
    """Take the manifests away and wait until nothing runs of them."""
    STOPPED.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        if (MANIFESTS / part).exists():
            (MANIFESTS / part).rename(STOPPED / part)
    wait("stopped", lambda: not any(runs(name) for name in ("etcd", "kube-apiserver")))


def start() -> None:
    """Put the manifests back and wait for the API server."""
    for part in PARTS:
        if (STOPPED / part).exists():
            (STOPPED / part).rename(MANIFESTS / part)
    wait("answering", ready)


def publish() -> None:
    """Have the API say which authorities are trusted now, which may not be those of then."""
    if AUTHORITIES_TOOL.exists():
        run(sys.executable, str(AUTHORITIES_TOOL), "--publish")


def runs(program: str) -> bool:
    """Return whether a program runs, by its name."""
    return (
        subprocess.run(
            ["pgrep", "--exact", program[:15]], capture_output=True, check=False
        ).returncode
        == 0
    )


def ready() -> bool:
    """Return whether the API server of this host responds."""
    command = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf",
               "--server=https://localhost:6443", "get", "--raw=/readyz"]  # fmt: skip
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


def run(*command: str) -> str:
    """Run a program and return its output; its message is the reason where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[1:4])} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


main()
