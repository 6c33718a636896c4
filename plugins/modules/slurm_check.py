#!/usr/bin/python
"""Fail where Slurm doesn't work on a host, with the reason."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_check
short_description: Check that Slurm works on a host
description:
  - On a controller slurmctld answers, every partition is up and, where slurmrestd is set up, it lets in who has
    a token and only those. On a node slurmd runs and the controller counts the node as fit for jobs. On a login
    node the controller answers.
  - A node that this change itself has drained counts as fit once it has registered.
author: The gcluster authors
options:
  role:
    description: What the host is to Slurm.
    type: str
    choices: [controller, node, login]
    required: true
  wait_seconds:
    description: Seconds to wait until it works.
    type: int
    default: 0
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Wait until the node is fit for jobs
  gcluster.cluster.slurm_check: {role: node, wait_seconds: 60}
"""

RETURN = r"""
differences:
  description: Why it doesn't work.
  returned: failure
  type: list
  elements: str
  sample: ["the controller counts gpu001 as IDLE+DRAIN: broken"]
"""

import contextlib
import json
import re
import socket
import time
import urllib.error
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ..module_utils.node import first_line, journal_of, run, system_path
from ..module_utils.slurm import POLL_INTERVAL_S, controller_problem
from ..module_utils.state import Failed, exit_with_differences

CONFIGURATION = "/run/slurm/conf"
"""Where slurmd keeps the files that the controller gave it."""
CONTROLLERS = "/sys/fs/cgroup/cgroup.controllers"
REST_SETTINGS, REST_TIMEOUT_S = "/etc/slurm/slurmrestd.env", 10
OWN_DRAIN = "gcluster up: "
"""How the reason begins with which `up` takes a node out for its change."""
ARGUMENTS: dict[str, Any] = {
    "role": {"type": "str", "choices": ["controller", "node", "login"], "required": True},
    "wait_seconds": {"type": "int", "default": 0},
}


def problem_of(role: str) -> str:
    """Return why Slurm doesn't work here; "" where it does."""
    if role == "node":
        return (
            slurmd_problem()
            or cgroups_problem()
            or restart_problem()
            or node_problem(socket.gethostname())
        )
    if role == "login":
        return controller_problem()
    return controller_problem() or partitions_problem() or rest_problem()


def partitions_problem() -> str:
    """Return which partitions aren't up."""
    lines = run("sinfo", "--noheader", "--format", "%R %a")[1].splitlines()
    down = [line for line in lines if not line.endswith(" up")]
    return f"not every partition is up: {', '.join(down)}" if down else ""


def slurmd_problem() -> str:
    """Return why slurmd doesn't run."""
    if run("systemctl", "is-active", "slurmd")[1] == "active":
        return ""
    return f"slurmd isn't running: {journal_of('slurmd')}"


def cgroups_problem() -> str:
    """Return what the kernel lacks to keep jobs to what they were given.

    Without it slurmd starts all the same, and every job fails.
    """
    requested = first_line(system_path(f"{CONFIGURATION}/cgroup.conf"))
    has = first_line(system_path(CONTROLLERS))
    if not requested or re.search(r"(?im)^CgroupPlugin=disabled", requested) or not has:
        return ""  # without that file it's cgroup v1: slurmd reports itself what it misses there
    lacks = next((name for name in ("cpuset", "memory") if name not in has.split()), "")
    if not lacks:
        return ""
    return f"the kernel gives no cgroup controller {lacks}: see cgroup_disable on its command line"


def restart_problem() -> str:
    """Return that this node is about to report its restart; it counts as down for a moment then."""
    if run("systemctl", "is-active", "gcluster-slurm-reboot")[1] == "activating":
        return "its restart isn't reported to the controller yet: see gcluster-slurm-reboot.service"
    return ""


def node_problem(node: str) -> str:
    """Return why the controller gives this node no jobs."""
    code, output = run("scontrol", "--oneliner", "show", "node", node)
    if code:
        return f"the controller doesn't report the node {node}: {output}"
    state, reason = word_of("State", output), after("Reason", output)
    if re.search("DOWN|DRAIN|INVAL|FAIL", state):
        if reason.startswith(OWN_DRAIN) and not re.search("DOWN|INVAL|FAIL", state):
            return ""  # it has registered, and goes back to jobs when all is done
        return f"the controller counts {node} as {state}: {reason or 'no reason given'}"
    if re.search("UNKNOWN|NOT_RESPONDING", state):
        # A reason that is still set here is from an earlier life of the node.
        return f"the controller counts {node} as {state}: it hasn't registered yet"
    return ""


def word_of(key: str, output: str) -> str:
    """Return the value of a key in scontrol's output; "" for none."""
    found = re.search(rf" {key}=(\S*)", output)
    return found[1] if found else ""


def after(key: str, output: str) -> str:
    """Return all that scontrol prints from a key on; "" for nothing."""
    return output.partition(f" {key}=")[2]


def rest_problem() -> str:
    """Return why slurmrestd doesn't serve slurmctld here; "" where it does or isn't set up."""
    settings = first_line(system_path(REST_SETTINGS))
    port = re.search(r"(?m)^GCLUSTER_REST_LISTEN=.*:(\d+)$", settings)
    try:
        if port:
            request_versions(f"http://127.0.0.1:{port[1]}")
    except Failed as failed:
        return f"slurmrestd: {failed}"
    return ""


def request_versions(base: str) -> None:
    """Query slurmctld through slurmrestd, with a new token and without one.

    Raises:
        Failed: it doesn't respond for slurmctld, or accepts requests without a token.
    """
    code, made = run("scontrol", "token", "lifespan=60")
    token = made.rpartition("SLURM_JWT=")[2] if "SLURM_JWT=" in made else ""
    if code or not token:
        raise Failed(f"slurmctld makes no token: {made or 'no word why'}")
    try:
        ping = newest_ping(rest_answer(f"{base}/openapi/v3", token)["paths"])
        if not ping:
            raise Failed("its API has no ping")
        errors = rest_answer(base + ping, token).get("errors")
        if errors:
            raise Failed(f"slurmctld does not answer it: {errors}")
        with contextlib.suppress(urllib.error.HTTPError):
            rest_answer(base + ping, "")
            raise Failed("it lets in who has no token")
    except (OSError, ValueError, KeyError) as error:
        raise Failed(f"no answer at {base}: {error}") from error


def newest_ping(paths: list[str]) -> str:
    """Return the path of the newest API version's query of the controllers."""
    pings = [p for p in paths if p.startswith("/slurm/v") and p.strip("/").endswith("/ping")]
    return max(pings, default="")


def rest_answer(url: str, token: str) -> dict[str, Any]:
    """Return what slurmrestd answers; without a token ("") none is sent."""
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token} if token else {}
    with open_url(url, headers=headers, timeout=REST_TIMEOUT_S, use_proxy=False) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def main() -> None:
    """Poll until it works or the time is over."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    until = time.monotonic() + module.params["wait_seconds"]
    while (problem := problem_of(module.params["role"])) and time.monotonic() < until:
        time.sleep(POLL_INTERVAL_S)
    exit_with_differences(module, lambda: [problem] if problem else [])


if __name__ == "__main__":
    main()
