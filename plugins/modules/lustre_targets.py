#!/usr/bin/python
"""Format, mount and check the Lustre targets of this host; nothing that holds data is formatted."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lustre_targets
short_description: Format, mount and check the Lustre targets of this host
description:
  - The first host has the MGS with MDT0000 and all other MDTs, every one has its OSTs.
  - A device is formatted only where all of this is so. O(format) is set, it is named by /dev/disk/by-id, it
    is a disk of its own that is not in use, blkid and wipefs find nothing on it, and its beginning, end and
    samples between are zeros. mkfs.lustre never formats again.
author: The gcluster authors
options:
  servers:
    description: The file system and its servers.
    type: dict
    required: true
    suboptions:
      managed:
        description: First line of the units that are written.
        type: str
        required: true
      host:
        description: Name of this host.
        type: str
        required: true
      fsname:
        description: Name of the file system.
        type: str
        required: true
      hosts:
        description: Name and address of all servers, in the file system's order.
        type: list
        elements: dict
        required: true
      network:
        description: LNet's network.
        type: str
        required: true
      backend:
        description: Either ldiskfs or zfs.
        type: str
        required: true
      failover:
        description: Whether pairs of hosts serve each other's targets.
        type: bool
        default: false
      format:
        description: The operator's word that blank devices may be formatted.
        type: bool
        default: false
      seconds:
        description: Time that a mount may take.
        type: int
        required: true
      metadata_devices:
        description: Devices of the first host's MDTs.
        type: list
        elements: str
        required: true
      object_devices:
        description: Devices of every host's OSTs.
        type: list
        elements: str
        required: true
  state:
    description:
      - V(present) formats and mounts; V(usable) refuses each device that isn't this target or blank;
        V(verified) fails where the running server differs.
    type: str
    choices: [present, usable, verified]
    default: present
attributes:
  check_mode:
    description: Says what would change and changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Check the devices
  gcluster.cluster.lustre_targets:
    servers:
      managed: Written by gcluster.
      host: oss01
      fsname: scratch
      hosts: [{name: oss01, address: 10.0.8.1}]
      network: tcp
      backend: ldiskfs
      seconds: 60
      metadata_devices: [/dev/disk/by-id/m]
      object_devices: [/dev/disk/by-id/a]
    state: usable
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: ["mount scratch-OST0000"]
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run
from ..module_utils.state import Failed, exit_with_differences, exit_with_state

BY_ID = "/dev/disk/by-id/"
FSTYPE = os.environ.get("GCLUSTER_LUSTRE_FSTYPE", "lustre")
Target = dict[str, Any]
Wanted = dict[str, Any]
PIECE = 1 << 20
SAMPLES = 64
NAME_COLUMN = 3
ASK_S = 30
NOTHING_FOUND = 2
"""blkid's status for a device without known content."""


def targets(wanted: Wanted) -> list[Target]:
    """Return this host's targets: name, device, and how mkfs.lustre is to make each."""
    names = [host["name"] for host in wanted["hosts"]]
    if wanted["host"] not in names:
        raise Failed(f"{wanted['host']} is none of the file system's servers: {', '.join(names)}")
    place = names.index(wanted["host"])
    managers = wanted["hosts"][: 2 if wanted["failover"] else 1]
    found = []
    if place == 0:
        found += [
            target(wanted, place, "MDT", index, device=device, more=["--mgs"] if index == 0 else [])
            for index, device in enumerate(wanted["metadata_devices"])
        ]
    first = place * len(wanted["object_devices"])
    found += [
        target(wanted, place, "OST", first + index, device=device, more=[])
        for index, device in enumerate(wanted["object_devices"])
    ]
    nodes = [f"--mgsnode={nid(wanted, host)}" for host in managers]
    for one in found:
        if "--mgs" not in one["options"]:
            one["options"] += nodes
    return found


def nid(wanted: Wanted, host: dict[str, str]) -> str:
    """Return a host's NID."""
    return f"{host['address']}@{wanted['network']}"


def partners(wanted: Wanted, place: int) -> list[dict[str, str]]:
    """Return the hosts that may serve a host's targets: itself, and its partner in pairs."""
    if not wanted["failover"]:
        return [wanted["hosts"][place]]
    pair = wanted["hosts"][place - place % 2 : place - place % 2 + 2]
    return [wanted["hosts"][place], *(host for host in pair if host != wanted["hosts"][place])]


