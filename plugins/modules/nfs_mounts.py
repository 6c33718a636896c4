#!/usr/bin/python
"""Mount what is wanted through systemd's mount units, or report the node's differences."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nfs_mounts
short_description: Mount NFS through systemd's mount units, and check mounts and exports
description:
  - A mount whose options changed is mounted again only when nothing uses it.
  - Units that are no longer requested are unmounted and removed, lazily never.
  - Verification checks what is mounted and served, and whether it answers within some seconds.
author: The gcluster authors
options:
  host:
    description: Name of this host; what it serves itself is bound and not mounted over the network.
    type: str
    required: true
  mounts:
    description: >-
      Mounts with path, server, export, host, connections, read_only and options; with tls and
      tls_port through a TLS tunnel of this node.
    type: list
    elements: dict
    default: []
  exports:
    description: What this host serves, with path, clients, root and read_only; only verified.
    type: list
    elements: dict
    default: []
  options:
    description: Mount options of all mounts; those of a mount come before them.
    type: list
    elements: str
    default: []
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
- name: Mount home directories
  gcluster.cluster.nfs_mounts:
    host: node01
    options: [vers=4.2, hard]
    mounts: [{path: /home, server: 10.0.0.5, export: /srv/home}]
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: ["mounted: /home"]
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.nfs_tls import (
    close_tunnels,
    open_tunnels,
    tunnel_differences,
    unit_of_tunnel,
)
from ..module_utils.node import is_active, run
from ..module_utils.state import STATE, Failed, exit_with_state

Mount = dict[str, Any]
Expected = dict[str, Any]

PROC = Path(os.environ.get("GCLUSTER_PROC", "/proc"))
"""GCLUSTER_PROC replaces /proc where a test sets the kernel's state."""
UNITS = Path("/etc/systemd/system")
HEAD = "# Written by gcluster for NFS. Changes made here are lost; change the spec.\n"
PORT, WAIT_S, SLOW_S = 2049, 10, 300
OLDER = "4.1"
"""Versions of servers without 4.2: Azure Files, Amazon EFS, older filers."""
UNSPOKEN = ("Protocol not supported", "version or transport protocol is not supported")
"""mount.nfs' message for a server without the version (nfs-utils, utils/mount/error.c)."""
SHOWN = ("vers", "proto", "nconnect", "port")
"""Options that the kernel shows as they were negotiated."""


def is_own(mount: Mount, expected: Expected) -> bool:
    """Return whether this node serves what it mounts."""
    return bool(mount.get("host") == expected["host"])


def options_of(mount: Mount, expected: Expected, version: str = "") -> list[str]:
    """Return mount options: those of the spec over the role's, of which a version may be another."""
    if is_own(mount, expected):
        return ["bind", *(["ro"] if mount.get("read_only") else [])]
    options: list[str] = mount.get("options", [])
    words = {option.partition("=")[0] for option in options}
    contrary = {
        "soft": "hard",
        "softerr": "hard",
        "suid": "nosuid",
        "dev": "nodev",
        "nfsvers": "vers",
        "atime": "noatime",
        "relatime": "noatime",
    }
    words |= {contrary[word] for word in words if word in contrary}
    connections = mount.get("connections", 8)
    own = [*expected["options"], *([f"nconnect={connections}"] if connections > 1 else [])]
    own.append("ro" if mount.get("read_only") else "rw")
    own += [f"port={mount['tls_port']}"] if mount.get("tls") else []
    own = [option for option in own if option.partition("=")[0] not in words]
    return [f"vers={version}" if version and o.startswith("vers=") else o for o in own] + options


def older_options(mount: Mount, expected: Expected) -> list[str]:
    """Return the options for a server without 4.2; [] where the spec sets a version."""
    older = options_of(mount, expected, OLDER)
    return older if older != options_of(mount, expected) else []


def unit_of(path: str) -> str:
    """Return the name of a mount's unit: systemd insists on it."""
    return run("systemd-escape", "--path", "--suffix=mount", path)[1]


def text_of(mount: Mount, expected: Expected, options: list[str]) -> str:
    """Return the unit of a mount."""
    own = is_own(mount, expected)
    tunnel = unit_of_tunnel(mount)
    named = "127.0.0.1" if tunnel else mount["server"]
    server = f"[{named}]" if ":" in named else named
    what = mount["export"] if own else f"{server}:{mount['export']}"
    after = "nfs-server.service" if own else tunnel or "network-online.target"
    return (
        f"{HEAD}[Unit]\nWants={after}\nAfter={after}\nBefore=slurmd.service remote-fs.target\n"
        f"[Mount]\nWhat={what}\nWhere={mount['path']}\nType={'none' if own else 'nfs'}\n"
        f"Options={','.join(options)}\nTimeoutSec=90\n"
        "[Install]\nWantedBy=remote-fs.target\n"
    )


def silence(server: str) -> str:
    """Return why a server doesn't answer, "" when it does."""
    end, why = time.monotonic() + WAIT_S, OSError()
    while time.monotonic() < end:
        try:
            socket.create_connection((server, PORT), timeout=WAIT_S).close()
        except OSError as error:
            why = error
            time.sleep(1)
        else:
            return ""
    return f"{server} doesn't answer on port {PORT}: {why}"


def stale(expected: Expected) -> Iterator[Path]:
    """Yield units of ours that are no longer wanted."""
    kept = {unit_of(mount["path"]) for mount in expected["mounts"]}
    for path in sorted(UNITS.glob("*.mount")):
        if path.name not in kept and path.read_text().startswith(HEAD):
            yield path


