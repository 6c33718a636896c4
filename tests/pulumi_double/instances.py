"""Local nodes that simulate the machines of a cloud: a double, in containers of the nodes' image.

They start from the image `cloud-like`: a real cloud-init takes the user data that the launch gave,
from a seed on the disk and not from a metadata service, and what a console shows is what systemd
and cloud-init write to the container's own. The network of the cloud is a bridge; machines are
reached from outside it only by public addresses, which another bridge simulates.
"""

from __future__ import annotations

import json
import subprocess
from ipaddress import IPv4Network
from pathlib import Path

from gcluster.lifecycle.cluster import places
from gcluster.stacks.local.engine import Engine, find_engine
from gcluster.stacks.local.image.base_image import ensure_base
from gcluster.stacks.local.ssh import SEED

LABEL = "gcluster.test.double"
_CONSOLE_BYTES = 64 * 1024
"""How much of a console EC2 keeps (EC2 API, GetConsoleOutput)."""
_FIRST_PUBLIC = 10


class Instances:
    """The machines of one cloud; several processes may hold the same ones, by `name`."""

    def __init__(self, name: str, folder: str, *, private: str, public: str) -> None:
        """Say which they are; nothing is started.

        Args:
            name: of the two networks, and how names of containers begin.
            folder: where seeds are.
            private: CIDR of the cloud's network.
            public: CIDR that simulates the internet: public addresses are out of it.
        """
        self.name, self._folder = name, Path(folder)
        self.private, self.public = IPv4Network(private), IPv4Network(public)
        self._engine: Engine = find_engine()
        self._given = 0

    def lay_networks(self) -> None:
        """Make the networks, and the image where this machine has none."""
        ensure_base(self._engine, places.private_directory(places.cache_home()), "cloud-like")
        for name, subnet in ((self.name, self.private), (self._internet, self.public)):
            self._call(
                *("network", "create", f"--subnet={subnet}", "--disable-dns"),
                *(f"--label={LABEL}={self.name}", name),
            )

    def launch(self, identifier: str, *, host: str, address: str, user_data: str) -> None:
        """Start a machine.

        Its host name is the one that it will have: a container can't change its own.
        """
        seed = self._folder / "seeds" / identifier
        seed.mkdir(parents=True)
        (seed / "user-data").write_text(user_data, encoding="utf-8")
        meta = {"instance-id": identifier, "local-hostname": host}
        (seed / "meta-data").write_text(json.dumps(meta), encoding="utf-8")
        image = ensure_base(self._engine, self._folder, "cloud-like")
        self._call(
            *("run", "--detach", "--tty", "--pull=never", f"--name={self._container(identifier)}"),
            *(f"--hostname={host}", f"--network={self.name}:ip={address}", "--shm-size=512m"),
            *(f"--label={LABEL}={self.name}", f"--label={LABEL}.host={host}"),
            *(f"--volume={seed}:{SEED}:ro", *self._engine.system_container_flags()),
            *(image, "/sbin/init"),
        )
        # No way in from outside but a public address: answers to the bridge's own go nowhere.
        process = self._call("inspect", "--format={{.State.Pid}}", self._container(identifier))
        outside = str(next(self.private.hosts()))
        subprocess.run(
            ["nsenter", "-t", process.strip(), "-n", "ip", "route", "add", "blackhole", outside],
            check=True,
        )

    def new_public_address(self) -> str:
        """Return a public address that is free."""
        self._given += 1
        return str(self.public[_FIRST_PUBLIC + self._given])

    def open(self, identifier: str, address: str) -> None:
        """Let a machine be reached by a public address."""
        self._call(
            "network", "connect", f"--ip={address}", self._internet, self._container(identifier)
        )

    def close(self, identifier: str) -> None:
        """Take its public address away."""
        self._call("network", "disconnect", "--force", self._internet, self._container(identifier))

    def end(self, identifier: str) -> None:
        """Remove a machine."""
        self._engine.remove([self._container(identifier)])

    def console(self, identifier: str) -> str:
        """Return what a machine's console shows."""
        shown = self._call("logs", self._container(identifier))
        return shown[-_CONSOLE_BYTES:]

    def files(self, identifier: str, folder: str) -> dict[str, str]:
        """Return name -> text of the files of a folder on a machine; {} where it has none."""
        shell = f'cd {folder} 2>/dev/null && for f in *; do echo "$f $(cat "$f")"; done || true'
        output = self.run(identifier, shell)
        return dict(line.split(" ", 1) for line in output.splitlines())

    def run(self, identifier: str, shell: str) -> str:
        """Return what a shell prints on a machine; raises as the engine's calls do."""
        return self._call("exec", self._container(identifier), "sh", "-c", shell)

    def existing(self) -> dict[str, str]:
        """Return container -> host name, of all machines."""
        there = self._engine.containers({LABEL: self.name})
        return {container.name: container.labels[f"{LABEL}.host"] for container in there}

    def clear(self) -> None:
        """Remove machines and networks, whatever state they are in."""
        self._engine.remove(self.existing())
        for network in self._engine.networks({LABEL: self.name}):
            self._call("network", "rm", "--force", network.name)

    @property
    def _internet(self) -> str:
        return f"{self.name}-internet"

    def _container(self, identifier: str) -> str:
        return f"{self.name}-{identifier}"

    def _call(self, *words: str) -> str:
        return self._engine.call(*words, timeout_s=120)
