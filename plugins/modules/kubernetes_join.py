#!/usr/bin/python
"""Join this host to its cluster with the credentials of kubernetes_join_token."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_join
short_description: Join this host to its cluster
description:
  - Runs kubeadm join with the configuration in /etc/kubernetes/gcluster and the credentials given.
    They are on a memory file system meanwhile, on no command line and in no log.
  - One runs at a time. A run that was cut off leaves a mark; the next one resets this host and begins again.
author: The gcluster authors
options:
  token:
    description: Bootstrap token.
    type: str
    required: true
  ca_hash:
    description: SHA-256 of the cluster CA's public key.
    type: str
    required: true
  certificate_key:
    description: Key of the certificates that control planes share.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Says whether the host would join.}
"""

EXAMPLES = r"""
- name: Join the cluster
  gcluster.cluster.kubernetes_join:
    token: "{{ credentials.token }}"
    ca_hash: "{{ credentials.ca_hash }}"
"""

RETURN = r"""
changes:
  description: What was done, one line each.
  returned: always
  type: list
  elements: str
  sample: ["joined the cluster"]
"""

import os
import re
import socket
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.kubeadm import (
    JOIN_UNFINISHED,
    KUBELET,
    SETTINGS,
    STATE,
    exclusive,
    is_member,
    kubeadm,
    log_path,
    place_static_pods,
    reset,
    use_common_name,
)
from ..module_utils.node import run, system_path
from ..module_utils.state import Failed, exit_with_progress

CONFIG = "/run/gcluster-kubeadm.yaml"
DONE = "joined the cluster"
ARGUMENTS: dict[str, Any] = {
    "token": {"type": "str", "required": True, "no_log": True},
    "ca_hash": {"type": "str", "required": True},
    "certificate_key": {"type": "str", "default": "", "no_log": True},
}


def join(credentials: dict[str, str], *, act: bool) -> Iterator[str]:
    """Run kubeadm with the credentials in a file on a memory file system; yield what was done."""
    if not act:
        if not is_member():
            yield DONE
        return
    with exclusive():
        if is_member():  # by a run that ended meanwhile; making the token deleted its Node
            code, text = run("systemctl", "restart", "kubelet")
            if code:
                raise Failed(f"the kubelet does not restart: {text}")
            yield "restarted the kubelet, which registers its node again"
            return
        mark = system_path(JOIN_UNFINISHED)
        if mark.exists() or system_path(KUBELET).exists():
            reset()
            yield "reset this host after an unfinished join"
        text = system_path(f"{SETTINGS}/join.yaml").read_text()
        refuse_own_name(text)
        for name, value in credentials.items():
            text = text.replace(f"@{name.upper()}@", value)
        config = system_path(CONFIG)
        try:
            descriptor = os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            mark.touch()
            code, reason = kubeadm("join", f"--config={config}")
        finally:
            config.unlink(missing_ok=True)
        if code:
            raise Failed(f"kubeadm join failed ({log_path('join')}): {reason}")
        use_common_name()
        place_static_pods()
        mark.unlink()
        yield DONE


def refuse_own_name(config: str) -> None:
    """Refuse a cluster whose address is this host's own name: there is nothing to join.

    Raises:
        Failed: it is.
    """
    endpoint = re.search(r"apiServerEndpoint: *\"?([^:\"\s]+)", config)
    if endpoint is not None and endpoint[1] == socket.gethostname():
        raise Failed(
            "other control planes serve this cluster, and its address is the name of this host,"
            " which is new: give the spec a scheduler.virtual_address, or restore etcd here from"
            f" a snapshot ({STATE} restore)"
        )


def main() -> None:
    """Join the cluster."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_progress(module, join(module.params, act=not module.check_mode))


if __name__ == "__main__":
    main()
