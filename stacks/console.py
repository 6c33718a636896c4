"""Nodes that tell their SSH host key on their console: a cloud-config, and how it is read back.

For clouds that let the owner of an account read a machine's console. The node makes its key itself,
cloud-init prints the public half, and nobody logs in to a node whose key was not read that way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import msgspec

from ..schemas.decoding import decode_json
from . import atomic, sshd

BEGIN = "-----BEGIN SSH HOST KEY KEYS-----"
END = "-----END SSH HOST KEY KEYS-----"
"""How cloud-init's module keys_to_console marks the keys on the console."""
_AT_ONCE = 8
"""Consoles read at the same time: an account's request rate is shared with everybody in it."""
_PAUSE_S = 10.0


def cloud_config(
    *, user: str, authorized_key: str, more: Mapping[str, object] | None = None
) -> str:
    """Return the cloud-config of a node.

    Args:
        user: login user; may become root without a password.
        authorized_key: public key that may log in.
        more: further modules of cloud-init, by their key.
    """
    config = {
        "users": [
            {
                "name": user,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "shell": "/bin/bash",
                "lock_passwd": True,
                "ssh_authorized_keys": [authorized_key],
            }
        ],
        "disable_root": True,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_genkeytypes": ["ed25519"],
        "ssh": {"emit_keys_to_console": True},
        "write_files": [
            {
                "path": sshd.FILE,
                "permissions": "0644",
                "content": sshd.RULES,
            }
        ],
        **(more or {}),
    }
    # cloud-config is YAML, and JSON is YAML: no quoting of ours can go wrong.
    return f"#cloud-config\n{json.dumps(config, indent=1)}\n"


def host_keys(console: str) -> tuple[str, ...]:
    """Return the public host keys that a console shows last, () while there are none.

    Lines may carry what the console puts before them ("ci-info: ", "[  12.3] cloud-init[9]: ").
    """
    _, found, rest = console.rpartition(BEGIN)
    if not found or END not in rest:
        return ()
    lines = rest.partition(END)[0].splitlines()
    keys = (_key(line) for line in lines)
    return tuple(key for key in keys if key)


def _key(line: str) -> str:
    """Return "TYPE BASE64" out of a line, "" where there is none."""
    words = line.split()
    for kind, key in pairwise(words):
        if kind.startswith(("ssh-", "ecdsa-sha2-")) and key.startswith("AAAA"):
            return f"{kind} {key}"
    return ""


def await_host_keys(
    machines: Iterable[str],
    read: Callable[[str], tuple[str, ...]],
    *,
    cache: Path,
    patience_s: float = 0,
) -> dict[str, tuple[str, ...]]:
    """Return machine -> public host keys; machines whose console shows none yet are left out.

    Keys are kept in `cache`: a console holds its last part only, and a machine never changes its
    key. One with another key is another machine, or somebody in between.

    Args:
        machines: ids in the cloud.
        read: reads one console; () where it shows no key yet.
        cache: file on this machine.
        patience_s: seconds to wait for nodes that are still starting.
    """
    ids = list(machines)
    until = time.monotonic() + patience_s
    with atomic.locked(cache.with_suffix(".lock")):
        known = _cached_keys(cache)
        while missing := [i for i in ids if i not in known]:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                found = dict(zip(missing, pool.map(read, missing), strict=True))
            new = {i: keys for i, keys in found.items() if keys}
            known |= new
            if new:
                atomic.write(cache, msgspec.json.encode(known))
            if len(new) == len(missing) or time.monotonic() >= until:
                break
            time.sleep(min(_PAUSE_S, max(0.0, until - time.monotonic())))
    return {i: tuple(known[i]) for i in ids if i in known}


def _cached_keys(cache: Path) -> dict[str, tuple[str, ...]]:
    if not cache.exists():
        return {}
    return decode_json(cache.read_bytes(), dict[str, tuple[str, ...]])
