"""An Ansible inventory of a Slurm cluster: groups whose names say their role become pools.

A host whose role no name of a group says is left out, for gcluster sets up every host of its spec:
servers of NFS, directories, databases and monitoring stay what they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ..draft import Adopted, Draft, NothingToAdopt
from ..source import Kind
from .inventory import SITE, Inventory, host_entry, leave_variables, read_inventory, way_in
from .kubespray import adopt_kubernetes, is_kubernetes

Role: TypeAlias = Literal["controller", "login", "compute"]
_ORDER: tuple[Role, ...] = ("controller", "login", "compute")
_NAMES: dict[Role, re.Pattern[str]] = {
    "controller": re.compile(r"control|slurmctld|(^|[_-])(head|headnode|master|mgmt|management)"),
    "login": re.compile(r"login|^door|frontend|submit"),
    "compute": re.compile(
        r"compute|worker|gpu|(^|[_-])(nodes?|slurmd|dgx|hgx|batch|cn|exec|execute)([_-]?\d*$|[_-])"
    ),
}
"""What groups of each role are called in published inventories: DeepOps (slurm-master, slurm-node),
stackhpc/ansible-slurm-appliance (control, login, compute), Omnia (slurm_control_node, slurm_node,
login_node), and Ansible Galaxy's roles (slurmservers, slurmexechosts)."""
_ALSO: tuple[tuple[str, Role], ...] = (
    ("slurmservers", "controller"),
    ("slurmexechosts", "compute"),
)
_CLIENTS = re.compile(r"client|_?targets?$")
_SERVICES = re.compile(
    r"nfs|ldap|freeipa|(^|[_-])(ipa|ad|dns|dhcp|ntp|db|sql|web)([_-]|$)|mysql|mariadb|postgres|"
    r"monitor|prometheus|grafana|metric|elastic|(^|[_-])log|storage|lustre|beegfs|ceph|gpfs|bastion|"
    r"jump|proxy|mirror|repo|cache|registry|backup|license|slurmdbd|provision|deploy|opensm"
)
"""Groups whose hosts serve something else."""
_DIRECTORY = "write users: {source: sssd, ldap: URL}"
_SAID = {
    "nfs": "write storage: NAME: {type: nfs, server: ADDRESS, mount: PATH}; the path is not said",
    "ldap": _DIRECTORY,
    "ipa": _DIRECTORY,
}
"""What a spec says of servers that are no nodes, by a part of the group's name."""
_CLUSTER_NAMES = ("openhpc_cluster_name", "slurm_cluster_name")
"""Variables with the cluster's name: stackhpc.openhpc's and DeepOps'."""
_KUBERNETES = ("kube", "k8s", "etcd")
"""How groups of kubespray begin, which DeepOps has in addition to those of Slurm."""


def adopt_ansible(
    inventory: Mapping[str, Any], *, name: str, roles: Mapping[str, str], origin: str, date: str
) -> Adopted:
    """Draft a spec of the hosts of an inventory.

    Args:
        inventory: as `ansible-inventory --list` prints it.
        name: of the cluster.
        roles: group -> role, where its name doesn't say it.
        origin: where it comes from, in words.
        date: when it was read.

    Raises:
        NothingToAdopt: no hosts, or no group of controllers or compute nodes.
    """
    read = read_inventory(inventory)
    said = _said_names(read)
    draft = Draft(name or (said or ["adopted"])[0], origin=origin, date=date)
    if len(said) > 1:
        draft.leave("the cluster's name", f"hosts have several: {', '.join(said)}", "guess")
    placed = _placed(read, roles)
    if is_kubernetes(read) and not any(role == "compute" for _, role in placed.values()):
        return adopt_kubernetes(read, draft)
    ssh = way_in(read, draft)
    draft.sites[SITE] = {"provider": "bare-metal", "ssh": ssh}
    members: dict[tuple[str, Role], list[str]] = defaultdict(list)
    for host, place in placed.items():
        members[place].append(host)
    for (group, role), hosts in sorted(members.items(), key=lambda each: _ORDER.index(each[0][1])):
        pool = draft.fit(group, "pool", draft.pools)
        entry: dict[str, Any] = {"site": SITE}
        if role != "compute":
            entry["role"] = role
        else:
            entry["machine"] = draft.machine(f"{draft.name}-{pool}", ["bare-metal"])
        entry["hosts"] = [host_entry(host, read, ssh) for host in hosts]
        draft.pools[pool] = entry
    if not any("role" not in pool for pool in draft.pools.values()):
        raise NothingToAdopt("no group of it is of compute nodes: --compute GROUP")
    _leave_hosts(read, placed, draft)
    draft.carry(sum(map(len, members.values())))
    leave_variables(read, draft, dict.fromkeys(_CLUSTER_NAMES, ("", "")))
    _monitored(read, placed, draft)
    why = "pools are flat: a host is in one of them"
    draft.leave("groups' children and order", why, "replaced")
    draft.leave("partitions", "one, with all compute pools: an inventory doesn't say them", "guess")
    draft.leave("/home and other storage", "not in an inventory: write storage before `up`")
    draft.leave("users", "an inventory doesn't say them")
    return draft.finished()


