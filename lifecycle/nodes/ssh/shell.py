"""A shell on a node, with the pinned host key and the right user, port and bastion."""

from __future__ import annotations

import difflib

from ....inventory.hosts import ClusterInventory, Host
from ...cluster.cluster import Cluster
from ...cluster.hosts import existing_hosts
from ...cluster.outcome import Exit, failure
from . import SshSession


def ssh_argv(cluster: Cluster, host: str | None, command: list[str]) -> list[str]:
    """Return the ssh command line for a node; without a name: a login node, else the controller.

    Raises:
        LifecycleError: the cluster has no such host, or no hosts at all.
    """
    hosts = existing_hosts(cluster)
    chosen = _choose(cluster, hosts, host)
    session = SshSession(cluster.workdir)
    session.trust(hosts.hosts)
    return session.argv(chosen, command or None)


def _choose(cluster: Cluster, hosts: ClusterInventory, name: str | None) -> Host:
    chosen = _default(hosts) if name is None else _named(cluster, hosts, name)
    if chosen.connection != "ssh":
        raise failure("GC908", f"{chosen.name} has no SSH: its connection is {chosen.connection}")
    return chosen


def _default(hosts: ClusterInventory) -> Host:
    """Return a login node, else the controller, else any node."""
    return (*hosts.with_role("login"), *hosts.with_role("controller"), *hosts.hosts)[0]


def _named(cluster: Cluster, hosts: ClusterInventory, name: str) -> Host:
    for host in hosts.hosts:
        if host.name == name:
            return host
    near = difflib.get_close_matches(name, [host.name for host in hosts.hosts], n=1)
    raise failure(
        "GC908",
        f'{cluster.name} has no node "{name}"',
        hint=f'did you mean "{near[0]}"?' if near else f"gcluster status {cluster.name} lists them",
        exit_code=Exit.USAGE,
    )
