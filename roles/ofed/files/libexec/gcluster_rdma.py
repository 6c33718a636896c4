"""What a node's RDMA adapters say of themselves; imported by the programs beside this file."""  # noqa: INP001  # programs import it from beside them

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

SYS = Path(os.environ.get("GCLUSTER_SYS", "/sys"))
"""GCLUSTER_SYS stands for /sys where a test has to say what the kernel knows."""
LINK_LAYERS = {"infiniband": "InfiniBand", "roce": "Ethernet"}


def run(*argv: str) -> tuple[int, str]:
    """Run a program; return its status and what it printed."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return 127, f"{argv[0]}: not found"
    return done.returncode, done.stdout.strip()


def read(path: str | Path) -> str:
    """Return what a file of the kernel says, "" where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def job_runs() -> bool:
    """Say whether a job runs on the node, beside the one by which Slurm gave it for a change."""
    code, steps = run("pgrep", "--list-full", "--exact", "slurmstepd")
    granted = read("/run/gcluster/granted-job")
    given = granted and steps and all(f" [{granted}." in step for step in steps.splitlines())
    return code == 0 and not given


def natural(name: str) -> list[int | str]:
    """Return a key that sorts mlx5_10 after mlx5_9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def adapters() -> tuple[dict[str, dict[str, str]], str]:
    """Return device -> what ibstat says of it and of its first port; a message when it's silent."""
    code, text = run("ibstat")
    if code:
        return {}, f"ibstat doesn't answer: {text}"
    found: dict[str, dict[str, str]] = {}
    device: dict[str, str] | None = None
    for line in text.splitlines():
        named = re.match(r"CA '(.*)'", line)
        if named:
            device = found.setdefault(named[1], {})
        elif device is not None and ":" in line:
            key, _, value = line.strip().partition(":")
            device.setdefault(key.lower(), value.strip())
    return found, ""


def is_rail(said: dict[str, str], kind: str, gbps: float) -> bool:
    """Say whether an adapter that nobody named may be a rail: not one that is up and slower."""
    slower = said.get("state") == "Active" and float(said.get("rate") or 0) < gbps
    return said.get("link layer") == LINK_LAYERS[kind] and not slower


def rails(
    kind: str, devices: list[str], gbps: float = 0
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the devices of the rails with what they say, and what is wrong with that.

    Devices that nobody named are all of the kind, in the order of their numbers; with a rate, those
    that are slower (front end, storage) are none.
    """
    found, silent = adapters()
    if silent:
        return {}, [silent]
    layer = LINK_LAYERS[kind]
    of_kind = [name for name, said in found.items() if said.get("link layer") == layer]
    chosen = devices or sorted(
        (name for name in of_kind if is_rail(found[name], kind, gbps)), key=natural
    )
    wrong = [f"there is no device {name}" for name in chosen if name not in found]
    wrong += [
        f"{name} speaks {found[name].get('link layer')}, not {layer}"
        for name in chosen
        if name in found and name not in of_kind
    ]
    return {name: found[name] for name in chosen if name in found}, wrong


def link_differences(
    kind: str, devices: list[str], count: int, gbps: float
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the rails and everything that is wrong with their links.

    Where devices are not named, adapters beside the rails may be down or slower.
    """
    chosen, wrong = rails(kind, devices, gbps)
    if len(chosen) < count and not devices:
        chosen, wrong = rails(kind, devices)
    if not chosen:
        return {}, wrong or [f"no adapter speaks {LINK_LAYERS[kind]}"]
    bad = {name: why for name, said in chosen.items() if (why := link_fault(said, gbps))}
    good, least = len(chosen) - len(bad), max(count, 1)
    if devices or good < least:
        wrong += [f"rail {place(chosen, name)}, {name}: {why}" for name, why in bad.items()]
    if good < least:
        wrong.append(f"{good} rails are up at their rate, not {least}")
    surplus = not devices and len(chosen) > least
    return {n: said for n, said in chosen.items() if not (surplus and n in bad)}, wrong


def link_fault(said: dict[str, str], gbps: float) -> str:
    """Return what is wrong with a port's link, "" when it is as it should be."""
    state, physical = said.get("state", ""), said.get("physical state", "")
    if state != "Active" or physical != "LinkUp":
        return f"the port is {state or 'unknown'}, {physical or 'unknown'}"
    rate = float(said.get("rate") or 0)
    return f"{rate:g} Gb/s, not {gbps:g}" if rate < gbps else ""


def place(chosen: dict[str, dict[str, str]], name: str) -> int:
    """Return a rail's number, counted from 0."""
    return list(chosen).index(name)


def firmware(chosen: dict[str, dict[str, str]]) -> list[str]:
    """Return a line for each adapter with its firmware, and say where they differ."""
    lines = [
        f"{name} {said.get('ca type', '?')} firmware {said.get('firmware version', '?')}"
        for name, said in chosen.items()
    ]
    kinds: dict[str | None, dict[str | None, list[str]]] = {}
    for name, said in chosen.items():
        versions = kinds.setdefault(said.get("ca type"), {})
        versions.setdefault(said.get("firmware version"), []).append(name)
    for kind, versions in kinds.items():
        if len(versions) > 1:
            told = "; ".join(f"{version} on {', '.join(on)}" for version, on in versions.items())
            lines.append(f"adapters {kind} have different firmware: {told}")
    return lines
