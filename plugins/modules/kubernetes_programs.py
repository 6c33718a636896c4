#!/usr/bin/python
"""Make the programs of one version of Kubernetes the ones that this host runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_programs
short_description: Link the programs of one version of Kubernetes
description:
  - Programs of several versions are kept side by side; links in /usr/bin point to those in use.
author: The gcluster authors
options:
  store:
    description: Folder of the version.
    type: path
    required: true
  programs:
    description: File in the folder -> names of the programs that it is.
    type: dict
    required: true
  replace:
    description:
      - Whether links to another version are replaced. An install leaves them, because another version comes
        when its turn is, the control plane first and then nodes that were drained.
    type: bool
    default: true
attributes:
  check_mode: {support: full, description: Says which links would change.}
"""

EXAMPLES = r"""
- name: Link the programs where none are in use
  gcluster.cluster.kubernetes_programs:
    store: /usr/local/share/gcluster/kubernetes/1.35.4
    programs: {kube: [kubeadm, kubectl, kubelet]}
    replace: false
"""

RETURN = r"""
changes:
  description: Links that were changed.
  returned: always
  type: list
  elements: str
  sample: [/usr/bin/kubelet]
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import system_path
from ..module_utils.state import exit_with_progress

ARGUMENTS: dict[str, Any] = {
    "store": {"type": "path", "required": True},
    "programs": {"type": "dict", "required": True},
    "replace": {"type": "bool", "default": True},
}


def link_programs(requested: dict[str, Any], *, act: bool) -> Iterator[str]:
    """Point the links at the files; yield those that changed."""
    for name, programs in requested["programs"].items():
        file = Path(requested["store"], name)
        if act:
            file.chmod(0o755)
        for program in programs:
            link = system_path("/usr/bin") / program
            exists = os.path.lexists(link)
            if exists and (not requested["replace"] or os.path.realpath(link) == str(file)):
                continue
            if act:
                fresh = link.with_name(f".{program}.new")
                fresh.unlink(missing_ok=True)
                fresh.symlink_to(file)
                fresh.replace(link)
            yield str(link)


def main() -> None:
    """Link the programs."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_progress(module, link_programs(module.params, act=not module.check_mode))


if __name__ == "__main__":
    main()
