#!/usr/bin/python3
"""Cuts this node's NVIDIA GPUs into MIG slices, and gives each slice names that stay.

    mig-slices.py apply     what differs is cut again, while nothing runs on that GPU
    mig-slices.py check     changes nothing; says what differs
    mig-slices.py end       slices and MIG mode go, while nothing runs on any GPU

/etc/gcluster/mig-slices.json has `gpus`, their number, and `slices`: profile -> number on each GPU.
Slices are gone after a restart of the node, and from Hopper on MIG mode is too (NVIDIA MIG user
guide, "Getting Started with MIG"), so gcluster-mig-slices.service runs it before slurmd.

gres.conf names a slice by its GPU and its place there, largest first: /dev/gcluster/mig has links
to its two device files, whose numbers the driver gives out (/proc/driver/nvidia-caps/mig-minors).
/run/gcluster/mig-slices has a line for each: the place and the UUID, for CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(os.environ.get("GCLUSTER_MIG_ROOT", "/"))
"""Another root, in tests."""
WANTED = ROOT / "etc/gcluster/mig-slices.json"
MINORS = ROOT / "proc/driver/nvidia-caps/mig-minors"
CAPABILITIES = ROOT / "proc/driver/nvidia/capabilities"
DEVICES = ROOT / "dev/nvidia-caps"
LINKS = ROOT / "dev/gcluster/mig"
UUIDS = ROOT / "run/gcluster/mig-slices"
LIMIT_S = 120
MONITORS = ("nvidia-dcgm.service", "nvsm.service")
"""They hold GPUs whose mode is changed or whose slices go ("In use by another client"; DGX A100
user guide, "Multi-Instance GPU")."""
_GPU = re.compile(r"^GPU\s+\d+: .*\(UUID: (GPU-[^)]+)\)")
_SLICE = re.compile(r"^\s+MIG\s+(\S+)\s+Device\s+(\d+): \(UUID: (MIG-[^)]+)\)")


class FailedError(Exception):
    """What is wrong, in words for the node's journal and for gcluster."""


class Slice(NamedTuple):
    """A slice that is there: a GPU instance with one compute instance over all of it."""

    profile: str
    instance: int
    """GPU instance."""
    compute: int
    uuid: str


class Gpu(NamedTuple):
    """A GPU as the driver has it."""

    number: int
    """Of its device file: 0 of /dev/nvidia0."""
    bus: str
    is_sliced: bool
    """In MIG mode."""
    is_busy: bool
    slices: tuple[Slice, ...]


def smi(*words: str) -> tuple[int, str]:
    """Return nvidia-smi's status and output."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except FileNotFoundError:
        raise FailedError("nvidia-smi isn't here") from None
    except subprocess.TimeoutExpired:
        raise FailedError(f"nvidia-smi doesn't answer within {LIMIT_S} s") from None
    return done.returncode, done.stdout.strip()


def listed(text: str) -> dict[str, dict[int, tuple[str, str]]]:
    """Return GPU's UUID -> number of its slice -> profile and UUID, from `nvidia-smi -L`."""
    found: dict[str, dict[int, tuple[str, str]]] = {}
    here: dict[int, tuple[str, str]] = {}
    for line in text.splitlines():
        if gpu := _GPU.match(line):
            here = found.setdefault(gpu[1], {})
        elif cut := _SLICE.match(line):
            here[int(cut[2])] = cut[1], cut[3]
    return found


def read_gpus() -> list[Gpu]:
    """Return the GPUs by the numbers of their device files.

    Raises:
        FailedError: the driver doesn't answer, or not in words that are known.
    """
    code, text = smi("-q", "-x")
    if code:
        raise FailedError(f"nvidia-smi -q -x: {text}")
    code, names = smi("-L")
    if code:
        raise FailedError(f"nvidia-smi -L: {names}")
    try:
        # What the node's own driver says.
        gpus = ET.fromstring(text[text.index("<") :]).findall("gpu")  # noqa: S314
        known = listed(names)
        found = [_gpu(gpu, known.get((gpu.findtext("uuid") or "").strip(), {})) for gpu in gpus]
    except (ET.ParseError, KeyError, ValueError) as why:
        raise FailedError(f"nvidia-smi can't be read: {why!r}") from why
    return sorted(found)


def _gpu(gpu: ET.Element, known: dict[int, tuple[str, str]]) -> Gpu:
    def number(element: ET.Element, path: str) -> int:
        return int((element.findtext(path) or "").strip())

    slices = (
        Slice(
            known[number(each, "index")][0],
            number(each, "gpu_instance_id"),
            number(each, "compute_instance_id"),
            known[number(each, "index")][1],
        )
        for each in gpu.findall("mig_devices/mig_device")
    )
    return Gpu(
        number(gpu, "minor_number"),
        gpu.get("id", ""),
        (gpu.findtext("mig_mode/current_mig") or "").strip() == "Enabled",
        gpu.find("processes/process_info") is not None,
        tuple(sorted(slices)),
    )


