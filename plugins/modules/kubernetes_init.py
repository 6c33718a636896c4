#!/usr/bin/python
"""Make this host the first control plane of its cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_init
short_description: Initialize the first control plane
description:
  - Runs kubeadm init with the configuration in /etc/kubernetes/gcluster, and applies the manifests there.
  - One runs at a time. A run that was cut off leaves a mark; the next one resets this host and begins again.
  - A control plane that was complete once is never reset; it is started and waited for.
  - Where the backup of a lost control plane lies on the host, it begins with that one's authorities and objects.
author: The gcluster authors
options:
  timeout:
    description: Seconds in which a control plane that was complete before must answer.
    type: int
    default: 120
attributes:
  check_mode: {support: full, description: Says whether a control plane would be made.}
"""

EXAMPLES = r"""
- name: Initialize the first control plane
  gcluster.cluster.kubernetes_init:
    timeout: 120
"""

RETURN = r"""
changes:
  description: What was done, one line each.
  returned: always
  type: list
  elements: str
  sample: ["initialised the control plane"]
"""

import shutil
import time
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.kubeadm import (
    ADMIN,
    INIT_UNFINISHED,
    SEED,
    SETTINGS,
    STATE,
    exclusive,
    kubeadm,
    log_path,
    place_static_pods,
    reset,
    use_common_name,
)
from ..module_utils.node import run, system_path
from ..module_utils.state import Failed, exit_with_progress

KUBECTL = ("kubectl", f"--kubeconfig={ADMIN}")
SUPER_ADMIN = "/etc/kubernetes/super-admin.conf"
DONE = "initialised the control plane"
SEED_S = 900
"""Seconds for etcd's image and 8 GiB of data."""
ARGUMENTS: dict[str, Any] = {"timeout": {"type": "int", "default": 120}}


def initialise(timeout_s: int, *, act: bool) -> Iterator[str]:
    """Go on from where this host is; yield what was done."""
    mark, admin = system_path(INIT_UNFINISHED), system_path(ADMIN)
    if not act:
        if mark.exists() or not admin.exists():
            yield DONE
        return
    with exclusive():
        if mark.exists():
            reset()
            remove_etcd_data()
            yield "reset this host after an unfinished init"
        elif admin.exists():
            run("systemctl", "start", "containerd", "kubelet")
            if not becomes_ready(timeout_s):
                raise Failed(
                    f"this control plane was complete and doesn't answer within {timeout_s} s:"
                    f" see journalctl -u kubelet; {STATE} restore begins again from a snapshot of etcd"
                )
            apply_manifests()
            return
        mark.touch()
        passed_over = ["DirAvailable--etc-kubernetes-manifests"]
        seed = system_path(SEED)
        if seed.exists():
            code, text = run(STATE, "begin", timeout_s=SEED_S)
            if code:
                raise Failed(f"the backup that this control plane is to begin with: {text}")
            passed_over.append("DirAvailable--var-lib-etcd-data")
            yield "took up what a lost control plane had saved"
        use_common_name()
        place_static_pods(bootstrap=True)
        code, reason = kubeadm(
            "init",
            f"--config={SETTINGS}/kubeadm.yaml",
            f"--ignore-preflight-errors={','.join(passed_over)}",
        )
        if code:
            raise Failed(f"kubeadm init failed ({log_path('init')}): {reason}")
        delete_tokens()
        apply_manifests()
        place_static_pods()
        # It passes every rule of the API server's and can't be taken back; kubeadm makes another.
        system_path(SUPER_ADMIN).unlink(missing_ok=True)
        mark.unlink()
        seed.unlink(missing_ok=True)
        yield DONE


def remove_etcd_data() -> None:
    """Remove what etcd has, but not its folder, which may be a volume."""
    for path in system_path("/var/lib/etcd").glob("*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def delete_tokens() -> None:
    """Delete the token of a day that init makes: each node that joins gets one of its own."""
    code, text = run(
        *KUBECTL,
        "delete",
        "secret",
        "--namespace=kube-system",
        "--field-selector=type=bootstrap.kubernetes.io/token",
    )
    if code:
        raise Failed(f"the token of kubeadm init was not deleted: {text}")


def apply_manifests() -> None:
    """Give the cluster what it can't run without; what is as it should be is left alone."""
    for manifest in sorted(system_path(f"{SETTINGS}/apply").glob("*.yaml")):
        options = ("--server-side", "--force-conflicts", "--field-manager=gcluster")
        code, text = run(*KUBECTL, "apply", *options, f"--filename={manifest}")
        if code:
            raise Failed(f"{manifest.name} was not applied: {text}")


def becomes_ready(timeout_s: int) -> bool:
    """Return whether the API server here is ready, or becomes so in time."""
    for _ in range(timeout_s):
        if run(*KUBECTL, "get", "--raw=/readyz")[1] == "ok":
            return True
        time.sleep(1)
    return False


def main() -> None:
    """Make the first control plane."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_progress(module, initialise(module.params["timeout"], act=not module.check_mode))


if __name__ == "__main__":
    main()
