"""What this machine lacks for clusters, above all for local nodes, and what installs it.

Only the standard library is imported: `.ci/machine` runs this file before there is anything else.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEBIAN_12, DEBIAN_13, UBUNTU_24 = "debian-12", "debian-13", "ubuntu-24.04"
KNOWN = (DEBIAN_12, DEBIAN_13, UBUNTU_24)
"""Distributions whose package names are known; tried on Debian 12 and 13, not on Ubuntu."""

_DISK_GIB = 4.0
"""The node image while it is built: archive, imported base and baked image together."""
_MEMORY_GIB = 1.5
"""Five local nodes with Slurm, and the command itself."""
_INOTIFY = 256
"""Inotify instances: with 128, nodes past about 25 came up degraded."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
"""Searched in addition to PATH: root's programs, which users' shells often leave out."""


@dataclass(frozen=True)
class Need:
    """One prerequisite, whether it is met, and how to meet it."""

    name: str
    why: str
    present: bool
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Distribution -> the packages to install; empty where no package helps."""
    command: str = ""
    """What a person types where no package helps."""
    required: bool = True
    """Whether `up` with a local site fails without it; else it is only reported."""


@dataclass(frozen=True)
class Machine:
    """Facts of this machine; tests construct their own."""

    distribution: str
    """"debian-12", "ubuntu-24.04" ..."""
    programs: frozenset[str]
    """Those of `PROGRAMS` that are installed."""
    docker_answers: bool
    """Whether docker's socket is there and may be written to."""
    debian_keys: bool
    """Whether Debian's archive keys are installed."""
    root: bool
    pure_cgroup_v2: bool
    inotify_instances: int
    free_disk_gib: float
    free_memory_gib: float
    python: tuple[int, int]
    is_installed: bool
    """Whether an installed gcluster checks, not a script before the installation."""


PROGRAMS = (
    "aardvark-dns", "ansible-playbook", "crun", "docker", "go", "gpg", "iptables", "mmdebstrap",
    "netavark", "nft", "podman", "runc", "ssh", "ssh-keygen",
)  # fmt: skip


def needs(machine: Machine) -> list[Need]:
    """Return all that is needed, present or not, in the order a person would install it."""
    docker = "docker" in machine.programs and machine.docker_answers and machine.pure_cgroup_v2
    engine = "docker" if docker and "podman" not in machine.programs else "podman"
    return [
        _python(machine),
        *_engine(machine, engine),
        *_image(machine),
        _program(machine, "ssh-keygen", "reaches the nodes", ("openssh-client",)),
        Need(
            "go",
            "compiles what local nodes need of Kubernetes and can't fetch, once, in 1 to 8 min on "
            "2 cores; else a container does",
            "go" in machine.programs,
            dict.fromkeys(KNOWN, ("golang-go",)),
            required=False,
        ),
        *_installed(machine),
        *_resources(machine),
        Need(
            "root",
            "starts nodes whose addresses this machine can reach",
            machine.root or engine == "docker",
            command="sudo gcluster up SPEC",
        ),
    ]


def _program(machine: Machine, name: str, why: str, packages: tuple[str, ...] = ()) -> Need:
    return Need(name, why, name in machine.programs, dict.fromkeys(KNOWN, packages or (name,)))


def _python(machine: Machine) -> Need:
    packages = dict.fromkeys(KNOWN, ("python3", "python3-venv"))
    return Need("python", "3.11 or newer runs gcluster", machine.python >= (3, 11), packages)


def _engine(machine: Machine, engine: str) -> list[Need]:
    """Return what the container engine needs; docker, where it is used, brings its own."""
    if engine == "docker":
        return [_program(machine, "docker", "runs the nodes (podman isn't installed)")]
    found = [
        _program(machine, "podman", "runs the nodes"),
        _program(machine, "netavark", "gives the nodes a network"),
        _program(machine, "aardvark-dns", "resolves the nodes' names"),
        _program(machine, "iptables", "lets the nodes' network reach the outside"),
    ]
    if machine.distribution == DEBIAN_13:
        found.append(_program(machine, "nft", "as iptables, in newer netavark", ("nftables",)))
    if not machine.pure_cgroup_v2:
        found.append(_program(machine, "runc", "starts nodes here: crun refuses hybrid cgroups"))
    elif not machine.programs & {"crun", "runc"}:
        found.append(_program(machine, "crun", "starts the nodes"))
    return found


