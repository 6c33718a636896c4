"""Nodes that tell their SSH host key on their console: a cloud-config, and how it is read back.

For clouds that let the owner of an account read a machine's console. The node makes its key itself,
cloud-init prints the public half, and nobody logs in to a node whose key was not read that way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

from . import sshd

BEGIN = "-----BEGIN SSH HOST KEY KEYS-----"
END = "-----END SSH HOST KEY KEYS-----"
"""How cloud-init's module keys_to_console marks the keys on the console."""
_LAST_LINES = 8


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


def last_lines(console: str) -> tuple[str, ...]:
    """Return the end of what a console shows: what a machine did before it fell silent."""
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    return tuple(lines[-_LAST_LINES:])
