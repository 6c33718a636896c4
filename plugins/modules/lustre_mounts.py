#!/usr/bin/python
"""Bring LNet and the Lustre mounts up, or report their errors; never hangs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lustre_mounts
short_description: Bring LNet and the Lustre mounts up, or verify them
description:
  - Verification checks the running modules, LNet and servers, not the files just written.
  - A Lustre server that is away leaves processes waiting in the kernel, which no signal ends. Every call
    has a time limit, after which it is left behind.
author: The gcluster authors
options:
  version:
    description: Version of Lustre that is to run, or its beginning; empty for any.
    type: str
    default: ""
  seconds:
    description: Time that a mount may take.
    type: int
    required: true
  networks:
    description: LNet's networks.
    type: list
    elements: str
    required: true
  routes:
    description: Networks that routers lead to, each with C(net) and C(gateway), the NID of a router.
    type: list
    elements: dict
    default: []
  mounts:
    description: Mounts with path, device, the number of OSTs, 0 for one or more, and C(tunables), parameters of the client.
    type: list
    elements: dict
    required: true
  units:
    description: Names of the mounts' units, in the same order.
    type: list
    elements: str
    required: true
  state:
    description: V(present) makes it so; V(verified) changes nothing and fails where the node differs.
    type: str
    choices: [present, verified]
    default: present
attributes:
  check_mode:
    description: Says what would change and changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Mount scratch
  gcluster.cluster.lustre_mounts:
    seconds: 60
    networks: [tcp]
    mounts: [{path: /scratch, device: "10.0.0.5@tcp:/scratch"}]
    units: [scratch.mount]
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: ["10.0.0.5@tcp:/scratch on /scratch"]
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run_detached
from ..module_utils.state import STATE, Failed, exit_with_state

Mount = dict[str, Any]
Expected = dict[str, Any]

FSTYPE = os.environ.get("GCLUSTER_LUSTRE_FSTYPE", "lustre")
UNITS = Path("/etc/systemd/system")
MARK = "# Lustre mount, written by gcluster"
ASK_S = 20


def mounted() -> dict[str, str]:
    """Return path -> device of what is mounted, without touching it."""
    found = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, path, kind, _ = line.split(" ", 3)
        if kind == FSTYPE:
            found[path.replace("\\040", " ")] = device
    return found


def nets() -> tuple[dict[str, list[str]], str]:
    """Return LNet's networks -> status of their interfaces; a message where LNet isn't up."""
    code, text = query("lnetctl", "net", "show")
    if code:
        return {}, f"LNet is not up: {text}"
    found: dict[str, list[str]] = {}
    net = ""
    for line in text.splitlines():
        key, _, value = line.strip().lstrip("- ").partition(":")
        if key == "net type":
            net = value.strip()
            found[net] = []
        elif key == "status":
            found[net].append(value.strip())
    return found, ""


def unreachable(device: str) -> str:
    """Return what is wrong with the way to a file system's management servers: one must answer."""
    wrong = []
    for nid in nids_of(device):
        code, text = query("lctl", "ping", nid)
        if code == 0:
            return ""
        wrong.append(f"{nid}: {text.splitlines()[-1] if text else 'no answer'}")
    return "no management server answers over LNet: " + "; ".join(wrong)


def nids_of(device: str) -> list[str]:
    """Return the NIDs of "A@tcp,B@tcp1:C@tcp:/name"; a colon parts failover partners."""
    servers = device.rsplit(":/", 1)[0]
    return [nid for partner in servers.split(":") for nid in partner.split(",")]


def stale(expected: Expected) -> Iterator[Path]:
    """Yield units of mounts that are no longer wanted."""
    wanted = {mount["unit"] for mount in expected["mounts"]}
    for unit in UNITS.glob("*.mount"):
        if unit.name not in wanted and unit.read_text().startswith(MARK):
            yield unit


def changes(expected: Expected) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield (what, commands) that bring the node to the wanted state."""
    present, down = nets()
    if down:
        yield "LNet", [("systemctl", "restart", "lnet")]
    elif missing := [net for net in expected["networks"] if net not in present]:
        yield f"LNet: {', '.join(missing)}", [("lnetctl", "import", "/etc/lnet.conf")]
    elif unrouted := [route for route in expected["routes"] if way(route) not in routes()]:
        what = ", ".join(f"{route['net']} by {route['gateway']}" for route in unrouted)
        yield f"LNet: {what}", [("lnetctl", "import", "/etc/lnet.conf")]
    now = mounted()
    for unit in stale(expected):
        yield (
            f"{unit.name} is mounted no more",
            [("systemctl", "disable", "--now", unit.name), ("rm", str(unit))],
        )
    for mount in expected["mounts"]:
        path, unit = mount["path"], mount["unit"]
        if path not in now:
            yield f"{mount['device']} on {path}", [("systemctl", "start", unit)]
        elif now[path] != mount["device"]:
            yield (
                f"{mount['device']} on {path} instead of {now[path]}",
                [("systemctl", "restart", unit)],
            )
        for name, value in tunable_differences(mount):
            yield f"{name} is {value}", [("lctl", "set_param", f"{name}={value}")]


def tunable_differences(mount: Mount) -> Iterator[tuple[str, str]]:
    """Yield the parameters that some part of the client has otherwise."""
    for name, value in mount["tunables"].items():
        code, text = query("lctl", "get_param", "-n", name)
        if code or set(text.split()) != {value}:
            yield name, value


def way(route: dict[str, str]) -> tuple[str, str]:
    """Return a route's network and router."""
    return route["net"], route["gateway"]


