"""Doubles of vendors and of hardware on the nodes of the whole-stack test.

Nothing is made up here that a role's own scenario has: its packages (`molecule/ROLE/packages.yml`)
become signed apt repositories on one machine of the room, its recordings (the case `good`) answer
on the nodes. Added is only what a stack has and a single role doesn't: the driver that runs is the
one whose modules were loaded last, all_reduce_perf sends its messages through Open MPI, and /sys
shows the adapters and the disk that the role node_health has recorded.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from .room import Room, podman

ROOT = Path(__file__).parents[2]
DOUBLES = ROOT / ".config/molecule/doubles"
PORT = 8000
BIN = "/usr/local/bin"
RECORDINGS = "/usr/local/lib/recordings"
DRIVERS = ("580.126.16", "595.58.03", "595.112.07")
RECORDED = ("595.58.03", "580.95.05")
"""Driver versions that recordings of a good node name."""
NOT_LOADED = "not-loaded"
"""The case before the first driver is loaded."""
NO_DRIVER = """$ nvidia-smi *
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.
? 9
"""
LOAD = f"""#!/bin/sh
# Stands for modprobe: a module is a folder; the driver that runs is the one installed by then.
cd /srv/sys/module
for module in $(echo "$@" | tr - _); do
    mkdir -p nvidia/holders "$module/holders"
    [ "$module" = nvidia ] || touch "nvidia/holders/$module"
