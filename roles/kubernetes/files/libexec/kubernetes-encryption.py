#!/usr/bin/python3
"""Write every secret again that etcd holds by another key than the first; print how many.

usage: kubernetes-encryption.py

An API server encrypts by the first key of its encryption.yaml and decrypts by all of them. What is
written again without a change is encrypted again (kubernetes.io, Encrypting Confidential Data at
Rest, "Rotate a decryption key"; read 2026-11). Whether all were is read from etcd itself, which
keeps the key's name before each secret. Exit 1: some could not be written, with the reason.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ENCRYPTION = Path("/etc/kubernetes/gcluster/encryption.yaml")
TOOL = "/usr/local/libexec/gcluster/kubernetes-etcd.sh"
KUBECTL = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"]
PREFIX = "/registry/secrets/"
TRIES = 5
"""A secret that another writes meanwhile is a conflict, and encrypted by that write."""


def main() -> None:
    """Write again what isn't by the first key, until nothing is left."""
    named = re.search(r"\{name: ([^,]+), secret: ", ENCRYPTION.read_text())
    if named is None:
        sys.exit(f"{ENCRYPTION} names no key")
    left = others(named[1])
    before, refusals = len(left), ""
    for _ in range(TRIES):
        if not left:
            break
        refusals = write_again()
        time.sleep(1)
        left = others(named[1])
    if left:
        sys.exit(f"{len(left)} secrets are not encrypted by {named[1]} yet: {refusals[-400:]}")
    print(f"wrote {before} secrets again, by the key {named[1]}")


def others(name: str) -> list[str]:
    """Return the keys in etcd of the secrets that are encrypted by another key, or by none."""
    told = run(TOOL, "etcdctl", "get", PREFIX, "--prefix", "--write-out=json").stdout
    by = f"k8s:enc:secretbox:v1:{name}:".encode()
    return [
        base64.b64decode(one["key"]).decode()
        for one in json.loads(told).get("kvs", [])
        if not base64.b64decode(one["value"]).startswith(by)
    ]


def write_again() -> str:
    """Replace all secrets by themselves; return what was refused."""
    listed = run(*KUBECTL, "get", "secrets", "--all-namespaces", "--output=json").stdout
    done = subprocess.run(
        [*KUBECTL, "replace", "--filename=-"],
        input=listed,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip()


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program; end with its message where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip()[-400:]}")
    return done


main()
