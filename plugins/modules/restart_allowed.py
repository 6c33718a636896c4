#!/usr/bin/python
"""Decide whether a node may be restarted now for a change that needs it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: restart_allowed
short_description: Say whether a node may be restarted
description:
  - Fails where a restart is due and may not be made, and says who decides or what runs there.
  - Restarts nothing itself.
options:
  reason:
    description: Why a restart is due; empty where none is.
    type: str
    required: true
  policy:
    description:
      - V(never) refuses.
      - V(auto) allows it on a node that is in no scheduler's service yet and where nothing uses a GPU.
      - V(when-drained) allows it where no job runs.
    type: str
    choices: [never, auto, when-drained]
    required: true
  own:
    description: Whether the caller runs on the node itself, and would end with it.
    type: bool
    default: false
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check that the node may be restarted
  gcluster.cluster.restart_allowed: {reason: another kernel runs, policy: when-drained}
"""

RETURN = r"""
allowed:
  description: Whether a restart is due and may be made now.
  returned: success
  type: bool
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.kernel_modules import openers
from ..module_utils.node import job_runs, run

ARGUMENTS: dict[str, Any] = {
    "reason": {"type": "str", "required": True},
    "policy": {"type": "str", "choices": ["never", "auto", "when-drained"], "required": True},
    "own": {"type": "bool", "default": False},
}
SCHEDULERS = ("slurmd", "kubelet")
GPU_DEVICES = r"/dev/(nvidia\d+|kfd)"
OF_THE_DRIVER = ("nvidia-persiste", "nv-fabricmanage", "nv-hostengine", "nvidia-imex")
"""Programs that hold GPUs without using them, as the kernel cuts their names (15 characters)."""
HINT = "restart the node when it is drained, or let up do it: 'boot: {reboot: when-drained}' of the pool"


def refusal(policy: str, *, own: bool) -> str:
    """Return why a node may not be restarted, "" where it may."""
    if policy == "never":
        return HINT
    if own:
        return "the node converges itself and would end with it: gcluster reboot restarts it"
    if job_runs():
        return "a job runs here, so the node was not restarted"
    if policy == "when-drained":
        return ""
    for unit in SCHEDULERS:
        if run("systemctl", "is-enabled", "--quiet", unit)[0] == 0:
            return f"the node is in service ({unit}): {HINT}"
    using = [who for who in openers(GPU_DEVICES) if not who.startswith(OF_THE_DRIVER)]
    return f"its GPUs are used by {', '.join(using)}: {HINT}" if using else ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    reason = module.params["reason"]
    why = refusal(module.params["policy"], own=module.params["own"]) if reason else ""
    if why and not module.check_mode:
        module.fail_json(msg=f"{reason}; {why}")
    module.exit_json(changed=False, allowed=bool(reason) and not why)


if __name__ == "__main__":
    main()
