"""Machines that exist before gcluster runs: containers of the nodes' base image."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from gcluster.lifecycle.cluster import places
from gcluster.stacks.local.engine import find_engine
from gcluster.stacks.local.image.base_image import ensure_base

RUN = (
    *("--systemd=always", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=8192:8192"),
    *("--cap-add=MKNOD", "--cap-add=SYS_NICE"),
)


def podman(*arguments: str, stdin: str = "") -> str:
    """Run podman and return what it prints."""
    done = subprocess.run(
        ["podman", *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Room:
    """Machines on a network of their own, and addresses without a machine."""

    def __init__(self, folder: Path, hosts: tuple[str, ...] = ("head01", "gpu01")) -> None:
        """Make the login key; start nothing."""
        self.hosts = hosts
        self.name = f"room-{secrets.token_hex(3)}"
        self.key = folder / "key"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True
        )
        self.prefix = f"10.211.{secrets.randbelow(250)}"
        self.head, self.gpu, self.nobody = (f"{self.prefix}.{n}" for n in (11, 12, 13))

    def address(self, host: str) -> str:
        """Return a machine's address; they follow each other in the order of the machines."""
        return f"{self.prefix}.{11 + self.hosts.index(host)}"

    def start(
        self,
        image: str = "",
        mounts: Mapping[str, Path] = MappingProxyType({}),
        more: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """Start the machines, bare or from an image; they make their host keys themselves.

        Args:
            image: the nodes' base image by default.
            mounts: path in the machines -> what they see there.
            more: machine -> what else it is started with, as podman's arguments.
        """
        base = places.private_directory(places.cache_home())
        image = image or ensure_base(find_engine(), base)
        podman("network", "create", "--subnet", f"{self.prefix}.0/24", self.name)
        runtime = (
            ("--runtime", "runc")
            if "runc" in podman("info", "--format", "{{.Host.OCIRuntime.Name}}")
            else ()
        )
        for host in self.hosts:
            address = self.address(host)
            podman(
                *("run", "--detach", "--name", f"{self.name}-{host}", "--hostname", host),
                *(*runtime, *RUN, "--network", f"{self.name}:ip={address}"),
                *(f"--volume={seen}:{path}:ro" for path, seen in mounts.items()),
                *more.get(host, ()),
                *(image, "/sbin/init"),
            )

    def host_key(self, host: str) -> str:
        """Let the login key in and return the machine's own public host key."""
        script = (
            "install -d -m 700 /root/.ssh && cat > /root/.ssh/authorized_keys && "
            "for i in $(seq 100); do systemctl is-active --quiet ssh && break; sleep 0.1; done; "
            "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub"
        )
        public = self.key.with_suffix(".pub").read_text()
        return podman(
            "exec", "--interactive", f"{self.name}-{host}", "sh", "-c", script, stdin=public
        )

    def stop(self) -> None:
        """Remove the machines and their network, whatever state they are in."""
        names = [f"{self.name}-{host}" for host in self.hosts]
        subprocess.run(
            ["podman", "rm", "-f", "-v", "-t", "0", *names], capture_output=True, check=False
        )
        subprocess.run(["podman", "network", "rm", self.name], capture_output=True, check=False)


@contextmanager
def started_room(
    folder: Path,
    hosts: tuple[str, ...] = ("head01", "gpu01"),
    more: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Room]:
    """Yield machines that run; they are removed at the end, also where their start fails.

    `more` is as `Room.start` has it.
    """
    made = Room(folder, hosts)
    try:
        made.start(more=more)
        yield made
    finally:
        made.stop()