def target(
    wanted: Wanted, place: int, kind: str, index: int, *, device: str, more: list[str]
) -> Target:
    """Return one target."""
    name = f"{wanted['fsname']}-{kind}{index:04x}"
    nodes = partners(wanted, place) if wanted["failover"] else []
    serving = [f"--servicenode={nid(wanted, host)}" for host in nodes]
    options = [f"--{kind.lower()}", f"--fsname={wanted['fsname']}", f"--index={index}"]
    options.append(f"--backfstype={wanted['backend']}")
    zfs = wanted["backend"] == "zfs"
    # A pool that two hosts reach is imported by one of them only: multihost holds the other off.
    return {
        "name": name,
        "device": device,
        "dataset": f"{name}/{kind.lower()}" if zfs else device,
        "mount": f"/srv/lustre/{name}",
        "options": [*options, *more, *serving],
    }


def label_of(one: Target, backend: str) -> str:
    """Return the target that a device holds already, or nothing."""
    if backend == "zfs":
        code, text = query("zfs", "get", "-H", "-o", "value", "lustre:svname", one["dataset"])
        found = text if code == 0 else ""
    else:
        code, found = query(
            "blkid", "--probe", "--match-tag", "LABEL", "--output", "value", one["device"]
        )
    # Until it has registered at the MGS a target's label has ':' or '=' instead of '-'.
    return re.sub("[:=]", "-", found, count=1) if code == 0 else ""


def size_of(descriptor: int) -> int:
    """Return the size of an open disk or file, in bytes."""
    return os.lseek(descriptor, 0, os.SEEK_END)