def routes() -> dict[tuple[str, str], str]:
    """Return LNet's routes, network and router -> their state, "up" or "down"."""
    _, text = query("lnetctl", "route", "show", "--verbose")
    found: dict[tuple[str, str], str] = {}
    entry: dict[str, str] = {}
    for line in [*text.splitlines(), "- net:"]:
        key, _, value = line.strip().lstrip("- ").partition(":")
        if key == "net" and "gateway" in entry:
            found[entry["net"], entry["gateway"]] = entry.get("state", "")
            entry = {}
        entry[key] = value.strip()
    return found


def mount_all(expected: Expected, *, act: bool) -> Iterator[str]:
    """Bring LNet and the mounts up, yield each change; a failed mount has the reason."""
    for what, commands in changes(expected):
        yield what
        for command in commands if act else ():
            code, text = run_detached(*command, timeout_s=expected["seconds"] + ASK_S)
            if code:
                raise Failed("\n".join([f"{' '.join(command)}: {text}", *reasons(expected)]))


def reasons(expected: Expected) -> list[str]:
    """Return what may be why a mount failed."""
    _, down = nets()
    if down:
        return [down]
    found = [f"{m['path']}: {unreachable(m['device'])}" for m in expected["mounts"]]
    silent = [line for line in found if not line.endswith(": ")]
    return silent or ["the management servers answer over LNet"]


def is_of(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, which may be its prefix."""
    return version == wanted or version.startswith((f"{wanted}.", f"{wanted}-", f"{wanted}_"))


def differences(expected: Expected) -> list[str]:
    """Return all differences on the running node."""
    code, text = query("lctl", "get_param", "-n", "version")
    version = text.split()[-1] if code == 0 and text else "none"
    wrong = []
    if code:
        wrong.append(f"Lustre's modules are not loaded: {text}")
    elif expected["version"] and not is_of(version, expected["version"]):
        wrong.append(f"Lustre {version} runs, not {expected['version']}")
    present, down = nets()
    wrong += [down] if down else []
    for net in () if down else expected["networks"]:
        states = present.get(net, [])
        if not states:
            wrong.append(f"LNet has no network {net}")
        elif "up" not in states or "down" in states:
            wrong.append(f"LNet's {net} has interfaces that are down: {', '.join(states)}")
    now = mounted()
    for mount in expected["mounts"]:
        wrong += [f"{mount['path']}: {what}" for what in mount_differences(mount, now)]
        if mount["path"] in now:
            wrong += [f"not {name}={value}" for name, value in tunable_differences(mount)]
    return wrong + route_differences(expected["routes"])


def route_differences(requested: list[dict[str, str]]) -> list[str]:
    """Return routers that are not known, or away: one that is up is enough for a network."""
    if not requested:
        return []
    found = routes()
    wrong = [
        f"LNet has no route to {r['net']} by {r['gateway']}"
        for r in requested
        if way(r) not in found
    ]
    for net in sorted({route["net"] for route in requested}):
        states = {gateway: state for (to, gateway), state in found.items() if to == net}
        if states and "up" not in states.values():
            wrong.append(f"no router to {net} is up: {', '.join(states)}")
    return wrong


def mount_differences(mount: Mount, now: dict[str, str]) -> list[str]:
    """Return what is wrong with one mount."""
    path, device = mount["path"], mount["device"]
    if path not in now:
        return ["not mounted", *filter(None, [unreachable(device)])]
    if now[path] != device:
        return [f"{now[path]} is mounted, not {device}"]
    if silent := unreachable(device):
        return [silent]
    began = time.monotonic()
    code, text = query("stat", "--file-system", path)
    if code:
        return [f"does not answer ({time.monotonic() - began:.0f} s): {text}"]
    return target_differences(mount)


def target_differences(mount: Mount) -> list[str]:
    """Return targets that are inactive or missing, and whether the number of OSTs is as wanted."""
    code, text = query("lfs", "osts", mount["path"])
    if code:
        return [f"lfs osts: {text}"]
    osts = [line.split() for line in text.splitlines() if "OST" in line and "_UUID" in line]
    wrong = [f"{ost[1].removesuffix('_UUID')} is {ost[-1]}" for ost in osts if ost[-1] != "ACTIVE"]
    if not osts or (mount["osts"] and len(osts) != mount["osts"]):
        wrong.append(f"{len(osts)} OSTs, not {mount['osts'] or 'one or more'}")
    _, text = query("lfs", "check", "servers", mount["path"])
    lost = [line for line in text.splitlines() if line and not line.endswith("active.")]
    return wrong + [f"lfs check servers: {line}" for line in lost]


def query(*argv: str) -> tuple[int, str]:
    """Run a program within a time limit; return its status and what it printed."""
    return run_detached(*argv, timeout_s=ASK_S)


ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "default": ""},
    "seconds": {"type": "int", "required": True},
    "networks": {"type": "list", "elements": "str", "required": True},
    "routes": {"type": "list", "elements": "dict", "default": []},
    "mounts": {"type": "list", "elements": "dict", "required": True},
    "units": {"type": "list", "elements": "str", "required": True},
    "state": STATE,
}


def main() -> None:
    """Mount, or fail with the differences."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    expected = module.params
    for mount, unit in zip(expected["mounts"], expected["units"]):  # 3.9 has no strict
        mount.update(unit=unit, osts=mount.get("osts", 0), tunables=mount.get("tunables", {}))
    exit_with_state(module, lambda act: mount_all(expected, act=act), lambda: differences(expected))


if __name__ == "__main__":
    main()
