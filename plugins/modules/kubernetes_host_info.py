#!/usr/bin/python
"""Return what the configuration of Kubernetes on this host follows from."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_host_info
short_description: Return facts for the configuration of Kubernetes
description:
  - Returns the cgroup version, processors, memory, kernel, kubeadm's version and the node's address.
author: The gcluster authors
options:
  endpoint:
    description: The control plane's HOST:PORT. The address on the way there is the node's.
    type: str
    required: true
  address:
    description: Address of this host instead, as on control planes, which may hold HOST themselves.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Read facts of the host
  gcluster.cluster.kubernetes_host_info: {endpoint: "head:6443"}
  register: kubernetes_host
"""

RETURN = r"""
cgroup:
  description: Version of the control groups, 1 or 2.
  returned: success
  type: int
container:
  description: Whether the host is a container.
  returned: success
  type: bool
swap:
  description: Whether swap is on.
  returned: success
  type: bool
cpus:
  description: Number of processors.
  returned: success
  type: int
memory_mib:
  description: Memory in MiB.
  returned: success
  type: int
kernel:
  description: Version of the kernel that runs.
  returned: success
  type: str
  sample: 6.12.1
kubeadm:
  description: Version of the kubeadm in use; empty where there is none.
  returned: success
  type: str
  sample: 1.35.4
address:
  description: The node's address.
  returned: success
  type: str
interface:
  description: The interface that has it.
  returned: success
  type: str
"""

import os
import socket
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run, run_json, system_path
from ..module_utils.state import Failed

ARGUMENTS: dict[str, Any] = {
    "endpoint": {"type": "str", "required": True},
    "address": {"type": "str", "default": ""},
}


def interface_of(address: str) -> str:
    """Return the name of the interface that has an address; "" where none has."""
    interfaces, problem = run_json("ip", "-json", "-4", "address")
    if problem:
        raise Failed(problem)
    return next(
        (
            str(each["ifname"])
            for each in interfaces
            if address in [one["local"] for one in each["addr_info"]]
        ),
        "",
    )


def kubeadm_version() -> str:
    """Return the version of the kubeadm that is in use; "" where there is none."""
    program = system_path("/usr/bin/kubeadm")
    if not program.exists():
        return ""
    return run(str(program), "version", "--output=short")[1].removeprefix("v")


def address_towards(host: str, port: int) -> str:
    """Return this host's own address on the way to another; its own name's where that is itself."""
    try:
        family, _, _, _, target = socket.getaddrinfo(host, port, socket.AF_INET)[0]
    except OSError as error:
        raise Failed(
            f"the control plane's name {host} has no address here: {error.strerror}"
        ) from error
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(target)  # sends nothing: the kernel chooses the route
        except OSError as error:
            raise Failed(
                f"there is no route to the control plane {target[0]}: {error.strerror}"
            ) from error
        own = str(probe.getsockname()[0])
    return own if not own.startswith("127.") else socket.gethostbyname(socket.gethostname())


def host_info(endpoint: str, address: str) -> dict[str, Any]:
    """Return the requested facts of this host."""
    host, _, port = endpoint.rpartition(":")
    address = address or address_towards(host, int(port))
    return {
        "cgroup": 2 if system_path("/sys/fs/cgroup/cgroup.controllers").exists() else 1,
        "container": run("systemd-detect-virt", "--container", "--quiet")[0] == 0,
        "swap": len(system_path("/proc/swaps").read_text().splitlines()) > 1,
        "cpus": os.cpu_count(),
        "memory_mib": int(system_path("/proc/meminfo").read_text().split()[1]) // 1024,
        "kernel": os.uname().release.split("-")[0],
        "kubeadm": kubeadm_version(),
        "address": address,
        "interface": interface_of(address),
    }


def main() -> None:
    """Return what this host is."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        found = host_info(**module.params)
    except Failed as failed:
        module.fail_json(msg=str(failed))
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
