#!/usr/bin/python
"""Make the credentials with which one host joins: on a control plane that serves."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_join_token
short_description: Create the credentials with which a host joins
description:
  - Makes a token of 15 minutes. For a control plane the certificates are uploaded too.
  - A Node of that name which an earlier machine left is deleted. kubeadm refuses to join next to one
    that was ready a moment ago.
  - What is returned is secret, so the task needs C(no_log). Only the certificates' key is kept, on a memory
    file system, for others who join at the same time.
author: The gcluster authors
options:
  host:
    description: Name of the host that joins.
    type: str
    required: true
  role:
    description: What it becomes.
    type: str
    choices: [node, controller]
    required: true
attributes:
  check_mode: {support: full, description: Makes nothing and returns empty credentials.}
"""

EXAMPLES = r"""
- name: Make the credentials to join with
  gcluster.cluster.kubernetes_join_token: {host: gpu001, role: node}
  delegate_to: head
  no_log: true
  register: credentials
"""

RETURN = r"""
token:
  description: Bootstrap token.
  returned: success
  type: str
ca_hash:
  description: SHA-256 of the cluster CA's public key.
  returned: success
  type: str
certificate_key:
  description: Key of the certificates that control planes share; empty for nodes.
  returned: success
  type: str
"""

import base64
import hashlib
import os
import secrets
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.kubeadm import ADMIN, SETTINGS, exclusive
from ..module_utils.node import run, system_path
from ..module_utils.state import Failed

LIFETIME = "15m"
KEY, LOCK = "/run/gcluster-certificate-key", "/run/gcluster-certificates.lock"
TIMEOUT_S, KEY_LIFETIME_S = 300, 600
"""kubeadm removes the certificates after two hours."""
ARGUMENTS: dict[str, Any] = {
    "host": {"type": "str", "required": True},
    "role": {"type": "str", "choices": ["node", "controller"], "required": True},
}


def output_of(*command: str, stdin: str | None = None) -> str:
    """Run a program and return what it printed.

    Raises:
        Failed: with the end of what it printed.
    """
    code, text = run(*command, stdin=stdin, timeout_s=TIMEOUT_S)
    if code:
        raise Failed(f"{command[0]} {command[1]} failed: {text[-400:]}")
    return text


def join_credentials(host: str, role: str) -> dict[str, str]:
    """Return the token, the CA's hash and, for a control plane, the certificates' key.

    Raises:
        Failed: a command failed; or a control plane is to join while authorities are exchanged,
            whose controller manager would sign nothing.
    """
    if role == "controller" and system_path(f"{SETTINGS}/authorities-next").exists():
        raise Failed(
            "the certificate authorities are exchanged: gcluster rotate certificate-authority goes"
            " on with that; a control plane joins after it"
        )
    output_of(
        "kubectl",
        f"--kubeconfig={ADMIN}",
        "delete",
        "node",
        host,
        "--ignore-not-found",
        "--timeout=60s",
    )
    created = output_of(
        "kubeadm", "token", "create", f"--ttl={LIFETIME}", "--description=gcluster join"
    )
    return {
        "token": created.splitlines()[-1],  # warnings may come before it
        "ca_hash": ca_hash(),
        "certificate_key": certificate_key() if role == "controller" else "",
    }


def certificate_key() -> str:
    """Return the key of the certificates in the cluster: one for all who join about now.

    There is one Secret of them, so a key for each host would leave only the last host's valid.
    """
    kept = system_path(KEY)
    with exclusive(LOCK):
        if kept.exists() and time.time() - kept.stat().st_mtime < KEY_LIFETIME_S:
            return kept.read_text()
        key = secrets.token_hex(32)
        config = system_path(f"{SETTINGS}/kubeadm.yaml").read_text()
        kind = "kind: InitConfiguration\n"
        output_of(
            *("kubeadm", "init", "phase", "upload-certs", "--upload-certs", "--config=/dev/stdin"),
            stdin=config.replace(kind, f"{kind}certificateKey: {key}\n", 1),
        )
        kept.unlink(missing_ok=True)
        descriptor = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(key)
        return key


def ca_hash() -> str:
    """Return the SHA-256 of the CA's public key, as kubeadm pins it."""
    certificate = str(system_path("/etc/kubernetes/pki/ca.crt"))
    public = output_of("openssl", "x509", "-pubkey", "-noout", "-in", certificate)
    lines = [line for line in public.splitlines() if "-----" not in line]
    return f"sha256:{hashlib.sha256(base64.b64decode(''.join(lines))).hexdigest()}"


def main() -> None:
    """Return credentials."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=True, token="", ca_hash="", certificate_key="")
    try:
        made = join_credentials(**module.params)
    except Failed as failed:
        module.fail_json(msg=str(failed))
    module.exit_json(changed=True, **made)


if __name__ == "__main__":
    main()
