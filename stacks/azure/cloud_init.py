"""User data as far as SSH: a login user with one public key, and no password anywhere.

The machine makes its own host keys; hosts.py reads them back through run-command, which Azure
authenticates. Nothing here is secret: user data can be read from inside every machine.
"""

from __future__ import annotations

import base64
import json

from ..io.ssh import SSHD_FILE, SSHD_RELOAD, SSHD_RULES


def cloud_init(user: str, public_key: str) -> str:
    """Return the user data (cloud-config; JSON is YAML) for a login user with one public key."""
    config = {
        "users": [
            {
                "name": user,
                "gecos": "gcluster",
                "shell": "/bin/bash",
                "lock_passwd": True,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "ssh_authorized_keys": [public_key],
            }
        ],
        "disable_root": True,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_genkeytypes": ["ed25519", "ecdsa"],
        "write_files": [
            {
                "path": SSHD_FILE,
                "permissions": "0644",
                "content": SSHD_RULES,
            }
        ],
        "runcmd": [["sh", "-c", SSHD_RELOAD]],
    }
    return "#cloud-config\n" + json.dumps(config, indent=1) + "\n"


def custom_data(user: str, public_key: str) -> str:
    """Return the same as Azure takes it: base64."""
    return base64.b64encode(cloud_init(user, public_key).encode()).decode()