def read_wanted() -> tuple[int, dict[str, int]]:
    """Return the number of GPUs, and profile -> slices of each.

    Raises:
        FailedError: the file isn't there, or isn't what the role writes.
    """
    try:
        wanted = json.loads(WANTED.read_text())
        return int(wanted["gpus"]), {str(name): int(n) for name, n in wanted["slices"].items()}
    except (OSError, ValueError, KeyError, AttributeError) as why:
        raise FailedError(f"{WANTED} can't be read: {why}") from why


def differences(gpus: list[Gpu], count: int, wanted: dict[str, int]) -> list[str]:
    """Return what is cut otherwise."""
    wrong = [] if len(gpus) == count else [f"{len(gpus)} GPUs answer, not {count}"]
    return wrong + [
        f"GPU {gpu.number} {'has ' + described(cut_of(gpu)) if gpu.is_sliced else 'is whole'}, "
        f"not {described(wanted)}"
        for gpu in gpus
        if not gpu.is_sliced or cut_of(gpu) != wanted
    ]


def cut_of(gpu: Gpu) -> dict[str, int]:
    """Return profile -> slices that are there."""
    return dict(Counter(each.profile for each in gpu.slices))


def described(cut: dict[str, int]) -> str:
    """Return slices as text: "1g.10gb: 7"."""
    return ", ".join(f"{name}: {n}" for name, n in sorted(cut.items())) or "no slices"


@contextmanager
def without_monitors(due: list[Gpu]) -> Iterator[None]:
    """Stop the daemons that keep GPUs open, where some are to be changed, and start them again."""
    running = [unit for unit in MONITORS if due and systemctl("is-active", "--quiet", unit)]
    for unit in running:
        systemctl("stop", unit)
    try:
        yield
    finally:
        for unit in running:
            systemctl("start", unit)


def systemctl(*words: str) -> bool:
    """Return whether systemctl says yes, or has done it."""
    done = subprocess.run(["systemctl", *words], check=False, capture_output=True, timeout=LIMIT_S)
    return done.returncode == 0


def cut(gpu: Gpu, wanted: dict[str, int]) -> None:
    """Cut a GPU again.

    The driver chooses where a slice begins, so that the order in which they are made decides
    whether all of them fit: each is tried, larger ones first (as nvidia-mig-parted does, NVIDIA/
    mig-parted pkg/mig/config, iteratePermutationsUntilSuccess).

    Raises:
        FailedError: something runs on it, or the driver refuses all orders.
    """
    refuse_in_use(gpu)
    if not gpu.is_sliced:
        set_mode(gpu, is_sliced=True)
    said = ""
    for order in orders(wanted):
        clear(gpu)
        code, said = smi("mig", "-i", gpu.bus, "-cgi", ",".join(order), "-C")
        if code == 0:
            return
    raise FailedError(f"GPU {gpu.number} can't be cut into {described(wanted)}: {said}")


def refuse_in_use(gpu: Gpu) -> None:
    """Raise FailedError where a program runs on a GPU."""
    if gpu.is_busy:
        raise FailedError(f"GPU {gpu.number} is in use and stays as it is: drain the node first")


def set_mode(gpu: Gpu, *, is_sliced: bool) -> None:
    """Set MIG mode, which Hopper and newer ones lose at a restart.

    Raises:
        FailedError: it doesn't hold now; before Hopper that takes a reset of the GPU.
    """
    smi("-i", gpu.bus, "-mig", "1" if is_sliced else "0")
    now = next((each for each in read_gpus() if each.number == gpu.number), gpu)
    if now.is_sliced != is_sliced:
        still = "isn't" if is_sliced else "is still"
        raise FailedError(f"GPU {gpu.number} {still} in MIG mode: reset it, or restart the node")


def clear(gpu: Gpu) -> None:
    """Take all slices away: compute instances before what they lie in.

    Where there are none nvidia-smi ends with an error ("No GPU instances found"), which none is.

    Raises:
        FailedError: a program uses one.
    """
    for what in ("-dci", "-dgi"):
        code, said = smi("mig", "-i", gpu.bus, what)
        if code and "In use" in said:
            raise FailedError(f"GPU {gpu.number}: {said}")


def orders(wanted: dict[str, int]) -> Iterator[tuple[str, ...]]:
    """Yield the orders in which a GPU's slices may be made, each once, the largest first."""
    found: set[tuple[str, ...]] = set()
    for order in permutations(places(wanted)):
        if order not in found:
            found.add(order)
            yield order


def places(wanted: dict[str, int]) -> list[str]:
    """Return the profiles of a GPU's places, the largest first: as gres.conf counts them."""
    return [name for name in sorted(wanted, key=size, reverse=True) for _ in range(wanted[name])]


