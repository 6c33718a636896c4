"""What a node does on its first start: let the cluster's key in, and show its own host key.

Everything else is done over SSH by the roles. The node makes its host key itself and cloud-init
prints the public half to the console, where `hosts.py` reads it with the account's own rights.
No private key and no secret stands here, nor in launch templates or state.
"""

from __future__ import annotations

import base64
import json
from itertools import pairwise

BEGIN = "-----BEGIN SSH HOST KEY KEYS-----"
END = "-----END SSH HOST KEY KEYS-----"
"""How cloud-init's module keys_to_console marks the keys on the console."""

NO_KEY = "ssh-ed25519 KEY-OF-THE-CLUSTER"
"""Stands in recorded graphs for the public key, which is made by the first `up`."""

_SSHD = """\
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
"""


def user_data(*, user: str, authorized_key: str) -> str:
    """Return the cloud-config of a node.

    Args:
        user: login user; may become root without a password.
        authorized_key: public key that may log in.
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
                "path": "/etc/ssh/sshd_config.d/10-gcluster.conf",
                "permissions": "0644",
                "content": _SSHD,
            }
        ],
    }
    # cloud-config is YAML, and JSON is YAML: no quoting of ours can go wrong.
    return f"#cloud-config\n{json.dumps(config, indent=1)}\n"


def encoded(text: str) -> str:
    """Return user data as launch templates take it."""
    return base64.b64encode(text.encode()).decode()


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
