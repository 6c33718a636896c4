"""Whether an SSH server responds at an address: its greeting is read, without a login."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ...inventory.hosts import Host

TIMEOUT_S = 5
"""Seconds until an SSH endpoint without a greeting counts as closed."""
_PARALLEL = 64
_SSH_PORT = 22
_PLACE = re.compile(r"\[(.+)\](?::(\d+))?|([^:]+)(?::(\d+))?|(.+)")
_MOST_LINES = 20
"""RFC 4253, 4.2: a server may send other lines before its version."""


class Endpoint(NamedTuple):
    """Where to knock: a host, or the bastion that it is behind."""

    address: str
    port: int

    def __str__(self) -> str:
        """Write it for a person."""
        return f"{self.address} port {self.port}"


def endpoints(hosts: Iterable[Host]) -> Mapping[Endpoint, list[str]]:
    """Return the SSH endpoints of hosts, each with the hosts behind it."""
    found: dict[Endpoint, list[str]] = {}
    for host in hosts:
        endpoint = Endpoint(host.address, host.ssh.port)
        if host.ssh.bastion:
            match = _PLACE.fullmatch(host.ssh.bastion.rpartition("@")[2])
            if match is None:
                continue
            address = match[1] or match[3] or match[5]
            endpoint = Endpoint(address, int(match[2] or match[4] or _SSH_PORT))
        found.setdefault(endpoint, []).append(host.name)
    return found


def unanswered(wanted: Iterable[Endpoint], *, timeout_s: float = TIMEOUT_S) -> dict[Endpoint, str]:
    """Return the endpoints where no SSH server responds, each with the reason."""
    everyone = list(wanted)
    if not everyone:
        return {}
    with ThreadPoolExecutor(min(_PARALLEL, len(everyone))) as pool:
        problems = pool.map(lambda endpoint: _problem(endpoint, timeout_s), everyone)
        return {endpoint: why for endpoint, why in zip(everyone, problems, strict=True) if why}


def _problem(endpoint: Endpoint, timeout_s: float) -> str:
    try:
        with socket.create_connection(endpoint, timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            with connection.makefile("rb") as stream:
                lines = (stream.readline(255) for _ in range(_MOST_LINES))
                if any(line.startswith(b"SSH-") for line in lines):
                    return ""
    except TimeoutError:
        return f"no answer within {timeout_s:.0f} s"
    except socket.gaierror:
        return "the name doesn't resolve"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return "something answers there that is no SSH server"