done
version='${{source:Upstream-Version}}\\n'
dpkg-query --show --showformat "$version" nvidia-kernel-open-dkms > {RECORDINGS}/case
"""
UNLOAD = """#!/bin/sh
# Stands for rmmod: a module that another one holds can't be taken out.
cd /srv/sys/module
[ -d "$1" ] || { echo "rmmod: ERROR: Module $1 is not currently loaded"; exit 1; }
[ -z "$(ls "$1/holders")" ] || { echo "rmmod: ERROR: Module $1 is in use"; exit 1; }
rm -r "$1"; rm -f ./*/holders/"$1"
"""
KERNEL_STARTED = """
mkdir -p /srv/proc/sys/kernel /srv/sys/module /etc/default/grub.d
mkdir -p /srv/sys/kernel/mm/transparent_hugepage
for path in etc var run dev usr opt sys/class sys/block sys/fs; do ln -s "/$path" "/srv/$path"; done
echo 'root=/dev/sda1 ro iommu=pt' > /srv/proc/cmdline
echo 1 > /srv/proc/sys/kernel/numa_balancing
echo '[always] madvise never' > /srv/sys/kernel/mm/transparent_hugepage/enabled
echo 'import os; os.environ.update(GCLUSTER_PROC="/srv/proc", GCLUSTER_NODE_ROOT="/srv")' \\
    >> /usr/lib/python3.13/sitecustomize.py
"""
"""A container has its host's kernel: files replace its modules, settings and command line. They are
configured for every Python of the node, as nodes that converge themselves clear their environment.
"""
GPU_FILES = "for n in 0 1 2 3 4 5 6 7; do mknod -m 666 /dev/nvidia$n c 195 $n; done\n"


class Vendors:
    """The vendors of some roles, on one machine of a room."""

    def __init__(self, room: Room, host: str) -> None:
        """Say where; nothing is made."""
        self._room, self._host = room, host
        self.url = f"http://{room.address(host)}:{PORT}"

    def serve(self, roles: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Make the roles' packages, serve them, and return what a spec's `software.sources` says.

        Vendors have a folder for each distribution: here each is the same flat repository.
        """
        packages = _packages(roles)
        self._on(
            "apt-get update -q && apt-get install -qy --no-install-recommends gpg gpg-agent gpgconf"
        )
        program = (DOUBLES / "make-packages").read_text(encoding="utf-8")
        self._put({f"{BIN}/make-packages": program}, self._host)
        self._on("make-packages /srv/packages", stdin=json.dumps(packages))
        self._on(
            f"systemd-run --unit=vendors python3 -m http.server {PORT} --directory /srv/packages"
        )
        fingerprint = self._on("cat /srv/packages/fingerprint")
        sources: dict[str, dict[str, Any]] = {}
        for name, paths in _paths(packages).items():
            for path in paths:
                folder = f"/srv/packages/{name}/{path}"
                self._on(f"mkdir -p $(dirname {folder}) && ln -s /srv/packages/{name} {folder}")
            sources[name] = {
                "url": f"{self.url}/{name}",
                "key_url": f"{self.url}/key.asc",
                "key_fingerprint": fingerprint,
            }
        return sources | self._nccl_tests()

    def _nccl_tests(self) -> dict[str, dict[str, Any]]:
        """Serve the tests' source that the scenario of the role nccl has, by the tag's name."""
        written = yaml.safe_load((ROOT / "molecule/nccl/prepare.yml").read_text(encoding="utf-8"))
        (tasks,) = (play["tasks"] for play in written if "tarball" in play["name"])
        answer = self._on("bash", stdin=tasks[0]["ansible.builtin.shell"]["cmd"])
        tarball = "v2.17.6.tar.gz"
        checksums = {tarball: f"sha256:{answer.splitlines()[-1]}"}
        return {"nccl-tests": {"url": f"{self.url}/nccl-tests", "checksums": checksums}}

    def equip(self, hosts: Iterable[str], roles: Iterable[str]) -> None:
        """Give nodes the recorded tools of the roles, and devices to be seen."""
        tools = _recordings(roles)
        player = (DOUBLES / "play-recording").read_text(encoding="utf-8")
        gate = (Path(__file__).parent / "all_reduce_perf").read_text(encoding="utf-8")
        files = {f"{BIN}/{tool}": player for tool in tools} | _grub()
        files |= {f"{BIN}/modprobe": LOAD, f"{BIN}/rmmod": UNLOAD, f"{BIN}/all_reduce_perf": gate}
        files[f"{RECORDINGS}/case"] = f"{NOT_LOADED}\n"
        silent = tools | {"nvidia-smi": NO_DRIVER}
        for tool in silent:
            files[f"{RECORDINGS}/{tool}"] = "".join(
                f"== {case}\n{_of_driver((silent if case == NOT_LOADED else tools)[tool], case)}"
                for case in (NOT_LOADED, *DRIVERS)
            )
        for host in hosts:
            self._put(files, host)
            self._on(KERNEL_STARTED + GPU_FILES, host=host)

    def _on(self, command: str, *, stdin: str = "", host: str = "") -> str:
        name = f"{self._room.name}-{host or self._host}"
        return podman("exec", "--interactive", name, "sh", "-euc", command, stdin=stdin)

    def _put(self, files: Mapping[str, str], host: str) -> None:
        """Write files, in one go: programs start with #!."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = Path(folder) / path.lstrip("/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
                file.chmod(0o755 if text.startswith("#!") else 0o644)
            Path(folder).chmod(0o755)
            podman("cp", f"{folder}/.", f"{self._room.name}-{host}:/")


def devices(folder: Path) -> dict[str, Path]:
    """Write the recorded InfiniBand adapters and disk; return path of a node -> what is seen there.

    The rest of /sys/class is this machine's own: links, which find their devices as before.
    """
    written = ROOT / "molecule/node_health/recordings/files.yml"
    recorded = yaml.safe_load(written.read_text(encoding="utf-8"))
    for path, content in recorded.items():
        if path.startswith(("/sys/class/infiniband/", "/sys/block/")):
            place = folder / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{content}\n", encoding="utf-8")
    for links in Path("/sys/class").iterdir():
        there = folder / "sys/class" / links.name
        there.mkdir(exist_ok=True)
        for link in links.iterdir():
            if link.is_symlink() and links.name != "net":
                (there / link.name).symlink_to(link.readlink())
    (folder / "sys/class/net").rmdir()
    (folder / "sys/class/net").symlink_to("../devices/virtual/net")
    return {f"/sys/{name}": folder / "sys" / name for name in ("class", "block")}


def _packages(roles: Iterable[str]) -> dict[str, Any]:
    """Return source -> packages and files of all the roles; what two roles have is there once."""
    found: dict[str, Any] = {}
    known = _catalog()
    for role in roles:
        path = ROOT / "molecule" / role / "packages.yml"
        written = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
        for name, source in written.items():
            if name not in known:
                continue
            whole = found.setdefault(name, {"packages": [], "files": {}})
            have = {package["name"] for package in whole["packages"]}
            whole["packages"] += [p for p in source.get("packages", []) if p["name"] not in have]
            whole["files"] |= source.get("files", {})
    return found


def _catalog() -> dict[str, Any]:
    files = (ROOT / "schemas/catalog/sources").glob("*.yaml")
    entries = (yaml.safe_load(file.read_text(encoding="utf-8"))["sources"] for file in files)
    return {source["name"]: source for sources in entries for source in sources}


def _paths(packages: Iterable[str]) -> dict[str, set[str]]:
    """Return source -> the folders in which Debian 13 looks for its repositories."""
    known = _catalog()
    return {
        name: {
            repository.get("path", "")
            for repository in known[name].get("repositories", [])
            if repository["distribution"] == "debian-13" and repository.get("path")
        }
        for name in packages
    }


def _recordings(roles: Iterable[str]) -> dict[str, str]:
    """Return tool -> the recorded calls of all the roles, without heads."""
    found: dict[str, str] = {}
    for role in roles:
        folder = ROOT / "molecule" / role / "recordings"
        for file in sorted(
            path for path in folder.glob("*") if path.suffix not in {".yml", ".json"}
        ):
            lines = file.read_text(encoding="utf-8").partition("\n== ")[0].splitlines()
            first = next(n for n, line in enumerate(lines) if line.startswith("$ "))
            found[file.name] = found.get(file.name, "") + "\n".join(lines[first:]) + "\n"
    return found


def _of_driver(text: str, driver: str) -> str:
    for recorded in RECORDED:
        text = text.replace(recorded, driver)
    return text


def _grub() -> dict[str, str]:
    """Return grub's program as the scenario of the role kernel has it."""
    written = yaml.safe_load((ROOT / "molecule/kernel/packages.yml").read_text(encoding="utf-8"))
    (double,) = (p for p in written["kernels"]["packages"] if p["name"] == "grub-double")
    files: dict[str, str] = double["files"]
    return files