def mount_one(unit: str, mount: Mount, expected: Expected, *, act: bool) -> Iterator[str]:
    """Mount one path as in its unit; yield the changes."""
    file, older = UNITS / unit, older_options(mount, expected)
    texts = [text_of(mount, expected, options_of(mount, expected))]
    texts += [text_of(mount, expected, older)] if older else []
    same = file.exists() and file.read_text() in texts
    active = is_active(unit)
    if same and active:
        return
    yield f"{'mounted again' if active else 'mounted'}: {mount['path']}"
    if not act:
        return
    if not is_own(mount, expected) and (silent := silence(mount["server"])):
        raise Failed(f"{mount['path']} is not mounted: {silent}")
    if active and run("systemctl", "stop", unit, timeout_s=SLOW_S)[0]:
        raise Failed(
            f"{mount['path']} has new options and is in use: drain the node, then run up again"
        )
    why = ""
    for text in texts:
        file.write_text(text)
        run("systemctl", "daemon-reload")
        run("systemctl", "enable", unit)
        code, output = run("systemctl", "start", unit, timeout_s=SLOW_S)
        if not code:
            break
        _, said = run("journalctl", "--unit", unit, "--output=cat", "--lines=4", "--no-pager")
        why = why or said or output
        if not any(word in said for word in UNSPOKEN):
            raise Failed(f"{mount['path']} can't be mounted: {said or output}")
    else:
        raise Failed(f"{mount['path']} can't be mounted: {why}")
    if text != texts[0]:
        yield f"{mount['path']}: its server supports NFS {OLDER} and not 4.2"


def mount_all(expected: Expected, *, act: bool) -> Iterator[str]:
    """Bring the mounts to the wanted state; yield each change."""
    for path in stale(expected):
        yield f"unmounted: {path.name}"
        if act and run("systemctl", "disable", "--now", path.name, timeout_s=SLOW_S)[0]:
            raise Failed(
                f"{path.name} is no longer requested and in use: drain the node, then run up again"
            )
        if act:
            path.unlink()
            run("systemctl", "daemon-reload")
    yield from open_tunnels(expected["mounts"], act=act)
    for mount in expected["mounts"]:
        yield from mount_one(unit_of(mount["path"]), mount, expected, act=act)
    yield from close_tunnels(expected["mounts"], act=act)


def mounted(path: str) -> dict[str, str] | None:
    """Return what is mounted at a path: source, type, options; nothing where nothing is."""
    code, text = run("findmnt", "--json", "--output", "SOURCE,FSTYPE,OPTIONS", "--mountpoint", path)
    if code:
        return None
    found: dict[str, str] = json.loads(text)["filesystems"][-1]
    return found


def mount_differences(expected: Expected) -> Iterator[str]:
    """Yield what is wrong with the mounts."""
    for mount in expected["mounts"]:
        path, found = mount["path"], mounted(mount["path"])
        if found is None or not is_active(unit_of(path)):
            yield f"{path} is not mounted"
            continue
        if run("stat", "--file-system", path, timeout_s=WAIT_S)[0]:
            yield f"{path} doesn't answer"
        if is_own(mount, expected):
            continue
        if not found["fstype"].startswith("nfs"):
            yield f"{path} is {found['fstype']}, not nfs"
        shown = found["options"].split(",")
        older = older_options(mount, expected)
        old = bool(older) and f"Options={','.join(older)}\n" in _unit_text(path)
        for option in older if old else options_of(mount, expected):
            key = option.partition("=")[0]
            if (key in SHOWN or option in {"hard", "soft", "ro", "rw"}) and option not in shown:
                now = next((o for o in shown if o.partition("=")[0] == key), "not so")
                yield f"{path} was requested with {option} and is {now}"


def _unit_text(path: str) -> str:
    """Return the unit that is written for a mount point; "" where none is."""
    file = UNITS / unit_of(path)
    return file.read_text() if file.exists() else ""


def served() -> dict[str, dict[str, list[str]]]:
    """Return path -> networks that exportfs serves it to, each with its options."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in run("exportfs", "-s")[1].splitlines():
        path, _, rest = line.partition("  ")
        client, _, options = rest.strip().partition("(")
        found.setdefault(path, {})[client] = options.rstrip(")").split(",")
    return found


def export_differences(expected: Expected) -> Iterator[str]:
    """Yield what is wrong with what this node serves."""
    if not expected["exports"]:
        return
    if not is_active("nfs-server"):
        yield "nfs-server isn't running"
    if silent := silence("localhost"):
        yield silent
    versions = PROC / "fs/nfsd/versions"
    if not versions.exists() or "+4.2" not in versions.read_text().split():
        yield "the kernel's NFS server doesn't support 4.2"
    now = served()
    for export in expected["exports"]:
        for client in export.get("clients", []):
            options = now.get(export["path"], {}).get(client)
            if options is None:
                yield f"{export['path']} is not served to {client}"
                continue
            for wanted in (
                "ro" if export.get("read_only") else "rw",
                "no_root_squash" if export.get("root") else "root_squash",
            ):
                if wanted not in options:
                    yield f"{export['path']} is served to {client} without {wanted}"


ARGUMENTS: dict[str, Any] = {
    "host": {"type": "str", "required": True},
    "mounts": {"type": "list", "elements": "dict", "default": []},
    "exports": {"type": "list", "elements": "dict", "default": []},
    "options": {"type": "list", "elements": "str", "default": []},
    "state": STATE,
}


def main() -> None:
    """Mount what is wanted, or fail with the errors."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    expected = module.params
    exit_with_state(
        module,
        lambda act: mount_all(expected, act=act),
        lambda: [
            *export_differences(expected),
            *tunnel_differences(expected["mounts"]),
            *mount_differences(expected),
        ],
    )


if __name__ == "__main__":
    main()
