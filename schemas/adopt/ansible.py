"""An Ansible inventory, as `ansible-inventory --list` prints it: groups become pools."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from .draft import Adopted, Draft, NothingToAdopt

SITE = "here"
_CONTROLLER = re.compile(r"control|slurmctld|^head|master|^mgmt|management")
_LOGIN = re.compile(r"login|^door|frontend|submit")
_JUMP = re.compile(r"(?:-J\s*|ProxyJump[= ])([\w.@:-]+)")
_CARRIED = frozenset(
    {"ansible_host", "ansible_user", "ansible_port", "ansible_ssh_private_key_file"}
)
_OLDER = {
    "ansible_ssh_host": "ansible_host",
    "ansible_ssh_user": "ansible_user",
    "ansible_ssh_port": "ansible_port",
}
_SAID_BY_GROUPS = frozenset({"all", "ungrouped", "_meta"})
_ORDER = {"controller": 0, "login": 1, "compute": 2}


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
        NothingToAdopt: no hosts, or no group of controllers.
    """
    variables = {
        host: {_OLDER.get(key, key): value for key, value in found.items()}
        for host, found in inventory.get("_meta", {}).get("hostvars", {}).items()
    }
    groups = _groups(inventory)
    if not groups:
        raise NothingToAdopt("no host stands in a group of it")
    draft = Draft(name, origin=origin, date=date)
    ssh = _ssh(variables, draft)
    draft.sites[SITE] = {"provider": "bare-metal", "ssh": ssh}
    placed = _placed(groups, roles, draft)
    for group, hosts in sorted(placed.items(), key=lambda each: _ORDER[_role(each[0], roles)]):
        role = _role(group, roles)
        pool = draft.fit(group, "pool", draft.pools)
        entry: dict[str, Any] = {"site": SITE}
        if role != "compute":
            entry["role"] = role
        else:
            entry["machine"] = draft.machine(f"{draft.name}-{pool}", ["bare-metal"])
        entry["hosts"] = [_entry(host, variables.get(host, {}), ssh) for host in hosts]
        draft.pools[pool] = entry
    if not any("role" not in pool for pool in draft.pools.values()):
        raise NothingToAdopt("no group of it is of compute nodes")
    _leave_variables(variables, draft)
    draft.leave("groups' children and order", "pools are flat: a host is in one of them")
    draft.leave("partitions, storage, users", "an inventory doesn't say them")
    return draft.finished()


def _groups(inventory: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the groups that name hosts themselves."""
    return {
        group: list(found["hosts"])
        for group, found in inventory.items()
        if group not in _SAID_BY_GROUPS and isinstance(found, dict) and found.get("hosts")
    }


def _role(group: str, roles: Mapping[str, str]) -> str:
    if group in roles:
        return roles[group]
    plain = group.lower()
    return (
        "controller"
        if _CONTROLLER.search(plain)
        else "login"
        if _LOGIN.search(plain)
        else "compute"
    )


def _placed(
    groups: Mapping[str, list[str]], roles: Mapping[str, str], draft: Draft
) -> dict[str, list[str]]:
    """Put each host into one group: of controllers or logins first, else into the smallest."""
    order = sorted(groups, key=lambda g: (_ORDER[_role(g, roles)], len(groups[g]), g))
    of_host: dict[str, str] = {}
    others: dict[str, set[str]] = defaultdict(set)
    for group in order:
        for host in groups[group]:
            if of_host.setdefault(host, group) != group:
                others[group].add(host)
    for group, hosts in others.items():
        listed = ", ".join(sorted(hosts)[:3]) + (" ..." if len(hosts) > 3 else "")  # noqa: PLR2004  # a line
        draft.leave(f"group {group}", f"hosts of another pool are in it too: {listed}")
    placed: dict[str, list[str]] = defaultdict(list)
    for host, group in of_host.items():
        placed[group].append(host)
    return placed


def _ssh(variables: Mapping[str, Mapping[str, Any]], draft: Draft) -> dict[str, Any]:
    """Return how most hosts are reached."""
    most: dict[str, Any] = {}
    for key, word in (
        ("ansible_user", "user"), ("ansible_ssh_private_key_file", "key"), ("ansible_port", "port"),
    ):  # fmt: skip
        # A host that says nothing has Ansible's default: it counts as one that says so.
        counted = Counter(
            str(each[key]) if _plain(each.get(key)) else "" for each in variables.values()
        )
        value = counted.most_common(1)[0][0] if counted else ""
        if value:
            most[word] = int(value) if word == "port" and value.isdecimal() else value
    if "user" not in most:
        most["user"] = "root"
        draft.leave("the login user", "no ansible_user stands there: root is a guess")
    arguments = {
        str(each[key])
        for each in variables.values()
        for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")
        if _plain(each.get(key))
    }
    jumps = {found[1] for found in map(_JUMP.search, arguments) if found is not None}
    if len(jumps) == 1:
        most["bastion"] = jumps.pop()
    for each in sorted(arguments):
        if "bastion" not in most or not _JUMP.search(each) or len(each.split()) > 2:  # noqa: PLR2004  # -o and its value
            draft.leave("ansible_ssh_common_args", "options of ssh besides one jump host")
            break
    return most


def _plain(value: Any) -> bool:
    """Say whether a variable holds a value: templates are filled in by Ansible alone."""
    return value not in (None, "") and "{{" not in str(value)


def _entry(host: str, variables: Mapping[str, Any], ssh: Mapping[str, Any]) -> Any:
    entry: dict[str, Any] = {"name": host}
    if _plain(variables.get("ansible_host")) and variables["ansible_host"] != host:
        entry["address"] = str(variables["ansible_host"])
    user, port = variables.get("ansible_user"), variables.get("ansible_port")
    if _plain(user) and user != ssh.get("user"):
        entry["user"] = str(user)
    if str(port).isdecimal() and int(str(port)) != ssh.get("port", 22):
        entry["port"] = int(str(port))
    return host if len(entry) == 1 else entry


def _leave_variables(variables: Mapping[str, Mapping[str, Any]], draft: Draft) -> None:
    """List variables by name alone: their values may be secrets."""
    names = Counter(key for each in variables.values() for key in each)
    for key, count in sorted(names.items()):
        if key in _CARRIED:
            templated = sum("{{" in str(each.get(key, "")) for each in variables.values())
            if templated:
                draft.leave(f"variable {key} of {templated} hosts", "a template of Ansible's")
        elif not key.startswith("ansible_ssh_"):
            hosts = f"{count} {'host' if count == 1 else 'hosts'}"
            draft.leave(f"variable {key} of {hosts}", "what your roles read; gcluster has its own")
