"""The container engine of a site: podman or docker.

The parts for docker were never run: no docker daemon was available.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from ...provider import ProviderError, provider_error
from .podman import (
    INSTALL_ENGINE,
    KUBERNETES_FLAGS,
    Container,
    Engine,
    EngineFacts,
    Network,
    Volume,
    label_filters,
    limit_flags,
)


class DockerEngine(Engine):
    """docker's command line; it has no systemd mode, and lists come from `inspect`."""

    name: Literal["podman", "docker"] = "docker"
    start_options = ()  # its nodes may make namespaces

    def _query_facts(self) -> EngineFacts:
        answer = self._json("info", "--format", "{{json .}}")
        if not answer.get("ServerVersion"):
            raise provider_error(
                "GC911", "docker's daemon does not answer", hint="sudo systemctl start docker"
            )
        if str(answer.get("CgroupVersion")) != "2":
            raise provider_error(
                "GC919",
                "docker can run nodes on machines with cgroup v2 only",
                hint="sudo apt-get install -y podman runc",
            )
        return EngineFacts(
            version=answer["ServerVersion"],
            runtime=answer["DefaultRuntime"],
            rootless=any("rootless" in option for option in answer.get("SecurityOptions") or ()),
            storage=Path(answer["DockerRootDir"]),
        )

    def containers(self, labels: Mapping[str, str]) -> tuple[Container, ...]:
        """Return all containers, alive or not, that carry every one of `labels`."""
        ids = self.call("ps", "--all", "--quiet", "--no-trunc", *label_filters(labels)).split()
        answer = self._json("inspect", "--type", "container", *ids) if ids else []
        return tuple(
            Container(
                c["Id"],
                c["Name"].removeprefix("/"),
                c["Config"]["Labels"] or {},
                c["State"]["Status"].lower(),
            )
            for c in answer
        )

    def networks(self, labels: Mapping[str, str] | None = None) -> tuple[Network, ...]:
        """Return the networks that carry every one of `labels`; all of them without."""
        found = self.call("network", "ls", "--quiet", "--no-trunc", *label_filters(labels or {}))
        ids = found.split()
        answer = self._json("network", "inspect", *ids) if ids else []
        return tuple(
            Network(
                n["Id"],
                n["Name"],
                n.get("Labels") or {},
                tuple(c["Subnet"] for c in (n["IPAM"].get("Config") or ()) if "Subnet" in c),
            )
            for n in answer
        )

    def volumes(self, labels: Mapping[str, str]) -> tuple[Volume, ...]:
        """Return the volumes that carry every one of `labels`."""
        names = self.call("volume", "ls", "--quiet", *label_filters(labels)).split()
        answer = self._json("volume", "inspect", *names) if names else []
        return tuple(Volume(each["Name"], each["Labels"] or {}) for each in answer)

    def remove(self, names: Iterable[str]) -> None:
        """Remove containers and their anonymous volumes at once; those that are gone are fine."""
        wanted = sorted(names)
        if not wanted:
            return
        try:
            self.call("rm", "--force", "--volumes", *wanted)
        except ProviderError as error:
            if any("no such container" not in d.summary.lower() for d in error.diagnostics):
                raise

    def system_container_flags(self) -> list[str]:
        """Return the flags with which a container can run systemd, as kind starts its nodes.

        A private cgroup namespace keeps the node's systemd out of the host's cgroup tree; that
        is why machines without cgroup v2 are refused in `facts`.
        """
        return [
            "--privileged",
            "--cgroupns=private",
            "--security-opt=seccomp=unconfined",
            "--security-opt=apparmor=unconfined",
            "--tmpfs=/run:exec,mode=755",
            "--tmpfs=/run/lock",
            "--tmpfs=/tmp:exec,mode=1777",
            "--env=container=docker",
            "--stop-signal=SIGRTMIN+3",
            *limit_flags(),
        ]

    def kubernetes_container_flags(self) -> list[str]:
        """Return the flags with which a container can be a node of Kubernetes."""
        return [
            *KUBERNETES_FLAGS,
            *limit_flags(),
            "--security-opt=seccomp=unconfined",
            "--security-opt=apparmor=unconfined",
            "--env=container=docker",
            "--tmpfs=/run:exec,mode=755",
            "--tmpfs=/tmp:exec,mode=1777",
        ]


def find_engine(choice: Literal["auto", "podman", "docker"] = "auto") -> Engine:
    """Return the engine of the site; auto prefers podman. Only PATH is searched.

    Raises:
        ProviderError: GC910 with the command that installs it.
    """
    for name in ("podman", "docker") if choice == "auto" else (choice,):
        executable = shutil.which(name)
        if executable:
            return _engine(name, executable)
    missing = "podman nor docker is" if choice == "auto" else f"{choice} is not"
    raise provider_error(
        "GC910",
        f"{'neither ' if choice == 'auto' else ''}{missing} installed: local nodes need one",
        hint=INSTALL_ENGINE if choice != "docker" else "sudo apt-get install -y docker.io",
    )


@functools.cache
def _engine(name: str, executable: str) -> Engine:
    """Return the process-wide engine at a path: its facts are queried once."""
    return DockerEngine(executable) if name == "docker" else Engine(executable)
