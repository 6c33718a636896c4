#!/usr/bin/python
"""Bring a node into the GPFS cluster that owns its file systems, or verify that it is there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpfs_client
short_description: Join the GPFS cluster that owns file systems and mount these, or verify it
description:
  - Builds the portability layer for the running kernel where it is missing.
  - A node can't add itself, so a host of the cluster does, over root's SSH, as GPFS' own commands go. Where that isn't
    allowed, the commands to run there are in the message.
  - GPFS is stopped for a change of its settings only where no job runs.
author: The gcluster authors
options:
  cluster:
    description: Name of the GPFS cluster; needed unless O(state=built).
    type: str
    default: ""
  node:
    description: Name of this node in the cluster; needed unless O(state=built).
    type: str
    default: ""
  contacts:
    description: Hosts of the cluster that root of this node may reach by SSH.
    type: list
    elements: str
    default: []
  settings:
    description: What mmchconfig sets for this node.
    type: dict
    default: {}
  mounts:
    description: File systems with their filesystem, path and options.
    type: list
    elements: dict
    default: []
  state:
    description: >-
      V(built) builds the portability layer alone, V(present) makes all of it so, V(verified) fails where the running node
      differs.
    type: str
    choices: [built, present, verified]
    default: present
attributes:
  check_mode: {support: full, description: Says what would change and changes nothing.}
"""

EXAMPLES = r"""
- name: Join the GPFS cluster and mount its file systems
  gcluster.cluster.gpfs_client:
    cluster: storage.example.edu
    node: node01
    contacts: [nsd01, nsd02]
    settings: {autoload: "yes", pagepool: "17179869184"}
    mounts: [{filesystem: fs1, path: /gpfs/fs1}]
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: ["mounted: /gpfs/fs1"]
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import job_runs, run
from ..module_utils.state import Failed, exit_with_differences, exit_with_progress

Asked = dict[str, Any]
UNIT = "gcluster-gpfs-mounts.service"
MM = "/usr/lpp/mmfs/bin"
FEWEST_FIELDS = 3
ACTIVE_WAIT_S, ANSWER_WAIT_S, COMMAND_LIMIT_S = 180, 10, 900
"""A node becomes active within seconds; a cluster that recovers takes minutes."""
ARGUMENTS: dict[str, Any] = {
    "cluster": {"type": "str", "default": ""},
    "node": {"type": "str", "default": ""},
    "contacts": {"type": "list", "elements": "str", "default": []},
    "settings": {"type": "dict", "default": {}},
    "mounts": {"type": "list", "elements": "dict", "default": []},
    "state": {"type": "str", "choices": ["built", "present", "verified"], "default": "present"},
}


def gpfs(*argv: str) -> tuple[int, str]:
    """Run a command of GPFS."""
    path = f"{os.environ.get('PATH', '')}:{MM}"
    return run(*argv, timeout_s=COMMAND_LIMIT_S, environment={"PATH": path})


def must(*argv: str) -> None:
    """Run a command of GPFS.

    Raises:
        Failed: with its message.
    """
    code, text = gpfs(*argv)
    if code:
        raise Failed(f"{' '.join(argv)}: {text}")


def rows(*argv: str) -> dict[str, list[dict[str, str]]]:
    """Return rows of a command's -Y output as dictionaries, by section ("" for one without)."""
    _, text = gpfs(*argv, "-Y")
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


def daemon_state() -> str:
    """Return the state of GPFS on this node: active, arbitrating, down, unknown."""
    found = rows("mmgetstate").get("", [])
    return found[0].get("state", "unknown") if found else "unknown"


def running_settings() -> dict[str, str]:
    """Return what GPFS runs with here."""
    found = rows("mmdiag", "--config").get("config", [])
    return {row.get("name", ""): row.get("value", "") for row in found}


def different(requested: Asked) -> dict[str, str]:
    """Return running settings that differ; autoload isn't among what mmdiag shows."""
    now = running_settings()
    shown = {key: str(value) for key, value in requested["settings"].items() if key != "autoload"}
    return {key: value for key, value in shown.items() if now.get(key) != value}


def mounted(path: str) -> dict[str, str] | None:
    """Return what is mounted at a path; None: nothing."""
    code, text = run("findmnt", "--json", "--output", "SOURCE,FSTYPE", "--mountpoint", path)
    if code:
        return None
    found: dict[str, str] = json.loads(text)["filesystems"][-1]
    return found


def has_modules() -> bool:
    """Return whether the portability layer is built for the running kernel."""
    return run("modinfo", "--field", "filename", "mmfs26")[0] == 0


