"""Why a node is unreachable, from OpenSSH's messages on stderr."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from ....inventory.hosts import Host

_OFFERED = re.compile(r"sent by the remote host is\s+(SHA256:[A-Za-z0-9+/]+)")
_UNKNOWN_KEY = re.compile(r"No (\S+) host key is known for (\S+)")
_UNRESOLVED = re.compile(r"Could not resolve hostname ([^\s:]+)")
_DENIED = re.compile(r"Permission denied \(")
_SUDO = re.compile(
    r"sudo: (?:a password is required|a terminal is required|no tty)|is not in the sudoers file"
)
_KEY_FILE = re.compile(
    r'(?:no such identity: \S+|Identity file \S+ not accessible|Load key "[^"]*"): (.+)'
)
_NETWORK = (
    ("Connection refused", "connection refused: is sshd running?"),
    ("Connection timed out", "no answer: it is off, or a firewall is in between"),
    ("Operation timed out", "no answer: it is off, or a firewall is in between"),
    ("No route to host", "no route to host: is it powered on?"),
    ("Network is unreachable", "its network is unreachable from here"),
    ("Timeout, server", "the connection went dead"),
    ("timed out", "no answer within the time limit"),
    ("Too many authentication failures", "too many keys were offered: name the one with ssh.key"),
    ("Connection closed", "the connection was closed before the login"),
    ("Connection reset", "the connection was reset before the login"),
    ("Broken pipe", "the connection broke"),
)


_TURNED_AWAY = re.compile(
    r"(?:kex|ssh)_exchange_identification:|banner exchange: |"
    r"^Connection (?:closed|reset) by \S+(?: \[\S+\])? port \d+|^Not allowed at this time",
    re.MULTILINE,
)


def timed_out(stderr: str) -> bool:
    """Return whether a connection timed out before anything was run.

    The host is off, or it or the network is overloaded: worth one retry.
    """
    return "timed out during banner exchange" in stderr


def turned_away(stderr: str) -> bool:
    """Return whether the server closed the connection before login, as with too many connections.

    Nothing was run, so it can be retried.
    """
    return bool(_TURNED_AWAY.search(stderr))


def describe_reason(stderr: str, host: Host) -> str:
    """Turn ssh's message into one line about the node; unknown messages are kept unchanged.

    Args:
        stderr: of ssh.
        host: the destination; its user, key, port and bastion are named where they matter.
    """
    known_reason = (
        sudo_refused(stderr, host)
        or _host_key(stderr, host)
        or _login(stderr, host)
        or _network(stderr, host)
    )
    if known_reason:
        return known_reason
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if lines:
        return lines[-1]
    # As a client ends whose shared connection is lost: with 255, and its reason is not its own.
    return f"{_where(host)}: the connection was lost (ssh ended with 255 and without a word)"


def sudo_refused(stderr: str, host: Host) -> str:
    """Return that the user can't become root; "" for other messages."""
    if not _SUDO.search(stderr):
        return ""
    return f"user {host.ssh.user} may not become root there without a password (sudo)"


def fingerprint(public_key: str) -> str:
    """Return the SHA256 fingerprint of "ssh-ed25519 AAAA...", as ssh prints it.

    A key that can't be decoded is returned as it is.
    """
    try:
        blob = base64.b64decode(public_key.split()[1], validate=True)
    except (IndexError, binascii.Error):
        return public_key
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _where(host: Host) -> str:
    through = f" through {host.ssh.bastion}" if host.ssh.bastion else ""
    return f"{host.address} port {host.ssh.port}{through}"


def _host_key(stderr: str, host: Host) -> str:
    if "HOST IDENTIFICATION HAS CHANGED" in stderr:
        offered = _OFFERED.search(stderr)
        pinned = " or ".join(map(fingerprint, host.ssh.host_keys)) or "the one in known_hosts"
        other = offered[1] if offered else "another one"
        return f"its host key changed: expected {pinned}, {_where(host)} offers {other}"
    unknown = _UNKNOWN_KEY.search(stderr)
    if unknown:
        return f"its host key is unknown: no known_hosts line vouches for {_where(host)}"
    if "Host key verification failed" in stderr:
        return f"a host key on the way to {_where(host)} is unknown: no known_hosts line vouches"
    return ""


def _login(stderr: str, host: Host) -> str:
    if not _DENIED.search(stderr):
        return ""
    key = host.ssh.key_file
    offered = key or "the keys of the SSH agent and ~/.ssh"
    unusable = _KEY_FILE.search(stderr)
    why = f" ({unusable[1].strip()})" if unusable else ""
    return f"login refused for user {host.ssh.user} with {offered}{why}"


def _network(stderr: str, host: Host) -> str:
    unresolved = _UNRESOLVED.search(stderr)
    if unresolved:
        return f"the name {unresolved[1]} doesn't resolve"
    for pattern, words in _NETWORK:
        if pattern in stderr:
            return f"{_where(host)}: {words}"
    return ""
