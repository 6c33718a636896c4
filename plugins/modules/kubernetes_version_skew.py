#!/usr/bin/python
"""Fail where this host can't go to a version of Kubernetes; nothing is changed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_version_skew
short_description: Check that a host may go to a version of Kubernetes
description:
  - One minor version at a time and never back. The control plane goes on only when every node has followed,
    because a node that was left behind could not be upgraded any more
    (kubernetes.io/releases/version-skew-policy).
author: The gcluster authors
options:
  version:
    description: Version with two or three numbers.
    type: str
    required: true
  role:
    description: What the host is.
    type: str
    choices: [node, controller]
    required: true
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check the version
  gcluster.cluster.kubernetes_version_skew: {version: 1.35.4, role: controller}
"""

RETURN = r"""
differences:
  description: What keeps the host from that version, one line each.
  returned: failure
  type: list
  elements: str
  sample: ["it runs Kubernetes 1.33.9, and 1.35.4 skips a minor: go to 1.34 first"]
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.kubeadm import ADMIN, KUBELET
from ..module_utils.node import run, system_path
from ..module_utils.state import exit_with_differences

Version = tuple[int, ...]
ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "required": True},
    "role": {"type": "str", "choices": ["node", "controller"], "required": True},
}


def hindrances(version: str, role: str) -> Iterator[str]:
    """Yield what keeps this host from a version."""
    wanted = numbers(version)
    if not system_path(KUBELET).exists() or not wanted:
        return
    runs = numbers(run(str(system_path("/usr/bin/kubelet")), "--version")[1])
    if not runs or runs[: len(wanted)] == wanted:
        return
    name, requested = dotted(runs), dotted(wanted)
    if runs[0] != wanted[0] or wanted < runs[: len(wanted)]:
        yield (
            f"it runs Kubernetes {name}, and {requested} is older: write {dotted(runs[:2])} or a"
            " newer one"
        )
    elif wanted[1] > runs[1] + 1:
        between = dotted((runs[0], runs[1] + 1))
        yield f"it runs Kubernetes {name}, and {requested} skips a minor: go to {between} first"
    elif role == "controller" and wanted[1] > runs[1]:
        for node, has in node_versions():
            if has[:2] < runs[:2]:
                yield (
                    f"node {node} runs {dotted(has)}: bring it to {dotted(runs[:2])} before"
                    f" {requested} comes"
                )


def node_versions() -> list[tuple[str, Version]]:
    """Return every node with its kubelet's version; none where the API doesn't answer."""
    if not system_path(ADMIN).exists():
        return []
    _, text = run("kubectl", f"--kubeconfig={ADMIN}", "get", "nodes", "--output=json")
    try:
        items = json.loads(text[text.find("{") :])["items"]  # warnings may come before it
    except ValueError:
        return []
    return [
        (each["metadata"]["name"], numbers(each["status"]["nodeInfo"]["kubeletVersion"]))
        for each in items
    ]


def numbers(text: str) -> Version:
    """Return the numbers of a version, two or three of them; () where there is none."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups() if part is not None) if found else ()


def dotted(version: Version) -> str:
    """Return a version as it is written."""
    return ".".join(str(part) for part in version)


def main() -> None:
    """Fail with everything that keeps this host from the version."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_differences(module, lambda: hindrances(**module.params))


if __name__ == "__main__":
    main()