def built(*, act: bool) -> Iterator[str]:
    """Build the portability layer where it is missing."""
    if has_modules():
        return
    yield f"portability layer for {os.uname().release}"
    if not act:
        return
    code, text = gpfs("mmbuildgpl")
    if code or not has_modules():
        raise Failed(f"mmbuildgpl: {text[-1500:]}\nare the headers of {os.uname().release} there?")


def add(requested: Asked) -> None:
    """Let a host of the cluster add this node as a client."""
    node = requested["node"]
    commands = (f"{MM}/mmaddnode -N {node} --accept", f"{MM}/mmchlicense client --accept -N {node}")
    refused = []
    for contact in requested["contacts"]:
        ssh = ("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", f"root@{contact}")
        for command in commands:
            code, text = gpfs(*ssh, command)
            if code:
                refused.append(f"{contact}: {text.splitlines()[-1] if text else code}")
                break
        else:
            return
    raise Failed(
        f"no host of {requested['cluster']} added this node: {'; '.join(refused)}.\n"
        f"Its administrator can, on one of its hosts: {' && '.join(commands)}"
    )


def start() -> None:
    """Start GPFS and wait until the node is active."""
    must("mmstartup")
    end = time.monotonic() + ACTIVE_WAIT_S
    while (now := daemon_state()) != "active":
        if time.monotonic() > end:
            raise Failed(f"GPFS is {now} after {ACTIVE_WAIT_S} s: see /var/adm/ras/mmfs.log.latest")
        time.sleep(2)


def joined(requested: Asked, *, act: bool) -> Iterator[str]:
    """Have the node be in the cluster with its settings."""
    settings = ",".join(f"{key}={value}" for key, value in sorted(requested["settings"].items()))
    configure = ("mmchconfig", settings, "-N", requested["node"])
    found = cluster_name()
    if found and found != requested["cluster"]:
        raise Failed(
            f"the node is in the GPFS cluster {found}, not {requested['cluster']}: remove it there first"
        )
    if not found:
        yield f"in the cluster {requested['cluster']}"
        if not act:
            return
        add(requested)
        must(*configure)
    if daemon_state() != "active":
        yield "GPFS started"
        if act:
            start()
    elif changed := different(requested):
        if act and job_runs():
            raise Failed(f"a job runs here: not changed: {', '.join(sorted(changed))}")
        yield f"settings: {', '.join(sorted(changed))}"
        if act:
            must(*configure)
            must("mmshutdown")
            start()


def mount(requested: Asked, *, act: bool) -> Iterator[str]:
    """Mount what isn't."""
    for wanted in requested["mounts"]:
        filesystem, path, options = wanted["filesystem"], wanted["path"], wanted.get("options")
        if mounted(path):
            continue
        yield f"mounted: {path}"
        if act:
            Path(path).mkdir(parents=True, exist_ok=True)
            must("mmmount", filesystem, path, *(["-o", ",".join(options)] if options else []))


def configure(requested: Asked, *, act: bool) -> Iterator[str]:
    """Yield what is changed."""
    yield from built(act=act)  # a node that was restarted may have another kernel
    if requested["state"] == "present":
        yield from joined(requested, act=act)
        yield from mount(requested, act=act)


def differences(requested: Asked) -> Iterator[str]:
    """Yield all differences."""
    found = cluster_name()
    if found != requested["cluster"]:
        yield f"the node is in {found or 'no GPFS cluster'}, not in {requested['cluster']}"
    now = daemon_state()
    if now != "active":
        yield f"GPFS is {now} here"
    if not has_modules():
        yield f"there is no portability layer for {os.uname().release}"
    for key, value in different(requested).items() if now == "active" else ():
        yield f"GPFS runs with {key} {running_settings().get(key, 'unknown')}, not {value}"
    if run("systemctl", "is-enabled", "--quiet", UNIT)[0]:
        yield f"{UNIT} doesn't run with the node's start"
    for wanted in requested["mounts"]:
        path, there = wanted["path"], mounted(wanted["path"])
        if there is None:
            yield f"{path} is not mounted"
            continue
        source, kind = there["source"].removeprefix("/dev/"), there["fstype"]
        if (kind, source) != ("gpfs", wanted["filesystem"]):
            yield f"{path} is {there['source']} ({kind}), not {wanted['filesystem']} (gpfs)"
        elif run("stat", "--file-system", path, timeout_s=ANSWER_WAIT_S)[0]:
            yield f"{path} doesn't answer"


def main() -> None:
    """Run the module."""
    asked_for = ["cluster", "node"]
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
        required_if=[("state", "present", asked_for), ("state", "verified", asked_for)],
    )
    if module.params["state"] == "verified":
        exit_with_differences(module, lambda: differences(module.params))
    exit_with_progress(module, configure(module.params, act=not module.check_mode))


if __name__ == "__main__":
    main()
