#!/usr/bin/python3
"""Create and mount the file systems on a node's own disks: scratch on all of them, data on one.

usage: node-disks.py up|plan|verify [SETTINGS]

`up` brings every file system to its settings, and prints what it changed; `plan` prints that and
changes nothing; `verify` prints the differences. It runs at each start of the node: local disks are
empty after the machine was stopped, so scratch is made again, which is what scratch is. A disk is
formatted only where the settings allow it, and only if it is blank (no signature, no partition,
nothing above it) or carries our own label. Several disks of a scratch are striped (mdadm, RAID 0).
A data disk is formatted once, when it is blank, and never again.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Wanted = dict[str, Any]
SYS = Path(os.environ.get("GCLUSTER_SYS", "/sys"))
DEV = Path(os.environ.get("GCLUSTER_DEV", "/dev"))
RUN = Path(os.environ.get("GCLUSTER_RUN", "/run/gcluster-disks"))
MOUNTS = Path(os.environ.get("GCLUSTER_MOUNTS", "/proc/self/mounts"))
SETTINGS = Path("/etc/gcluster/disks.json")
APPEARS_S = float(os.environ.get("GCLUSTER_DISK_WAIT", "120"))
"""How long a disk that is named may take to appear: a cloud attaches it while the node starts."""
DEFAULTS: Wanted = {"models": [], "devices": [], "options": [], "filesystem": "xfs",
                    "format": False, "grows": False}  # fmt: skip
NOTHING_FOUND = 2
"""What blkid ends with where a disk has no signature."""
ARRAY = "linux_raid_member"


class RefusedError(Exception):
    """A disk is not ours to format, or is missing."""


def run(*argv: str, ok: tuple[int, ...] = (0,)) -> tuple[int, str]:
    """Run a program; return its status and output. Raises RefusedError where it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in ok:
        raise RefusedError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.returncode, done.stdout


def signature(disk: Path) -> dict[str, str]:
    """Return TYPE, LABEL and the like as blkid reads them from a disk itself; {}: it has none."""
    code, text = run("blkid", "-p", "-o", "export", str(disk), ok=(0, NOTHING_FOUND))
    if code == NOTHING_FOUND:
        return {}
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def in_use(disk: Path) -> str:
    """Return what keeps a disk from being formatted apart from its signature."""
    name = disk.resolve().name
    block = SYS / "class/block" / name
    parts = sorted(path.name for path in block.glob(f"{name}*"))
    above = sorted(path.name for path in block.glob("holders/*"))
    if parts:
        return f"has partitions ({', '.join(parts)})"
    return f"is part of {', '.join(above)}" if above else ""


def local_disks(wanted: Wanted) -> list[Path]:
    """Return a scratch's disks: those named, those of the cloud's models, or all that are free."""
    if wanted["devices"]:
        return [appear([name]) for name in wanted["devices"]]
    found = []
    for block in sorted((SYS / "class/block").glob("nvme*n*")):
        model = block / "device/model"
        if re.fullmatch(r"nvme\d+n\d+", block.name) and model.exists():
            said, disk = model.read_text().strip(), DEV / block.name
            if any(fnmatch.fnmatchcase(said, pattern) for pattern in wanted["models"]) or (
                not wanted["models"] and (is_ours(disk, wanted) or is_blank(disk))
            ):
                found.append(disk)
    if not found:
        raise RefusedError(
            "the node has no local NVMe disk"
            + (f" of {' or '.join(wanted['models'])}" if wanted["models"] else " that is free")
        )
    return found


def appear(names: list[str]) -> Path:
    """Return the first of several names of a disk that is there, within the time limit."""
    end = time.monotonic() + APPEARS_S
    while True:
        for name in names:
            if Path(name).exists():
                return Path(name)
        if time.monotonic() > end:
            raise RefusedError(f"no disk appeared at {' or '.join(names)}")
        time.sleep(1)


def is_blank(disk: Path) -> bool:
    """Return whether a disk is blank and unused."""
    return not in_use(disk) and not signature(disk)


def is_ours(disk: Path, wanted: Wanted) -> bool:
    """Return whether a disk carries this file system, or is a part of its array."""
    found = signature(disk)
    if found.get("TYPE") == ARRAY:
        return found.get("LABEL", "").rpartition(":")[2] == str(wanted["label"])
    return found.get("LABEL") == str(wanted["label"])


def refuse_foreign(disk: Path, wanted: Wanted) -> None:
    """Go on where a disk is blank or ours. Raises RefusedError."""
    if is_ours(disk, wanted) or is_blank(disk):
        return
    what = in_use(disk) or f"holds {signature(disk).get('TYPE', 'something')}"
    raise RefusedError(f"{disk} {what}, which gcluster did not make: it is not formatted")


def array_of(disks: list[Path]) -> Path | None:
    """Return the running array that all of the disks are a part of; None where there is none."""
    names = [
        {path.name for path in (SYS / "class/block" / d.resolve().name).glob("holders/md*")}
        for d in disks
    ]
    common = set.intersection(*names)
    return DEV / min(common) if common else None


