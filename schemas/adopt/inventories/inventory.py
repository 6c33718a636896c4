"""An Ansible inventory as `ansible-inventory --list` prints it: groups, hosts, the way in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ..draft import Draft, NothingToAdopt
from ..source import Kind

SITE = "here"
_JUMP = re.compile(r"(?:-J\s*|ProxyJump[= ])([\w.@:-]+)")
CONNECTION = frozenset(
    {"ansible_host", "ansible_user", "ansible_port", "ansible_ssh_private_key_file"}
)
_OLDER = {
    "ansible_ssh_host": "ansible_host",
    "ansible_ssh_user": "ansible_user",
    "ansible_ssh_port": "ansible_port",
}
_NO_GROUPS = frozenset({"all", "ungrouped", "_meta"})


class Inventory(msgspec.Struct, frozen=True):
    """Groups and hosts."""

    variables: Mapping[str, Mapping[str, Any]]
    """Host -> its variables."""
    groups: Mapping[str, list[str]]
    """Group -> hosts that it names itself."""
    parents: Mapping[str, list[str]]
    """Group -> all groups that it is part of, the nearest first."""
    loose: list[str]
    """Hosts in no group."""

    @property
    def hosts(self) -> list[str]:
        """Every host that is named anywhere."""
        grouped = [host for hosts in self.groups.values() for host in hosts]
        return list(dict.fromkeys([*grouped, *self.loose, *self.variables]))

    def hosts_below(self, group: str) -> list[str]:
        """Return the hosts of a group and of all groups that are part of it."""
        below = [group, *(each for each, above in self.parents.items() if group in above)]
        found = [host for each in below for host in self.groups.get(each, ())]
        return list(dict.fromkeys(found))

    def families(self, host: str) -> list[str]:
        """Return every group that a host is in, the nearest first."""
        own = [group for group, hosts in self.groups.items() if host in hosts]
        return list(dict.fromkeys([*own, *(p for group in own for p in self.parents[group])]))


def read_inventory(data: Mapping[str, Any]) -> Inventory:
    """Read one. Raises NothingToAdopt: no host is in a group."""
    found = {k: v for k, v in data.items() if k not in _NO_GROUPS and isinstance(v, dict)}
    groups = {group: [str(h) for h in each.get("hosts") or []] for group, each in found.items()}
    above: dict[str, list[str]] = {group: [] for group in groups}
    for group, each in found.items():
        for child in each.get("children") or []:
            above.setdefault(str(child), []).append(group)
            groups.setdefault(str(child), [])
    if not any(groups.values()):
        raise NothingToAdopt("it has no host in a group")
    variables = {
        host: {_OLDER.get(key, key): value for key, value in each.items()}
        for host, each in data.get("_meta", {}).get("hostvars", {}).items()
    }
    loose = [
        str(h) for key in ("all", "ungrouped") for h in (data.get(key) or {}).get("hosts") or []
    ]
    return Inventory(variables, groups, {group: _above(group, above) for group in groups}, loose)


def _above(group: str, above: Mapping[str, list[str]]) -> list[str]:
    """Return all groups above one, the nearest first; a ring ends."""
    found: list[str] = []
    waiting = list(above.get(group, ()))
    while waiting:
        each = waiting.pop(0)
        if each not in found and each != group:
            found.append(each)
            waiting += above.get(each, ())
    return found


def plain(value: Any) -> bool:
    """Say whether a variable holds a value: templates are filled in by Ansible alone."""
    return value not in (None, "") and "{{" not in str(value)


def way_in(inventory: Inventory, draft: Draft) -> dict[str, Any]:
    """Return how most hosts are reached by SSH; what is left out is listed."""
    most: dict[str, Any] = {}
    variables = inventory.variables
    for key, word in (
        ("ansible_user", "user"), ("ansible_ssh_private_key_file", "key"), ("ansible_port", "port"),
    ):  # fmt: skip
        # A host that says nothing has Ansible's default: it counts as one that says so.
        counted = Counter(
            str(each[key]) if plain(each.get(key)) else "" for each in variables.values()
        )
        value = counted.most_common(1)[0][0] if counted else ""
        if value:
            most[word] = int(value) if word == "port" and value.isdecimal() else value
    if "user" not in most:
        most["user"] = "root"
        draft.leave("the login user", "it has no ansible_user: root is written", "guess")
    keys = {
        str(each["ansible_ssh_private_key_file"])
        for each in variables.values()
        if plain(each.get("ansible_ssh_private_key_file"))
    }
    for each in sorted(keys - {most.get("key")}):
        draft.leave(f"private key {each} of some hosts", "the key is the site's: one for all hosts")
    arguments = {
        str(each[key])
        for each in variables.values()
        for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")
        if plain(each.get(key))
    }
    jumps = {found[1] for found in map(_JUMP.search, arguments) if found is not None}
    if len(jumps) == 1:
        most["bastion"] = jumps.pop()
    for each in sorted(arguments):
        if "bastion" not in most or not _JUMP.search(each) or len(each.split()) > 2:  # noqa: PLR2004  # -o and its value
            draft.leave("ansible_ssh_common_args", "options of ssh besides one jump host")
            break
    return most


def host_entry(host: str, inventory: Inventory, ssh: Mapping[str, Any]) -> Any:
    """Return a host as a pool lists it: its name, or what differs from the site."""
    variables = inventory.variables.get(host, {})
    entry: dict[str, Any] = {"name": host}
    if plain(variables.get("ansible_host")) and variables["ansible_host"] != host:
        entry["address"] = str(variables["ansible_host"])
    user, port = variables.get("ansible_user"), variables.get("ansible_port")
    if plain(user) and user != ssh.get("user"):
        entry["user"] = str(user)
    if str(port).isdecimal() and int(str(port)) != ssh.get("port", 22):
        entry["port"] = int(str(port))
    return host if len(entry) == 1 else entry


def leave_variables(
    inventory: Inventory,
    draft: Draft,
    read: Mapping[str, tuple[str, str]] | None = None,
    apart: Collection[str] = (),
) -> None:
    """List and count variables, each name once, by name alone: their values may be secrets.

    Args:
        inventory: its variables.
        draft: they are listed there.
        read: variable -> ("" where the spec says it, else why not; kind), of those looked at.
        apart: variables that are listed elsewhere.
    """
    said = (key for each in inventory.variables.values() for key in each)
    names = Counter(key for key in said if key not in apart)
    for key, count in sorted(names.items()):
        hosts = f"{count} {'host' if count == 1 else 'hosts'}"
        why = (read or {}).get(key)
        if key in CONNECTION:
            templated = sum("{{" in str(e.get(key, "")) for e in inventory.variables.values())
            if templated:
                what = f"variable {key} of {templated} hosts"
                draft.leave(what, "a template of Ansible's", "unfinished", settings=1)
            else:
                draft.carry(1)
        elif why is not None and not why[0]:
            draft.carry(1)
        elif why is not None:
            kind: Kind = "replaced" if why[1] == "replaced" else "lost"
            draft.leave(f"variable {key} of {hosts}", why[0], kind, settings=1)
        elif key.startswith("ansible_ssh_"):
            draft.carry(1)
        else:
            reason = "what your roles read; gcluster has its own"
            draft.leave(f"variable {key} of {hosts}", reason, settings=1)