def _image(machine: Machine) -> list[Need]:
    keys = "verifies the packages of the nodes' image"
    packages = dict.fromkeys(KNOWN, ("debian-archive-keyring",))
    return [
        _program(machine, "mmdebstrap", "builds the nodes' image"),
        _program(machine, "gpg", keys),
        Need("debian-archive-keyring", keys, machine.debian_keys, packages),
    ]


def _installed(machine: Machine) -> list[Need]:
    if not machine.is_installed:
        return []
    present = "ansible-playbook" in machine.programs
    why = "configures the nodes; comes with gcluster"
    return [
        Need("ansible-playbook", why, present, command="pip install --force-reinstall gcluster")
    ]


def _resources(machine: Machine) -> list[Need]:
    return [
        Need(
            "disk",
            f"{_DISK_GIB:g} GiB for the nodes' image; {machine.free_disk_gib:.1f} are free",
            machine.free_disk_gib >= _DISK_GIB,
            command="podman system prune",
        ),
        Need(
            "memory",
            f"{_MEMORY_GIB:g} GiB for five nodes; {machine.free_memory_gib:.1f} are free",
            machine.free_memory_gib >= _MEMORY_GIB,
            required=False,
        ),
        Need(
            "inotify",
            f"instances for more than 25 nodes; {machine.inotify_instances} are allowed",
            machine.inotify_instances >= _INOTIFY,
            command="sudo sysctl fs.inotify.max_user_instances=1024",
            required=False,
        ),
    ]


def missing(machine: Machine | None = None) -> list[Need]:
    """Return what is missing; without a machine, check this one."""
    return [need for need in needs(machine or this_machine()) if not need.present]


def packages_for(found: list[Need], distribution: str) -> tuple[str, ...]:
    """Return the packages that bring what is missing and needed, each once, in order.

    A distribution that isn't known gets the names of Debian 13.
    """
    known = distribution if distribution in KNOWN else DEBIAN_13
    wanted = (need for need in found if need.required)
    named = (package for need in wanted for package in need.packages.get(known, ()))
    return tuple(dict.fromkeys(named))


def install_command(packages: tuple[str, ...], *, root: bool) -> str:
    """Return the one command line that installs them on Debian and Ubuntu; "" for none."""
    if not packages:
        return ""
    sudo = "" if root else "sudo "
    install = f"{sudo}apt-get install -y --no-install-recommends {' '.join(packages)}"
    return f"{sudo}apt-get update && {install}"


def this_machine() -> Machine:
    """Inspect this machine: files and limits are read, no program is run."""
    path = os.pathsep.join((os.environ.get("PATH", ""), _SYSTEM_PATH, "/usr/lib/podman"))
    path += os.pathsep + os.pathsep.join((str(Path(sys.executable).parent), "/usr/libexec/podman"))
    return Machine(
        distribution=_distribution(),
        programs=frozenset(name for name in PROGRAMS if shutil.which(name, path=path)),
        docker_answers=os.access("/var/run/docker.sock", os.R_OK | os.W_OK),
        debian_keys=Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists(),
        root=os.geteuid() == 0,
        pure_cgroup_v2=Path("/sys/fs/cgroup/cgroup.controllers").exists(),
        inotify_instances=_number("/proc/sys/fs/inotify/max_user_instances"),
        free_disk_gib=_free_disk_gib(Path("/var/lib/containers/storage")),
        free_memory_gib=_free_memory_gib(),
        python=sys.version_info[:2],
        is_installed=__name__ != "__main__",
    )


def _distribution() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.system().lower()
    return f"{release.get('ID', 'linux')}-{release.get('VERSION_ID', '')}".rstrip("-")


def _number(path: str) -> int:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _free_disk_gib(path: Path) -> float:
    """Return the space free where `path` is, or would be made."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free / 2**30


def _free_memory_gib() -> float:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0.0
    lines = (line.split() for line in text.splitlines())
    kibibytes = next((int(words[1]) for words in lines if words[0] == "MemAvailable:"), 0)
    return kibibytes / 2**20


def main(arguments: list[str]) -> int:
    """Print what is missing, one need a line; with --packages one package and why a line."""
    machine = this_machine()
    found = [need for need in missing(machine) if need.required]
    if arguments == ["--packages"]:
        for need in found:
            for package in packages_for([need], machine.distribution):
                sys.stdout.write(f"{package:<14} {need.why}\n")
        return 0
    for need in found:
        sys.stdout.write(f"{need.name:<14} {need.why}\n")
    command = install_command(packages_for(found, machine.distribution), root=machine.root)
    sys.stdout.write(f"{command}\n" if command else "")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