def _said_names(read: Inventory) -> list[str]:
    """Return the names that an inventory's variables give the cluster; one where they agree."""
    said = [str(of.get(key, "")) for of in read.variables.values() for key in _CLUSTER_NAMES]
    return list(dict.fromkeys(name for name in said if name and "{{" not in name))


def _monitored(read: Inventory, placed: Mapping[str, tuple[str, Role]], draft: Draft) -> None:
    """Let Prometheus run where the inventory has it, on a host of the cluster."""
    for host in read.groups.get("prometheus", ()):
        if host not in placed:
            continue
        group, role = placed[host]
        draft.more["monitoring"] = {"prometheus": True}
        if role != "controller":
            draft.more["monitoring"]["pool"] = draft.fit(group, "pool", {})
        return


def _role(group: str, roles: Mapping[str, str]) -> Role | Literal["service", ""]:
    """Return the role that a group's name says; "service": it serves something else."""
    role_of_group = roles.get(group)
    if role_of_group in _ORDER:
        return role_of_group
    name = group.lower()
    for known, role in _ALSO:
        if name == known:
            return role
    if _CLIENTS.search(name) or name.startswith(_KUBERNETES):
        return ""
    service = _SERVICES.search(name) is not None
    for role in _ORDER:
        if _NAMES[role].search(name) and not (service and role == "compute"):
            return role
    return "service" if service else ""


def _placed(read: Inventory, roles: Mapping[str, str]) -> dict[str, tuple[str, Role]]:
    """Return host -> (group, role), of hosts whose role a group's name says.

    Of several roles the first of controller, login, compute is a host's; of groups of one role the
    one with the fewest hosts.
    """
    placed: dict[str, tuple[str, Role]] = {}
    hosts = dict.fromkeys(host for group in read.groups.values() for host in group)
    for host in hosts:
        families = read.families(host)
        said = {group: _role(group, roles) for group in families}
        for role in _ORDER:
            of_role = [group for group in families if said[group] == role]
            role_of_group = any(group in roles for group in of_role)
            serves = role == "compute" and "service" in said.values()
            if of_role and (role_of_group or not serves):
                placed[host] = (_nearest(host, of_role, said, read), role)
                break
    return placed


def _nearest(host: str, of_role: list[str], said: Mapping[str, str], read: Inventory) -> str:
    """Return the smallest group that names a host and doesn't contradict its role."""
    own = [group for group, hosts in read.groups.items() if host in hosts]
    fit = [
        group for group in own if group in of_role or (said[group] == "" and of_role[0] not in own)
    ]
    fit = [group for group in fit if not _CLIENTS.search(group.lower())] or of_role
    named = [group for group in fit if group in of_role] or fit
    return min(named, key=lambda group: (len(read.hosts_below(group)), group))


def _leave_hosts(read: Inventory, placed: Mapping[str, tuple[str, Role]], draft: Draft) -> None:
    """List hosts that are left out, and other groups of hosts that aren't."""
    others: dict[str, list[str]] = defaultdict(list)
    for group, hosts in read.groups.items():
        others[group] += [host for host in hosts if host not in placed]
    grouped = {host for hosts in read.groups.values() for host in hosts}
    others["all"] += [host for host in read.hosts if host not in grouped]
    seen: set[str] = set()
    for group, hosts in others.items():
        new = [host for host in hosts if host not in seen]
        seen.update(new)
        if new:
            shown = ", ".join(sorted(new)[:4]) + (" ..." if len(new) > 4 else "")  # noqa: PLR2004  # a line
            of_host = [name for name in read.groups if new[0] in read.groups[name]]
            service = next(
                (said for word, said in _SAID.items() if any(word in name for name in of_host)), ""
            )
            why = f"{shown}: no group marks them as nodes, so they are left out; " + (
                service or f"--compute {group}, --login or --controller"
            )
            draft.leave(f"group {group}", why, settings=len(new))
    for group, hosts in read.groups.items():
        if group == "prometheus" and not set(hosts).isdisjoint(placed):
            continue
        also = sorted({host for host in hosts if host in placed and placed[host][0] != group})
        if also:
            shown = ", ".join(also[:3]) + (" ..." if len(also) > 3 else "")  # noqa: PLR2004  # a line
            kind: Kind = "lost" if _SERVICES.search(group.lower()) else "replaced"
            draft.leave(f"group {group}", f"hosts of another pool are in it too: {shown}", kind)
