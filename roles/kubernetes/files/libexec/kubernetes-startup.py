#!/usr/bin/python3
"""Let nodes take pods once their device plugins have registered; print what was done.

usage: kubernetes-startup.py [--once]

Kubelets register nodes with the taint gcluster.local/startup and with a label
awaits.gcluster.local/NAME for each resource that they wait for. A NAME with "_" is a resource
(nvidia.com_gpu for nvidia.com/gpu): it is ready when the node offers at least one. One without is a
driver of dynamic resource allocation (gpu.nvidia.com): it is ready when the node has a
ResourceSlice of it. Where NVIDIA's operator is to cut GPUs (nvidia.com/mig.config), it must have
said so too. It watches nodes, and looks again while one waits. With --once it looks once and prints
what waits.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Resource = dict[str, Any]
ADMIN = Path("/etc/kubernetes/admin.conf")
KUBECTL = ["kubectl", f"--kubeconfig={ADMIN}", "--server=https://localhost:6443"]
TAINT = "gcluster.local/startup"
AWAITS = "awaits.gcluster.local/"
MIG, MIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
SEPARATOR = "\x1f"
TAINTS = "{.spec.taints[*].key}"
FIELDS = ["{.metadata.name}", "{.metadata.labels}", TAINTS, "{.status.allocatable}"]
LINE = '{"\\u001f"}'.join(FIELDS) + '{"\\n"}'
"""One for each node; kubectl writes maps as JSON, and spaces for tabs while it watches."""
AGAIN_S, AT_LEAST_S = 3, 300


def main() -> None:
    """Check the nodes that start, then wait for more."""
    if "--once" in sys.argv:
        nodes = read(run("get", "nodes", f"--output=jsonpath={{range .items[*]}}{LINE}{{end}}"))
        for name, node in nodes.items():
            if missing := settled(name, node):
                print(f"{name} waits for {', '.join(missing)}")
        return
    while not ADMIN.exists():  # there is no API before the control plane is created
        time.sleep(AGAIN_S)
    watch = ["get", "nodes", "--watch", f"--output=jsonpath={LINE}"]
    with subprocess.Popen([*KUBECTL, *watch], stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None  # noqa: S101  # a pipe was requested
        starting: dict[str, Resource] = {}
        rest = b""
        while watching.poll() is None:
            wait_s = AGAIN_S if starting else AT_LEAST_S
            found, _, _ = select.select([watching.stdout], [], [], wait_s)
            if found:
                more = os.read(watching.stdout.fileno(), 65536)
                if not more:
                    break
                lines, _, rest = (rest + more).rpartition(b"\n")
                starting |= read(lines.decode())
            starting = {name: node for name, node in starting.items() if settled(name, node)}
    sys.exit("the API server ended the watch")


def read(lines: str) -> dict[str, Resource]:
    """Return node -> what it is, of such lines; a watch puts empty ones between them."""
    found = {}
    for line in filter(None, lines.split("\n")):
        name, labels, taints, allocatable = line.split(SEPARATOR)
        found[name] = {
            "labels": json.loads(labels or "{}"),
            "starts": TAINT in taints.split(),
            "allocatable": json.loads(allocatable or "{}"),
        }
    return found


def settled(name: str, node: Resource) -> list[str]:
    """Take the taint off a node that has all it waits for; return what is missing."""
    if not node["starts"]:
        return []
    missing = lacking(name, node)
    if not missing:
        # Another control plane may have done so.
        run("taint", "node", name, f"{TAINT}:NoSchedule-", may_fail="not found")
        print(f"{name} takes pods: its devices are there", flush=True)
    return missing


def lacking(name: str, node: Resource) -> list[str]:
    """Return what a node waits for."""
    labels = node["labels"]
    awaited = sorted(label[len(AWAITS) :] for label in labels if label.startswith(AWAITS))
    resources = {one.replace("_", "/", 1) for one in awaited if "_" in one}
    missing = [one for one in sorted(resources) if node["allocatable"].get(one, "0") == "0"]
    drivers = {one for one in awaited if "_" not in one}
    if drivers:
        chosen = f"--field-selector=spec.nodeName={name}"
        template = "--output=jsonpath={.items[*].spec.driver}"
        drivers -= set(run("get", "resourceslices", chosen, template).split())
    missing += sorted(drivers)
    if labels.get(MIG, "all-disabled") != "all-disabled" and labels.get(MIG_STATE) != "success":
        missing.append(f"{MIG}={labels[MIG]}")
    return missing


def run(*arguments: str, may_fail: str = "") -> str:
    """Run kubectl; its message is the reason where it fails."""
    done = subprocess.run([*KUBECTL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0 and not (may_fail and may_fail in done.stderr):
        sys.exit(f"kubectl {' '.join(arguments[:2])} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


main()
