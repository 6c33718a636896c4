#!/usr/bin/python
"""Register a cluster in slurmdbd."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurmdbd_cluster
short_description: Register a cluster in slurmdbd
description:
  - A controller that uses the database and isn't known there ends, so this comes before any controller is configured
    of it.
author: The gcluster authors
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  wait_seconds:
    description: Seconds to wait until slurmdbd answers.
    type: int
    default: 60
attributes:
  check_mode: {support: full, description: Says whether it would be added; one that doesn't answer knows none.}
"""

EXAMPLES = r"""
- name: Register the cluster
  gcluster.cluster.slurmdbd_cluster: {name: campus}
"""

RETURN = r"""
changes:
  description: What was done, one line each.
  returned: always
  type: list
  elements: str
  sample: [the cluster campus]
"""

from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slurmdbd import known_clusters, sacctmgr
from ..module_utils.state import Failed, exit_with_progress

ARGUMENTS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "wait_seconds": {"type": "int", "default": 60},
}


def added(name: str, wait_s: int, *, act: bool) -> Iterator[str]:
    """Yield what is added."""
    try:
        if name in known_clusters(wait_s if act else 0):
            return
    except Failed:
        if act:
            raise
    if act:
        code, text = sacctmgr("--immediate", "--quiet", "add", "cluster", name)
        if code:
            raise Failed(f"the cluster can't be added: {text}")
    yield f"the cluster {name}"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    name, wait_s = module.params["name"], module.params["wait_seconds"]
    exit_with_progress(module, added(name, wait_s, act=not module.check_mode))


if __name__ == "__main__":
    main()