def bring_array(wanted: Wanted, disks: list[Path], *, act: bool) -> Iterator[str]:
    """Assemble the striped array that is on the disks, or make it; yield what is changed."""
    ours = [disk for disk in disks if is_ours(disk, wanted)]
    node = DEV / "md" / wanted["label"]
    if len(ours) == len(disks):
        command = ("mdadm", "--assemble", str(node), *map(str, disks))
        if not act:
            yield f"array {wanted['label']} of {len(disks)} disks is assembled"
            return
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            yield f"array {wanted['label']} of {len(disks)} disks is assembled"
            return
    allow(wanted, f"{len(disks)} disks")
    yield f"array {wanted['label']} of {len(disks)} disks is made"
    if act:
        for disk in ours:  # one that lost a disk holds nothing any more
            run("mdadm", "--zero-superblock", str(disk))
        named = ["--homehost=any", f"--name={wanted['label']}", f"--raid-devices={len(disks)}"]
        run("mdadm", "--create", str(node), "--run", "--level=0", "--metadata=1.2", *named,
            *map(str, disks))  # fmt: skip
        run("udevadm", "settle", ok=(0, 1))


def allow(wanted: Wanted, what: str) -> None:
    """Check that the spec allows formatting. Raises RefusedError."""
    if not wanted["format"]:
        raise RefusedError(
            f"{what} of {wanted['name']} would be formatted, and the spec doesn't allow it"
        )


def mounted() -> dict[str, str]:
    """Return path -> device of what is mounted."""
    lines = (line.split(" ") for line in MOUNTS.read_text().splitlines())
    return {line[1].replace("\\040", " "): line[0] for line in lines}


def changes(wanted: Wanted, *, act: bool) -> Iterator[str]:
    """Yield what brings one file system to its settings, and do it if `act`."""
    path = wanted["path"]
    if path in mounted() and not wanted["grows"]:
        return
    scratch = wanted["kind"] == "scratch"
    disks = local_disks(wanted) if scratch else [appear(wanted["devices"])]
    if path not in mounted():
        target: Path | None = disks[0]
        for disk in disks:
            refuse_foreign(disk, wanted)
        if len(disks) > 1:
            target = array_of(disks)
            if target is None:
                yield from bring_array(wanted, disks, act=act)
                target = array_of(disks)
        yield from format_blank(wanted, target, act=act)
        yield f"{wanted['name']} is mounted at {path}"
        if act:
            Path(path).mkdir(parents=True, exist_ok=True)
            if not scratch:
                carry(Path(path), str(target), wanted["label"])
            run("mount", "-o", ",".join(wanted["options"] or ["defaults"]), str(target), path)
            if scratch:
                Path(path).chmod(0o1777)
    if wanted["grows"] and act:
        grow(wanted, mounted().get(path, ""))


def carry(path: Path, device: str, label: str) -> None:
    """Copy files of the folder that aren't on the disk yet to the disk that will hide them.

    Users got their homes before the disk existed, or a machine was recreated with a new one.
    """
    hidden = sorted(path.iterdir())
    if not hidden:
        return
    staging = RUN / label
    staging.mkdir(parents=True, exist_ok=True)
    run("mount", device, str(staging))
    try:
        for entry in hidden:
            if not (staging / entry.name).exists():
                run("cp", "--archive", str(entry), f"{staging}/")
    finally:
        run("umount", str(staging))


def format_blank(wanted: Wanted, target: Path | None, *, act: bool) -> Iterator[str]:
    """Make the file system on a disk that has none; one of another kind is not ours."""
    there = {} if target is None else signature(target)
    if there.get("TYPE"):
        if there.get("LABEL") != wanted["label"]:
            raise RefusedError(f"{target} holds {there['TYPE']}, which gcluster did not make")
        return
    allow(wanted, str(target or "the array"))
    yield f"{wanted['name']}: {wanted['filesystem']} is made"
    if act:
        program = f"mkfs.{wanted['filesystem']}"
        run(program, "-q", "-L", wanted["label"], str(target))


def grow(wanted: Wanted, device: str) -> None:
    """Let a file system take all of its disk, which may have grown; one that does stays."""
    if wanted["filesystem"] == "xfs":
        run("xfs_growfs", wanted["path"])
    else:
        run("resize2fs", device)


def differences(wanted: Wanted) -> list[str]:
    """Return what is wrong with a file system on the running node."""
    path = wanted["path"]
    device = mounted().get(path)
    if device is None:
        return [f"{path}: nothing is mounted"]
    label = signature(Path(device)).get("LABEL")
    if label != wanted["label"]:
        return [f"{path}: {device} is mounted, whose label is {label}, not {wanted['label']}"]
    return []


def main(argv: list[str]) -> int:
    """Do the action for every file system; one that fails keeps no other from being mounted."""
    verb = argv[1] if len(argv) > 1 else ""
    if verb not in {"up", "plan", "verify"}:
        sys.stderr.write((__doc__ or "").split("\n\n", 2)[1] + "\n")
        return 64
    settings = Path(argv[2]) if argv[2:] else SETTINGS
    wrong = []
    for said in json.loads(settings.read_text())["file_systems"]:
        wanted = {**DEFAULTS, **said}
        try:
            if verb == "verify":
                wrong += differences(wanted)
            else:
                for line in changes(wanted, act=verb == "up"):
                    print(line)
        except (RefusedError, OSError) as error:
            wrong.append(f"{wanted['path']}: {error}")
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
