"""A double of `nvidia-smi` and `nvidia-modprobe` on a node with GPUs that can be cut (MIG).

It says what NVIDIA's MIG user guide and other published runs show: -L, -q -x (cut down to what is
read), mig -cgi, -dci, -dgi. Placements are those of an H100 (`nvidia-smi mig -lgipp`,
GoogleCloudDataproc/initialization-actions gpu/mig.sh), and the first free one is taken. The minor
numbers are a real driver's: gpu4/gi7/access 606, its compute instance 607.

The node lies in $MIG_DOUBLE: state.json, calls, and the folders proc and dev.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(os.environ["MIG_DOUBLE"])
STATE = ROOT / "state.json"
PLACES = {
    "1g.10gb": (19, [0, 1, 2, 3, 4, 5, 6], 1),
    "1g.20gb": (15, [0, 2, 4, 6], 2),
    "2g.20gb": (14, [0, 2, 4], 2),
    "3g.40gb": (9, [0, 4], 4),
    "4g.40gb": (5, [0], 4),
    "7g.80gb": (0, [0], 8),
}
"""Profile -> its ID, where it may begin, its memory slices."""
NUMBERS = {"1g.10gb": 7, "1g.20gb": 7, "2g.20gb": 3, "3g.40gb": 1, "4g.40gb": 1, "7g.80gb": 0}
"""Profile -> the first ID of its GPU instances."""


def print_line(text: str) -> None:
    """Write a line, as the tools do."""
    sys.stdout.write(f"{text}\n")


def minor(gpu: int, instance: int, compute: int | None = None) -> int:
    """Return the number of a capability's device file."""
    return 3 + 135 * gpu + 9 * instance + (0 if compute is None else 1 + compute)


def read() -> list[dict[str, Any]]:
    """Return the GPUs."""
    found: list[dict[str, Any]] = json.loads(STATE.read_text())
    return found


def save(gpus: list[dict[str, Any]]) -> None:
    """Keep the GPUs, and the table of minor numbers that the driver has."""
    STATE.write_text(json.dumps(gpus))
    table = ROOT / "proc/driver/nvidia-caps/mig-minors"
    table.parent.mkdir(parents=True, exist_ok=True)
    lines = ["config 1", "monitor 2"]
    for gpu in range(len(gpus)):
        for instance in range(15):
            lines.append(f"gpu{gpu}/gi{instance}/access {minor(gpu, instance)}")
            lines += [
                f"gpu{gpu}/gi{instance}/ci{ci}/access {minor(gpu, instance, ci)}" for ci in range(8)
            ]
    table.write_text("\n".join(lines) + "\n")


def names(gpus: list[dict[str, Any]]) -> None:
    """Print what `nvidia-smi -L` does."""
    for number, gpu in enumerate(gpus):
        print_line(f"GPU {number}: NVIDIA H100 80GB HBM3 (UUID: GPU-{number})")
        for index, one in enumerate(gpu["slices"]):
            uuid = f"MIG-{number}-{one['id']}"
            print_line(f"  MIG {one['profile']:<11} Device {index:>2}: (UUID: {uuid})")


def values(gpus: list[dict[str, Any]]) -> None:
    """Print what `nvidia-smi -q -x` does."""
    print_line('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">')
    print_line("<nvidia_smi_log>")
    for number, gpu in enumerate(gpus):
        mode = "Enabled" if gpu["mig"] else "Disabled"
        print_line(f'<gpu id="00000000:{number + 1:02X}:00.0"><mig_mode>')
        print_line(f"<current_mig>{mode}</current_mig><pending_mig>{mode}</pending_mig></mig_mode>")
        print_line("<mig_devices>" + ("" if gpu["slices"] else "None"))
        for index, one in enumerate(gpu["slices"]):
            print_line(
                f"<mig_device><index>{index}</index><gpu_instance_id>{one['id']}</gpu_instance_id>"
                "<compute_instance_id>0</compute_instance_id></mig_device>"
            )
        used = "<process_info><pid>7</pid><type>C</type></process_info>" if gpu["busy"] else ""
        print_line(f"</mig_devices><uuid>GPU-{number}</uuid><minor_number>{number}</minor_number>")
        print_line(f"<processes>{used}</processes></gpu>")
    print_line("</nvidia_smi_log>")


def create(gpu: dict[str, Any], number: int, profiles: list[str]) -> int:
    """Make slices one after the other, each at its first free place; return the status."""
    for profile in profiles:
        code, starts, length = PLACES[profile]
        taken = {i for one in gpu["slices"] for i in range(one["start"], one["end"])}
        free = [s for s in starts if not taken & set(range(s, s + length))]
        if not free:
            print_line(
                f"Unable to create a GPU instance on GPU {number:>2} using profile {code}: "
                "Insufficient Resources\nFailed to create GPU instances: Insufficient Resources"
            )
            return 19
        used = {one["id"] for one in gpu["slices"]}
        instance = next(i for i in range(NUMBERS[profile], 15) if i not in used)
        one = {"profile": profile, "id": instance, "start": free[0], "end": free[0] + length}
        gpu["slices"] = sorted([*gpu["slices"], one], key=lambda each: each["id"])
        print_line(
            f"Successfully created GPU instance ID {instance:>2} on GPU {number:>2} using profile "
            f"MIG {profile} (ID {code:>2})"
        )
    return 0


def nvidia_smi(words: list[str]) -> int:
    """Do what nvidia-smi does; return its status."""
    gpus = read()
    if words == ["-L"]:
        names(gpus)
        return 0
    if words == ["-q", "-x"]:
        values(gpus)
        return 0
    number = int(words[words.index("-i") + 1].split(":")[1], 16) - 1
    gpu = gpus[number]
    if words[-2] == "-mig":
        if gpu["slices"]:
            print_line("Unable to disable MIG Mode: In use by another client")
            return 19
        gpu["mig"] = gpu["mig"] if gpu["stubborn"] else words[-1] == "1"
        code = 0
    elif words[-1] in {"-dci", "-dgi"}:
        if not gpu["slices"]:
            print_line("No GPU instances found: Not Found")
            return 6
        if gpu["held"]:
            print_line("Unable to destroy GPU instance ID  1 from GPU  0: In use by another client")
            return 19
        gpu["slices"] = [] if words[-1] == "-dgi" else gpu["slices"]
        code = 0
    else:
        code = create(gpu, number, words[words.index("-cgi") + 1].split(","))
    save(gpus)
    return code


def nvidia_modprobe(words: list[str]) -> int:
    """Make the device files of capabilities."""
    table = dict(
        line.split()
        for line in (ROOT / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines()
    )
    for word in words[1::2]:
        path = word.split("capabilities/")[1].replace("/mig/", "/", 1)
        device = ROOT / f"dev/nvidia-caps/nvidia-cap{table[path]}"
        device.parent.mkdir(parents=True, exist_ok=True)
        device.touch()
    return 0


if __name__ == "__main__":
    with (ROOT / "calls").open("a") as calls:
        calls.write(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]) + "\n")
    tool = {"nvidia-smi": nvidia_smi, "nvidia-modprobe": nvidia_modprobe}[Path(sys.argv[0]).name]
    sys.exit(tool(sys.argv[1:]))
