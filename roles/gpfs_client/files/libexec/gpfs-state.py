#!/usr/bin/python3
"""Bring a node into the GPFS cluster that owns its file systems, or say how it differs.

usage: gpfs-state.py (plan | apply | verify) < expected.json
       gpfs-state.py (plan-build | build)   kernel modules for the kernel that runs
       gpfs-state.py mount                  what /etc/gcluster/gpfs.json names, at GPFS' start

plan and apply print a line for each change. A node can't add itself: a host of the cluster does,
over root's SSH, as GPFS' own commands go. Where that isn't allowed, the commands to run there are
told. GPFS is stopped only where no job runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Expected = dict[str, Any]
SETTINGS = Path("/etc/gcluster/gpfs.json")
GRANTED = Path("/run/gcluster/granted-job")
UNIT = "gcluster-gpfs-mounts.service"
MM = "/usr/lpp/mmfs/bin"
FEWEST_FIELDS = 3
ACTIVE_WAIT_S, ANSWER_WAIT_S = 180, 10
"""A node becomes active within seconds; a cluster that recovers takes minutes."""


def run(*argv: str, timeout: float = 900) -> tuple[int, str]:
    """Run a program, GPFS' own among them; return its status and what it printed."""
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{MM}"}
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
        )
    except FileNotFoundError:
        return 127, f"{argv[0]}: not found"
    except subprocess.TimeoutExpired:
        return 124, "no answer"
    return done.returncode, done.stdout.strip()


def job_runs() -> bool:
    """Say whether Slurm runs a job here, beside the one by which it gave this node for a change."""
    code, steps = run("pgrep", "--list-full", "--exact", "slurmstepd")
    try:
        granted = GRANTED.read_text().strip()
    except OSError:
        granted = ""
    given = granted and steps and all(f" [{granted}." in step for step in steps.splitlines())
    return code == 0 and not given


def rows(*argv: str) -> dict[str, list[dict[str, str]]]:
    """Return rows of a command's -Y output as dictionaries, by section ("" for one without)."""
    _, text = run(*argv, "-Y")
    heads: dict[str, list[str]] = {}
    found: dict[str, list[dict[str, str]]] = {}
    for line in text.splitlines():
        fields = line.split(":")
        if len(fields) < FEWEST_FIELDS:
            continue
        if fields[2] == "HEADER":
            heads[fields[1]] = fields
        elif fields[1] in heads:
            found.setdefault(fields[1], []).append(dict(zip(heads[fields[1]], fields)))
    return found


def cluster_name() -> str:
    """Return the name of the cluster that the node is in, "" for none."""
    found = rows("mmlscluster").get("clusterSummary", [])
    return found[0].get("clusterName", "") if found else ""


def state() -> str:
    """Return the state of GPFS on this node: active, arbitrating, down, unknown."""
    found = rows("mmgetstate").get("", [])
    return found[0].get("state", "unknown") if found else "unknown"


def settings() -> dict[str, str]:
    """Return what GPFS runs with here."""
    found = rows("mmdiag", "--config").get("config", [])
    return {row.get("name", ""): row.get("value", "") for row in found}


def different(expected: Expected) -> dict[str, str]:
    """Return settings that don't run as asked; autoload isn't among what mmdiag shows."""
    now = settings()
    asked = {key: value for key, value in expected["settings"].items() if key != "autoload"}
    return {key: value for key, value in asked.items() if now.get(key) != value}


def mounted(path: str) -> dict[str, str] | None:
    """Return what is mounted at a path; nothing where nothing is."""
    code, text = run("findmnt", "--json", "--output", "SOURCE,FSTYPE", "--mountpoint", path)
    return json.loads(text)["filesystems"][-1] if code == 0 else None


def has_modules() -> bool:
    """Say whether the portability layer is built for the kernel that runs."""
    return run("modinfo", "--field", "filename", "mmfs26")[0] == 0


def build(*, act: bool) -> None:
    """Build the portability layer where it is missing."""
    if has_modules():
        return
    print(f"portability layer for {os.uname().release}")
    if not act:
        return
    code, text = run("mmbuildgpl")
    if code or not has_modules():
        sys.exit(f"mmbuildgpl: {text[-1500:]}\nare the headers of {os.uname().release} there?")


def must(*argv: str) -> None:
    """Run a command of GPFS; end with what it says when it fails."""
    code, text = run(*argv)
    if code:
        sys.exit(f"{' '.join(argv)}: {text}")


