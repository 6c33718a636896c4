"""The container engine behind one small class: argument lists in, parsed answers out."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...provider import ProviderError, provider_error

INSTALL_ENGINE = "sudo apt-get install -y podman netavark aardvark-dns runc mmdebstrap"
"""What gives a Debian or Ubuntu machine everything that local sites need."""

KUBERNETES_FLAGS = (
    "--privileged",
    "--cgroupns=private",
    "--stop-signal=SIGRTMIN+3",
    # Pods resolve names in their node's search domains too; the engine's own has a server that
    # responds over UDP alone, and a lookup over TCP ended there with SERVFAIL.
    "--dns-search=.",
    "--tmpfs=/run/lock",
    "--volume=/var/lib/containerd",
    "--volume=/var/lib/kubelet",
    "--volume=/var/lib/etcd",
)
"""What a node of Kubernetes is started with under podman and docker alike."""


def limit_flags() -> tuple[str, ...]:
    """Return the flags that bound a node's files and processes.

    They lie below the usual caps of a container host, where a node's own defaults fail with EPERM.
    The step of a job with a task on each of 192 CPUs holds some 1,200 files: where they run out,
    slurmstepd turns in circles and the job never ends.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = 20_000 if hard == resource.RLIM_INFINITY else min(20_000, hard)
    return (f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=8192:8192")


class Container(msgspec.Struct, frozen=True):
    """A container as the engine lists it."""

    id: str
    name: str
    labels: dict[str, str]
    state: str
    """"created", "running", "exited" ... as the engine names it, lower case."""

    @property
    def running(self) -> bool:
        """Whether its processes run."""
        return self.state == "running"


class Network(msgspec.Struct, frozen=True):
    """A container network."""

    id: str
    name: str
    labels: dict[str, str]
    subnets: tuple[str, ...]


class Volume(msgspec.Struct, frozen=True):
    """A volume, which is found by its name."""

    name: str
    labels: dict[str, str]

    @property
    def id(self) -> str:
        """Its name: engines give it no other."""
        return self.name


class EngineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's facts about itself and this machine."""

    version: str
    runtime: str
    """OCI runtime: "crun", "runc"."""
    rootless: bool
    storage: Path
    """Where images and containers are kept."""


_HOOKS = Path(__file__).parent.parent / "image/hooks"
_ANSWER_S = 30
"""Seconds that the engine itself may take for a command inside a container."""
_TRIES = 5


class Engine:
    """podman's command line; docker.py holds what docker does otherwise."""

    name: Literal["podman", "docker"] = "podman"
    start_options: tuple[str, ...] = (f"--hooks-dir={_HOOKS}",)
    """Options of the program itself wherever a container starts (`system_container_flags`)."""

    def __init__(self, executable: str) -> None:
        """Use the program at `executable`; nothing is run yet."""
        self.executable = executable
        self._facts: EngineFacts | None = None

    def call(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        """Run one command and return what it printed.

        Raises:
            ProviderError: GC911 with the engine's message, or that it took too long.
        """
        verb = " ".join(arguments[:2])
        options = self.start_options if arguments[0] in {"run", "start"} else ()
        try:
            done = subprocess.run(
                [self.executable, *options, *arguments],
                input=stdin,
                capture_output=True,
                check=False,
                text=True,
                errors="replace",
                timeout=timeout_s,
                # Ctrl-C is for us: a podman killed half-way leaves half a container behind.
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise provider_error(
                "GC911",
                f"{self.name} {verb} gave no answer in {timeout_s:.0f} s",
                hint=f"is the machine overloaded? `{self.name} ps` should answer at once",
            ) from None
        except OSError as error:
            raise provider_error(
                "GC910", f"{self.executable} can't be run: {error.strerror}", hint=INSTALL_ENGINE
            ) from None
        if done.returncode != 0:
            words = done.stderr.strip() or done.stdout.strip() or "no output"
            raise provider_error(
                "GC911",
                f"{self.name} {verb} failed: {words.splitlines()[-1]}",
                detail=words,
            )
        return done.stdout

    def inside(
        self, container: str, *command: str, stdin: str | None = None, limit_s: float = 60
    ) -> str:
        """Run a command in a container and return what it printed.

        It ends by itself after `limit_s` seconds: when this process is killed, the engine
        continues.

        Raises:
            ProviderError: see `call`.
        """
        interactive = () if stdin is None else ("--interactive",)
        bounded = ("timeout", "--kill-after=5", f"{limit_s:.0f}", *command)
        words = ("exec", *interactive, container, *bounded)
        return self.call(*words, stdin=stdin, timeout_s=limit_s + _ANSWER_S)

    def facts(self) -> EngineFacts:
        """Return the engine's facts, queried once; raises ProviderError when it doesn't work."""
        if self._facts is None:
            self._facts = self._query_facts()
        return self._facts

    def _query_facts(self) -> EngineFacts:
        answer = self._json("info", "--format", "json")
        host, store = answer["host"], answer["store"]
        return EngineFacts(
            version=answer["version"]["Version"],
            runtime=host["ociRuntime"]["name"],
            rootless=host["security"]["rootless"],
            storage=Path(store["graphRoot"]),
        )

    def containers(self, labels: Mapping[str, str]) -> tuple[Container, ...]:
        """Return all containers, alive or not, that carry every one of `labels`."""
        answer = self._json("ps", "--all", *label_filters(labels), "--format", "json")
        return tuple(
            Container(c["Id"], c["Names"][0], c["Labels"] or {}, c["State"].lower()) for c in answer
        )

    def networks(self, labels: Mapping[str, str] | None = None) -> tuple[Network, ...]:
        """Return the networks that carry every one of `labels`; all of them without."""
        answer = self._json("network", "ls", *label_filters(labels or {}), "--format", "json")
        return tuple(
            Network(
                n["id"],
                n["name"],
                n.get("labels") or {},
                tuple(s["subnet"] for s in n.get("subnets") or ()),
            )
            for n in answer
        )

    def volumes(self, labels: Mapping[str, str]) -> tuple[Volume, ...]:
        """Return the volumes that carry every one of `labels`.

        podman 4.3 lists volumes that carry any of them, so they are compared here.
        """
        answer = self._json("volume", "ls", *label_filters(labels), "--format", "json")
        found = (Volume(each["Name"], each["Labels"] or {}) for each in answer)
        return tuple(one for one in found if labels.items() <= one.labels.items())

    def remove_volume(self, name: str) -> None:
        """Remove a volume; one that is gone is fine.

        podman looks a name up among all volumes, and fails with the name of another one that
        another process removes at that moment: that is tried again, `_TRIES` times in all.

        Raises:
            ProviderError: GC911, it is in use, or the engine failed.
        """
        for tried in range(1, _TRIES + 1):
            try:
                self.call("volume", "rm", name)
            except ProviderError as error:
                words = " ".join(finding.summary for finding in error.diagnostics)
                is_missing = "no such volume" in words.lower()
                if is_missing and name in words:
                    return
                if not is_missing or tried == _TRIES:
                    raise
            else:
                return

    def has_image(self, reference: str) -> bool:
        """Return whether the image exists on this machine; nothing is pulled."""
        return bool(self.call("images", "--quiet", "--filter", f"reference={reference}").strip())

    def remove(self, names: Iterable[str]) -> None:
        """Remove containers and their anonymous volumes at once; those that are gone are fine."""
        wanted = sorted(names)
        if wanted:
            self.call("rm", "--force", "--volumes", "--ignore", "--time", "0", *wanted)

    def system_container_flags(self) -> list[str]:
        """Return the flags with which a container can run systemd as its first process.

        Without SYS_NICE slurmd can't set the affinity of jobs that are not root's, and without
        SYS_PTRACE it can't read /proc/PID/io of these: then it accounts no resources of a job.
        MKNOD creates simulated GPU devices. Such a container may create no namespaces, in which
        slurmd reads the environment of a job's user; it ends where that fails, and works without
        them where the kernel's limit is 0. image/hooks sets that limit in annotated containers.
        """
        return [
            *runtime_flags(self.facts),
            "--systemd=always",
            # Else podman writes /etc/hosts again at every start, without what role base put there.
            "--no-hosts",
            *limit_flags(),
            "--cap-add=MKNOD",
            "--cap-add=SYS_NICE",
            "--cap-add=SYS_PTRACE",
            "--annotation=gcluster.namespaces=none",
        ]

    def kubernetes_container_flags(self) -> list[str]:
        """Return the flags with which a container can be a node of Kubernetes.

        systemd's container detection is set explicitly: with `--systemd=always` podman gives all
        nodes the host's cgroup name=systemd. containerd, kubelet and etcd keep their data on
        volumes, where overlayfs works; these are removed with the container.
        """
        return [
            *runtime_flags(self.facts),
            *KUBERNETES_FLAGS,
            *limit_flags(),
            "--systemd=false",
            "--env=container=podman",
            "--tmpfs=/run:rw,nosuid,nodev,mode=755,size=512m",
            "--tmpfs=/tmp:rw,mode=1777",
            "--no-hosts",
        ]

    def _json(self, *arguments: str) -> Any:
        return msgspec.json.decode(self.call(*arguments))


def label_filters(labels: Mapping[str, str]) -> list[str]:
    """Return the flags that keep what carries every one of `labels`."""
    return [f"--filter=label={key}={value}" for key, value in labels.items()]


def runtime_flags(ask: Any, cgroups: Path = Path("/sys/fs/cgroup")) -> list[str]:
    """Return the flags that choose an OCI runtime that works with this machine's cgroups.

    crun refuses a hybrid hierarchy (v1 controllers and a v2 tree), runc accepts it; with pure
    cgroup v2 both work and nothing is queried.

    Args:
        ask: called for the EngineFacts where they matter.
        cgroups: where cgroups are mounted.

    Raises:
        ProviderError: crun is the default, the hierarchy isn't pure v2, and runc isn't installed.
    """
    if (cgroups / "cgroup.controllers").exists() or ask().runtime != "crun":
        return []
    if shutil.which("runc") is None:
        raise provider_error(
            "GC919",
            "crun can't start nodes on this machine: its cgroups are not pure v2",
            hint="sudo apt-get install -y runc",
        )
    return ["--runtime=runc"]
