"""The known_hosts file of a cluster: the keys that its machines and their bastions must show."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from ....inventory.hosts import Host
from .arguments import bastion_marker, marker


class Pins:
    """Keys by the name they are pinned under; safe to call from many threads."""

    def __init__(self, path: Path) -> None:
        """Read what is pinned already."""
        self._path = path
        self._mutex = threading.Lock()
        self._lines: dict[str, tuple[str, ...]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                name = line.partition(" ")[0]
                self._lines[name] = (*self._lines.get(name, ()), line)

    def add(self, hosts: Iterable[Host]) -> None:
        """Pin the keys that came with hosts and their bastions; a changed key replaces the old pin.

        Without keys, what was pinned before stays.
        """
        with self._mutex:
            before = dict(self._lines)
            for host in hosts:
                self._pin(marker(host), host.ssh.host_keys)
                if host.ssh.bastion:
                    self._pin(bastion_marker(host.ssh), host.ssh.bastion_host_keys)
            if self._lines == before and self._path.exists():
                return
            text = "".join(f"{line}\n" for lines in self._lines.values() for line in lines)
            temporary = self._path.with_suffix(f".{os.getpid()}")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self._path)

    def _pin(self, name: str, keys: tuple[str, ...]) -> None:
        if keys:
            self._lines[name] = tuple(f"{name} {key}" for key in keys)