def not_zero(descriptor: int) -> int | None:
    """Return where a disk first isn't zero, checking its start, its end and samples between."""
    size = size_of(descriptor)
    step = max(PIECE, size // SAMPLES // PIECE * PIECE)
    ends = {p for p in (0, PIECE, size - PIECE, size - 2 * PIECE) if p >= 0}
    places = sorted({*range(0, size, step), *ends})
    return next((p for p in places if os.pread(descriptor, PIECE, p).strip(b"\0")), None)


def device_content(device: str) -> str:
    """Return what is on a device, or in the way of formatting it; "" where it is blank and free."""
    real = Path(device).resolve()
    if not real.exists():
        return "it isn't there"
    is_block = stat.S_ISBLK(real.stat().st_mode)
    if not (is_block or os.environ.get("GCLUSTER_DISKS") == "files"):
        return "it is no block device"
    code, text = query("wipefs", "--no-act", "--noheadings", "--output", "TYPE,OFFSET", str(real))
    if code or text:
        return f"it isn't blank: {' '.join(text.split()) or 'wipefs failed'}"
    code, text = query("blkid", "--probe", str(real))
    if code != NOTHING_FOUND:
        return f"it isn't blank: {text or f'blkid ended with {code}'}"
    block = Path("/sys/class/block", real.name)
    if any(block.glob(f"{real.name}*/partition")) or any(block.glob("holders/*")):
        return "it has partitions, or something is built on it"
    return unsigned_data(real, is_block=is_block)


def unsigned_data(disk: Path, *, is_block: bool) -> str:
    """Return why a disk without a signature isn't blank and free, "" where it is."""
    try:
        # Exclusive: fails where the disk is mounted, or in a RAID or volume group.
        descriptor = os.open(disk, os.O_RDONLY | (os.O_EXCL if is_block else 0))
    except OSError as error:
        return f"it is in use: {error.strerror}"
    try:
        place = not_zero(descriptor)
    finally:
        os.close(descriptor)
    return (
        ""
        if place is None
        else f"it isn't blank: there is data at byte {place} without a signature"
    )


def refusal(one: Target, wanted: Wanted) -> str:
    """Return why a target can't be used or made; "" where it can."""
    found = label_of(one, wanted["backend"])
    if found == one["name"]:
        return ""
    if found:
        return f"it holds {found}, not {one['name']}"
    if what := device_content(one["device"]):
        return what
    if not one["device"].startswith(BY_ID):
        return (
            f"it is blank, but named {one['device']}, which may be another disk after the next"
            f" start: name it by {BY_ID}"
        )
    if not wanted["format"]:
        return "it is blank, and formatting it needs the word format: true under servers"
    return ""


def refuse_wrong(wanted: Wanted) -> None:
    """Fail with every device that can't be used, before anything is touched."""
    wrong = [
        f"{one['device']} ({one['name']}): {why}"
        for one in targets(wanted)
        if (why := refusal(one, wanted))
    ]
    if wrong:
        wrong.append("Nothing was changed. gcluster never wipes a disk: that is yours to do")
        raise Failed("\n".join(wrong))


def mounted() -> dict[str, str]:
    """Return path -> type of what is mounted."""
    rows = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return {row[1]: row[2] for row in rows}


def make(one: Target, wanted: Wanted) -> None:
    """Format one device, after one more check."""
    if why := refusal(one, wanted):
        raise Failed(f"{one['device']} ({one['name']}): {why}")
    if wanted["backend"] == "zfs":
        pool = ["zpool", "create", "-o", "ashift=12", "-O", "canmount=off"]
        pool += ["-o", "multihost=on"] if wanted["failover"] else []
        must(*pool, one["name"], one["device"])
    must("mkfs.lustre", *one["options"], one["dataset"], seconds=3600)


def must(*argv: str, seconds: float = ASK_S) -> None:
    """Run a program that has to succeed."""
    code, text = run(*argv, timeout_s=seconds)
    if code:
        raise Failed(f"{' '.join(argv)}: {text}")


def mount_all(wanted: Wanted, *, act: bool) -> Iterator[str]:
    """Format what is blank, then mount in order: the MGS, MDTs, OSTs; yield each change."""
    refuse_wrong(wanted)
    for one in targets(wanted):
        if label_of(one, wanted["backend"]) != one["name"]:
            yield f"format {one['device']} as {one['name']}"
            if act:
                make(one, wanted)
        if mounted().get(one["mount"]) != FSTYPE:
            yield f"mount {one['name']}"
            if act:
                Path(one["mount"]).mkdir(parents=True, exist_ok=True)
                write_unit(one, wanted)
                must("systemctl", "enable", "--now", unit_of(one), seconds=wanted["seconds"])


def unit_of(one: Target) -> str:
    """Return the name of a target's mount unit."""
    mount: str = one["mount"]
    return mount.strip("/").replace("-", "\\x2d").replace("/", "-") + ".mount"


def write_unit(one: Target, wanted: Wanted) -> None:
    """Let systemd mount a target: after LNet, OSTs and MDTs after the MGS of the same host."""
    text = (
        f"# {wanted['managed']}\n[Unit]\nDescription=Lustre target {one['name']}\nRequires=lnet.service\n"
        f"After=lnet.service zfs-import.target\nBefore=remote-fs.target\n\n[Mount]\nWhat={one['dataset']}\n"
        f"Where={one['mount']}\nType=lustre\nOptions=_netdev,retry=5\nTimeoutSec={wanted['seconds']}\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    Path("/etc/systemd/system", unit_of(one)).write_text(text)
    must("systemctl", "daemon-reload")


def differences(wanted: Wanted) -> list[str]:
    """Return all differences on the running server."""
    wrong = [
        f"{one['name']} is not mounted"
        for one in targets(wanted)
        if mounted().get(one["mount"]) != FSTYPE
    ]
    code, text = query("lctl", "get_param", "-n", "health_check")
    if code or text.splitlines()[:1] != ["healthy"]:
        wrong.append(f"the servers' health check says: {text}")
    code, text = query("lctl", "dl")
    rows = [line.split() for line in text.splitlines()]
    states = {row[3]: row[1] for row in rows if len(row) > NAME_COLUMN}
    for one in targets(wanted):
        if states.get(one["name"]) != "UP":
            now = states.get(one["name"], "not among the running targets")
            wrong.append(f"{one['name']} is {now}")
    if any("--mgs" in one["options"] for one in targets(wanted)) and states.get("MGS") != "UP":
        wrong.append(f"the MGS is {states.get('MGS', 'not running')}")
    return wrong


def query(*argv: str) -> tuple[int, str]:
    """Run a program within a time limit; return its status and what it printed."""
    return run(*argv, timeout_s=ASK_S)


SERVERS: dict[str, Any] = {
    "managed": {"type": "str", "required": True},
    "host": {"type": "str", "required": True},
    "fsname": {"type": "str", "required": True},
    "hosts": {"type": "list", "elements": "dict", "required": True},
    "network": {"type": "str", "required": True},
    "backend": {"type": "str", "required": True},
    "failover": {"type": "bool", "default": False},
    "format": {"type": "bool", "default": False},
    "seconds": {"type": "int", "required": True},
    "metadata_devices": {"type": "list", "elements": "str", "required": True},
    "object_devices": {"type": "list", "elements": "str", "required": True},
}
ARGUMENTS: dict[str, Any] = {
    "servers": {"type": "dict", "required": True, "options": SERVERS},
    "state": {"type": "str", "choices": ["present", "usable", "verified"], "default": "present"},
}


def unusable(wanted: Wanted) -> list[str]:
    """Return nothing; fail where a device can't be used."""
    refuse_wrong(wanted)
    return []


def main() -> None:
    """Format and mount, or fail with what is wrong."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    servers = module.params["servers"]
    if module.params["state"] == "usable":
        exit_with_differences(module, lambda: unusable(servers))
    exit_with_state(module, lambda act: mount_all(servers, act=act), lambda: differences(servers))


if __name__ == "__main__":
    main()
