#!/usr/bin/python3
"""Approve the certificates by which kubelets serve logs and shells to the API server.

usage: kubernetes-approve.py [--once]

Kubernetes signs them and approves none by itself: it does not have the nodes' addresses. This
program approves a request that a node made for itself: under its own name, for its name and
addresses as the API has them, of which no other node has one, and to serve with. Others are left
for a manual decision. It watches requests, and checks again while one waits.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Resource = dict[str, Any]
ADMIN = Path("/etc/kubernetes/admin.conf")
KUBECTL = ["kubectl", f"--kubeconfig={ADMIN}", "--server=https://localhost:6443"]
SIGNER = "kubernetes.io/kubelet-serving"
MAY_ASK_FOR = {"digital signature", "key encipherment", "server auth"}
USER = "system:node:"
AGAIN_S, AT_LEAST_S = 3, 300


def main() -> None:
    """Approve what waits, then wait for more."""
    if "--once" in sys.argv:
        approve_pending()
        return
    while not ADMIN.exists():  # there is no API before the control plane is created
        time.sleep(AGAIN_S)
    watch = ["get", "csr", "--watch", "--output=name"]
    with subprocess.Popen([*KUBECTL, *watch], stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None  # noqa: S101  # a pipe was requested
        while watching.poll() is None:
            waits = approve_pending()
            found, _, _ = select.select([watching.stdout], [], [], AGAIN_S if waits else AT_LEAST_S)
            if found and not os.read(watching.stdout.fileno(), 65536):
                break
    sys.exit("the API server ended the watch")


def approve_pending() -> bool:
    """Approve what may pass; return whether a request waits for its node to be known."""
    requests = [one for one in listed("csr") if is_open(one)]
    if not requests:
        return False
    nodes = {one["metadata"]["name"]: addresses(one) for one in listed("nodes")}
    waits = False
    for request in requests:
        name = request["metadata"]["name"]
        why = objection(request, nodes)
        if not why:
            run("certificate", "approve", name)
            print(f"approved {name} of {request['spec']['username']}", flush=True)
        waits |= bool(why)
    return waits


def is_open(request: Resource) -> bool:
    """Return whether a request is for a kubelet's serving certificate, and undecided."""
    conditions = request.get("status", {}).get("conditions")
    return request["spec"]["signerName"] == SIGNER and not conditions


def addresses(node: Resource) -> set[str]:
    """Return a node's names and addresses."""
    return {one["address"] for one in node["status"].get("addresses", [])}


def objection(request: Resource, nodes: dict[str, set[str]]) -> str:
    """Return why a request is not approved; "" where it is."""
    spec = request["spec"]
    name = spec["username"].removeprefix(USER)
    if not spec["username"].startswith(USER) or "system:nodes" not in spec.get("groups", []):
        return "the requester is no node"
    if not set(spec["usages"]) <= MAY_ASK_FOR:
        return "it is to do more than serve"
    subject, requested = read_request(spec["request"])
    if subject != {("CN", spec["username"]), ("O", "system:nodes")}:
        return "it names another"
    if name not in nodes or not requested:
        return "its node is not known"
    if not requested <= nodes[name] | {name}:
        return "its node has no such address"
    others = {one for other, has in nodes.items() if other != name for one in (*has, other)}
    return "another node has that address" if requested & others else ""


def read_request(text: str) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the subject of a request, and the names and addresses it is for."""
    decoded = base64.b64decode(text).decode()
    words = ["openssl", "req", "-noout", "-subject", "-nameopt", "sep_multiline", "-text"]
    told = subprocess.run(words, input=decoded, capture_output=True, text=True, check=True).stdout
    subject = re.findall(r"^ +(CN|O|OU|L|C|ST|emailAddress) ?= ?(.+)$", told, re.MULTILINE)
    names = re.search(r"Subject Alternative Name:[^\n]*\n(.*)", told)
    requested = [] if names is None else [one.strip() for one in names[1].split(",")]
    return set(subject), {one.partition(":")[2] for one in requested}


def listed(kind: str) -> list[Resource]:
    """Return all objects of a kind."""
    found: list[Resource] = json.loads(run("get", kind, "--output=json"))["items"]
    return found


def run(*arguments: str) -> str:
    """Run kubectl; its message is the reason where it fails."""
    done = subprocess.run([*KUBECTL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kubectl {' '.join(arguments[:2])} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


main()
