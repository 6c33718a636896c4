"""The arguments of an ssh command line: host, user and keys (pure)."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from ....inventory.hosts import Host, SshTarget

CONNECT_TIMEOUT_S = 10
"""Seconds until a host that doesn't answer at all counts as unreachable."""

_BASTION_TIMEOUT_S = 20
"""The same for a host behind a bastion, which has all of a cluster's hosts to connect to."""
_TUNNEL_TIMEOUT_S = 45
"""The same where a program of a cloud makes a tunnel first: it logs in to its cloud, seconds."""

BASTION_KEPT_OPEN_S = 600
"""Seconds that the connection to a bastion stays open after the last one through it."""

_SSH_PORT = 22

_STRICT = "StrictHostKeyChecking=yes"
"""For nodes and bastions: an unknown key is refused without a prompt."""


def as_arguments(options: list[str]) -> list[str]:
    """Return ["-o", option, ...]."""
    return [word for option in options for word in ("-o", option)]


def identity(host: Host, known_hosts: Path, shared: str = "") -> list[str]:
    """Return the options for host keys and the user's identity.

    Args:
        host: the node.
        known_hosts: file with the pinned keys of the cluster, under `marker(host)`.
        shared: ControlPath of the shared connection to its bastion; "": a separate connection.
    """
    ssh = host.ssh
    options = [
        _STRICT,
        _timeout(ssh, through=_BASTION_TIMEOUT_S),
        "UpdateHostKeys=no",
        "RemoteCommand=none",
        "ServerAliveInterval=15",
    ]
    if ssh.host_keys:
        options += _pinned_as(marker(host), known_hosts)
    elif ssh.known_hosts_file:
        options.append(f"UserKnownHostsFile={_quoted(ssh.known_hosts_file)}")
    if ssh.key_file:
        options += [f"IdentityFile={_quoted(ssh.key_file)}", "IdentitiesOnly=yes"]
    if ssh.bastion:
        # ProxyJump would prompt on the terminal about a bastion with an unknown key. Where the
        # shared connection is closed, its next user opens it again.
        way = to_bastion(ssh, known_hosts, shared, "ControlMaster=auto")
        words = [word.replace("%", "%%") for word in way]
        options.append(f"ProxyCommand={shlex.join([*words[:-2], '-W', '[%h]:%p', *words[-2:]])}")
    return options


def _timeout(ssh: SshTarget, *, through: int) -> str:
    seconds = through if ssh.bastion else CONNECT_TIMEOUT_S
    return f"ConnectTimeout={_TUNNEL_TIMEOUT_S if ssh.bastion_proxy else seconds}"


def destination(host: Host) -> list[str]:
    """Return user, port and address, which no option can follow."""
    return ["-p", str(host.ssh.port), "-l", host.ssh.user, "--", host.address]


def as_root(host: Host, words: list[str]) -> str:
    """Return the shell line that runs a command as root on the node; sudo never prompts."""
    return shlex.join(words if host.ssh.user == "root" else ["sudo", "-n", *words])


AS_ROOT = '$([ "$(id -u)" = 0 ] || echo sudo -n)'
"""Before a command in a shell line that is the same for all hosts: what makes it root's."""


def to_bastion(ssh: SshTarget, known_hosts: Path, shared: str = "", master: str = "") -> list[str]:
    """Return the command line to the bastion itself; its last two arguments are "--" and its name.

    Args:
        ssh: a host behind it.
        known_hosts: file with the pinned keys of the cluster, under `bastion_marker(ssh)`.
        shared: ControlPath of the shared connection; "": a separate connection.
        master: its role for the shared one, as ssh's option: "ControlMaster=yes".
    """
    user, address, port = bastion_place(ssh)
    timeout = _timeout(ssh, through=CONNECT_TIMEOUT_S)
    options = ["BatchMode=yes", _STRICT, timeout, f"ControlPath={shared or 'none'}"]
    if shared:
        options += [master, f"ControlPersist={BASTION_KEPT_OPEN_S}", "ServerAliveInterval=15"]
    if ssh.bastion_proxy:
        options.append(f"ProxyCommand={shlex.join(ssh.bastion_proxy)}")
    if ssh.bastion_host_keys:
        options += ["UpdateHostKeys=no", *_pinned_as(bastion_marker(ssh), known_hosts)]
    words = ["ssh", *as_arguments(options)]
    key = ssh.bastion_key_file or ssh.key_file
    if key:
        words += ["-i", str(Path(key).expanduser())]
    words += (["-l", user] if user else []) + (["-p", port] if port else [])
    return [*words, "--", address]


def bastion_place(ssh: SshTarget) -> tuple[str, str, str]:
    """Return user, address and port of the bastion; "" for each that is not given."""
    user, _, place = (ssh.bastion or "").rpartition("@")
    return user, *_address_and_port(place)


def _pinned_as(name: str, known_hosts: Path) -> list[str]:
    """Return the options by which only the keys under a name of this file vouch."""
    return [
        f"UserKnownHostsFile={_quoted(known_hosts)}",
        "GlobalKnownHostsFile=/dev/null",
        f"HostKeyAlias={name}",
    ]


def _address_and_port(place: str) -> tuple[str, str]:
    """Split "host:22", "[fe80::1]:22", "fe80::1" and "host"; the port may be empty."""
    match = re.fullmatch(r"\[(.+)\](?::(\d+))?|([^:]+):(\d+)", place)
    if match is None:
        return place, ""
    return match[1] or match[3], match[2] or match[4] or ""


def marker(host: Host) -> str:
    """Return the name that the host's keys are pinned under: unique and free of addresses."""
    return f"{host.name}.{host.site}"


def bastion_marker(ssh: SshTarget) -> str:
    """Return the name that the bastion's keys are pinned under: one for each address and port."""
    _, address, port = bastion_place(ssh)
    return f"bastion-{address.replace(':', '-')}-{port or _SSH_PORT}"


def _quoted(path: Path | str) -> str:
    """Write a path as an option of ssh takes it: blanks, and no % sequences."""
    return f'"{str(Path(path).expanduser()).replace("%", "%%")}"'