def add(expected: Expected) -> None:
    """Let a host of the cluster add this node as a client."""
    node = expected["node"]
    commands = (f"{MM}/mmaddnode -N {node} --accept", f"{MM}/mmchlicense client --accept -N {node}")
    refused = []
    for contact in expected["contacts"]:
        ssh = ("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", f"root@{contact}")
        for command in commands:
            code, text = run(*ssh, command)
            if code:
                refused.append(f"{contact}: {text.splitlines()[-1] if text else code}")
                break
        else:
            return
    sys.exit(
        f"no host of {expected['cluster']} added this node: {'; '.join(refused)}.\n"
        f"Its administrator can, on one of its hosts: {' && '.join(commands)}"
    )


def start() -> None:
    """Start GPFS and wait until the node is active."""
    must("mmstartup")
    end = time.monotonic() + ACTIVE_WAIT_S
    while (now := state()) != "active":
        if time.monotonic() > end:
            sys.exit(f"GPFS is {now} after {ACTIVE_WAIT_S} s: see /var/adm/ras/mmfs.log.latest")
        time.sleep(2)


def join(expected: Expected, *, act: bool) -> None:
    """Do, or tell, what lets the node be in the cluster with its settings."""
    settings = ",".join(f"{key}={value}" for key, value in sorted(expected["settings"].items()))
    configure = ("mmchconfig", settings, "-N", expected["node"])
    found = cluster_name()
    if found and found != expected["cluster"]:
        sys.exit(
            f"the node is in the GPFS cluster {found}, not {expected['cluster']}:"
            " remove it there first"
        )
    if not found:
        print(f"in the cluster {expected['cluster']}")
        if not act:
            return
        add(expected)
        must(*configure)
    if state() != "active":
        print("GPFS started")
        if act:
            start()
    elif changed := different(expected):
        print(f"settings: {', '.join(sorted(changed))}")
        if act and job_runs():
            sys.exit(f"a job runs here: not changed: {', '.join(sorted(changed))}")
        if act:
            must(*configure)
            must("mmshutdown")
            start()


def mount(expected: Expected, *, act: bool = True) -> None:
    """Mount, or tell, what isn't."""
    for wanted in expected["mounts"]:
        if mounted(wanted["path"]):
            continue
        print(f"mounted: {wanted['path']}")
        options = wanted.get("options", [])
        if act:
            Path(wanted["path"]).mkdir(parents=True, exist_ok=True)
            must(
                "mmmount",
                wanted["filesystem"],
                wanted["path"],
                *(["-o", ",".join(options)] if options else []),
            )


def differences(expected: Expected) -> Iterator[str]:
    """Yield everything that isn't as asked."""
    found = cluster_name()
    if found != expected["cluster"]:
        yield f"the node is in {found or 'no GPFS cluster'}, not in {expected['cluster']}"
    now = state()
    if now != "active":
        yield f"GPFS is {now} here"
    if not has_modules():
        yield f"there is no portability layer for {os.uname().release}"
    for key, value in different(expected).items() if now == "active" else ():
        yield f"GPFS runs with {key} {settings().get(key, 'unknown')}, not {value}"
    if run("systemctl", "is-enabled", "--quiet", UNIT)[0]:
        yield f"{UNIT} doesn't run with the node's start"
    for wanted in expected["mounts"]:
        path, there = wanted["path"], mounted(wanted["path"])
        if there is None:
            yield f"{path} is not mounted"
        elif (there["fstype"], there["source"].removeprefix("/dev/")) != (
            "gpfs",
            wanted["filesystem"],
        ):
            found_there = f"{there['source']} ({there['fstype']})"
            yield f"{path} is {found_there}, not {wanted['filesystem']} (gpfs)"
        elif run("stat", "--file-system", path, timeout=ANSWER_WAIT_S)[0]:
            yield f"{path} doesn't answer"


def main() -> None:
    """Act, or fail with what is wrong."""
    verb = sys.argv[1]
    if verb in {"build", "plan-build"}:
        build(act=verb == "build")
    elif verb == "mount":
        expected = json.loads(SETTINGS.read_text())
        if state() != "active":
            start()
        mount(expected)
    else:
        expected = json.load(sys.stdin)
        if verb != "verify":
            build(act=verb == "apply")  # a node that was restarted may have another kernel
            join(expected, act=verb == "apply")
            mount(expected, act=verb == "apply")
        elif wrong := list(differences(expected)):
            sys.exit("\n".join(wrong))


main()