def size(profile: str) -> tuple[int, int]:
    """Return what profiles are ordered by, the size: compute slices, then gigabytes."""
    found = re.match(r"(\d+)g\.(\d+)gb", profile)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def give_names(gpus: list[Gpu], wanted: dict[str, int]) -> None:
    """Link the device files of each slice, and write the UUIDs.

    Raises:
        FailedError: the driver has no device file for a slice.
    """
    minors = dict(line.split() for line in MINORS.read_text().splitlines() if line.strip())
    accesses: dict[str, str] = {}
    lines = []
    for gpu in gpus:
        left = list(gpu.slices)
        for place, profile in enumerate(places(wanted)):
            one = next(each for each in left if each.profile == profile)
            left.remove(one)
            instance = f"gpu{gpu.number}/gi{one.instance}"
            here = f"gpu{gpu.number}-{place}"
            accesses[f"{here}-instance"] = f"{instance}/access"
            accesses[f"{here}-compute"] = f"{instance}/ci{one.compute}/access"
            lines.append(f"{here} {one.uuid}\n")
    made = devices(minors, list(accesses.values()))
    links = {link: made[access] for link, access in accesses.items()}
    LINKS.mkdir(parents=True, exist_ok=True)
    for old in LINKS.iterdir():
        if old.name not in links:
            old.unlink()
    for link, target in links.items():
        new = LINKS / f".{link}"
        new.unlink(missing_ok=True)
        new.symlink_to(target)
        new.replace(LINKS / link)
    UUIDS.parent.mkdir(parents=True, exist_ok=True)
    new = UUIDS.with_name(f".{UUIDS.name}")
    new.write_text("".join(lines))
    new.chmod(0o644)
    new.replace(UUIDS)


def devices(minors: dict[str, str], accesses: list[str]) -> dict[str, Path]:
    """Return the device files that guard parts of GPUs; those that aren't there are made.

    Raises:
        FailedError: the driver has none for one of them.
    """
    if unknown := [access for access in accesses if access not in minors]:
        raise FailedError(f"the driver has no device file for {unknown[0]}")
    paths = {access: DEVICES / f"nvidia-cap{minors[access]}" for access in accesses}
    missing = [access for access, path in paths.items() if not path.exists()]
    if missing:
        # MIG user guide, "Device Nodes and Capabilities": gpu0/gi1/access is gpu0/mig/gi1/access.
        files = (str(CAPABILITIES / access.replace("/", "/mig/", 1)) for access in missing)
        options = [word for file in files for word in ("-f", file)]
        subprocess.run(["nvidia-modprobe", *options], check=False, timeout=LIMIT_S)
    for access, path in paths.items():
        if not path.exists():
            raise FailedError(f"{path} isn't there, the device file of {access}")
    return paths


def named(gpus: list[Gpu], wanted: dict[str, int]) -> bool:
    """Return whether each slice has its links and its UUID."""
    try:
        lines = UUIDS.read_text().split()
    except OSError:
        return False
    uuids = {each.uuid for gpu in gpus for each in gpu.slices}
    links = [
        LINKS / f"gpu{gpu.number}-{place}-{what}"
        for gpu in gpus
        for place in range(len(places(wanted)))
        for what in ("instance", "compute")
    ]
    return set(lines[1::2]) == uuids and all(link.exists() for link in links)


def apply() -> None:
    """Cut what differs, then name all slices; prints what it changed."""
    count, wanted = read_wanted()
    due = [gpu for gpu in read_gpus() if not gpu.is_sliced or cut_of(gpu) != wanted]
    with without_monitors(due):
        for gpu in due:
            cut(gpu, wanted)
            print(f"GPU {gpu.number} is cut into {described(wanted)}")
    gpus = read_gpus()
    if wrong := differences(gpus, count, wanted):
        raise FailedError("; ".join(wrong))
    if not named(gpus, wanted):
        give_names(gpus, wanted)
        # What containers may get has the slices too; without the container toolkit nothing does.
        systemctl("--no-block", "start", "nvidia-cdi-refresh.service")
        print("slices are named")


def check() -> None:
    """Say what differs.

    Raises:
        FailedError: something does.
    """
    count, wanted = read_wanted()
    gpus = read_gpus()
    wrong = differences(gpus, count, wanted)
    if not wrong and not named(gpus, wanted):
        wrong = [f"{LINKS} and {UUIDS} don't name the slices that are there"]
    if wrong:
        raise FailedError("; ".join(wrong))


def end() -> None:
    """Make all GPUs whole; prints what it changed.

    Raises:
        FailedError: one is in use, or stays in MIG mode.
    """
    due = [gpu for gpu in read_gpus() if gpu.is_sliced]
    for gpu in due:
        refuse_in_use(gpu)
    with without_monitors(due):
        for gpu in due:
            clear(gpu)
            set_mode(gpu, is_sliced=False)
            print(f"GPU {gpu.number} is whole")
    UUIDS.unlink(missing_ok=True)
    for link in LINKS.iterdir() if LINKS.is_dir() else ():
        link.unlink()


def main() -> None:
    """Run the command that is named."""
    commands = {"apply": apply, "check": check, "end": end}
    command = commands.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if command is None:
        sys.exit("usage: mig-slices.py apply|check|end")
    try:
        command()
    except FailedError as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
