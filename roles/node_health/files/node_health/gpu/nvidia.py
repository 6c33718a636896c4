"""NVIDIA GPUs: how many, ECC, row remapping, temperatures, throttling, PCIe; from nvidia-smi -q -x.

What drains follows NVIDIA's GPU memory error management and debug guidelines (docs.nvidia.com,
read 2026-11): an uncorrectable error since the last reset and a pending row remap need a reset, a
failed row remap and an SRAM count over its threshold need another GPU. Aggregate counts alone
don't: rows were remapped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

from ..expected import Gpus
from ..finding import CheckIncomplete, Finding, note
from ..probe import Probe

MEMORY_SHARE = 0.9
"""nvidia-smi reports less than the nominal memory: ECC and the driver keep some (an 80 GB H100 has
81,559 MiB, a 192 GB B200 183,359 MiB)."""
THROTTLED_LOOKS = 2
"""Runs in a row after which a GPU slowed down by its hardware is drained: one may be a spike."""
_SLOWED = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
_LOST = ("lost", "unknown error", "requires reset", "err!")


def gpus_of(probe: Probe) -> list[ET.Element]:
    """Return nvidia-smi's values of each GPU.

    Raises:
        CheckIncomplete: its output can't be parsed.
    """
    text = probe.run("nvidia-smi", "-q", "-x")
    try:
        return ET.fromstring(text[text.index("<") :]).findall("gpu")  # noqa: S314  # of our own tool
    except (ET.ParseError, ValueError) as error:
        raise CheckIncomplete(f"nvidia-smi -q -x can't be read: {error}") from error


def check_nvidia(expected: Gpus, probe: Probe, memory: dict[str, Any]) -> Iterator[Finding]:
    """Yield the problems of the GPUs.

    Args:
        expected: of the machine type.
        probe: reads the node.
        memory: kept from run to run.
    """
    gpus = gpus_of(probe)
    if len(gpus) != expected.count:
        yield Finding("gpu-count", f"{len(gpus)} of {expected.count} GPUs")
    slowed: dict[str, int] = memory.setdefault("slowed", {})
    for gpu in gpus:
        name = gpu.get("id", "?").removeprefix("0000")
        lost = [t for t in gpu.itertext() if any(word in t.lower() for word in _LOST)]
        if lost:
            yield Finding("gpu-lost", f"GPU {name}: {lost[0].strip()}")
            continue
        yield from _memory(gpu, name, expected)
        yield from _temperatures(gpu, name)
        yield from _pcie(gpu, name)
        yield from _slowdown(gpu, name, slowed)
        action = _text(gpu, "gpu_recovery_action")
        if action not in {"", "N/A", "None"}:
            yield Finding("gpu-recovery", f"GPU {name}: the driver asks for {action}")
        if expected.slices:
            slices = len(gpu.findall("mig_devices/mig_device"))
            if slices != expected.slices:
                yield Finding("mig-slices", f"GPU {name}: {slices} of {expected.slices} MIG slices")
            continue  # no slice uses the NVLink fabric
        state, status = _text(gpu, "fabric/state"), _text(gpu, "fabric/status")
        if state not in {"", "N/A"} and (state, status) != ("Completed", "Success"):
            yield Finding("nvlink-fabric", f"GPU {name}: fabric {state}, {status}")


def _memory(gpu: ET.Element, name: str, expected: Gpus) -> Iterator[Finding]:
    mib = _number(gpu, "fb_memory_usage/total")
    if expected.memory_gib and (mib or 0) < expected.memory_gib * 1024 * MEMORY_SHARE:
        yield Finding("gpu-memory", f"GPU {name}: {mib or 0:g} MiB of {expected.memory_gib:g} GiB")
    if _text(gpu, "ecc_mode/current_ecc") not in {"Enabled", "N/A"}:
        yield Finding("ecc-off", f"GPU {name}: ECC is off or unknown")
    volatile = _uncorrectable(gpu, "volatile")
    if volatile is None and _text(gpu, "ecc_mode/current_ecc") == "Enabled":
        yield Finding("ecc-unknown", f"GPU {name}: no ECC counts")
    elif volatile:
        yield Finding("ecc-uncorrectable", f"GPU {name}: {volatile} since the last reset")
    aggregate = _uncorrectable(gpu, "aggregate")
    if aggregate and not volatile:
        yield note("ecc-aggregate", f"GPU {name}: {aggregate} uncorrectable in its life")
    if _text(gpu, "ecc_errors/aggregate/sram_threshold_exceeded") == "Yes":
        yield Finding("ecc-sram-threshold", f"GPU {name}: SRAM errors over the threshold, RMA")
    if _text(gpu, "remapped_rows/remapped_row_failure") == "Yes":
        yield Finding("row-remap-failed", f"GPU {name}: a row could not be remapped, RMA")
    elif _text(gpu, "remapped_rows/remapped_row_pending") == "Yes":
        yield Finding("row-remap-pending", f"GPU {name}: reset it so that rows are remapped")


def _uncorrectable(gpu: ET.Element, span: str) -> int | None:
    """Return uncorrectable errors; None where they aren't reported."""
    errors = gpu.find(f"ecc_errors/{span}")
    counts = [
        _digits(item.text)
        for item in (errors if errors is not None else ())
        if "uncorrectable" in item.tag and _digits(item.text) is not None
    ]
    return int(sum(count or 0 for count in counts)) if counts else None


def _temperatures(gpu: ET.Element, name: str) -> Iterator[Finding]:
    now = _number(gpu, "temperature/gpu_temp")
    slow = _number(gpu, "temperature/gpu_temp_slow_threshold")
    margin = _number(gpu, "temperature/gpu_temp_tlimit")
    if now is None:
        yield Finding("gpu-temperature", f"GPU {name}: reports no temperature")
    elif (slow is not None and now >= slow) or (margin is not None and margin <= 0):
        yield Finding("gpu-temperature", f"GPU {name}: {now:g} C, where it slows down")
    hot = _number(gpu, "temperature/memory_temp")
    most = _number(gpu, "temperature/gpu_temp_max_mem_threshold")
    if hot is not None and most is not None and hot >= most:
        yield Finding("gpu-temperature", f"GPU {name}: memory at {hot:g} C of at most {most:g} C")


def _pcie(gpu: ET.Element, name: str) -> Iterator[Finding]:
    """An idle GPU may lower the generation of its link, never the width."""
    info = "pci/pci_gpu_link_info"
    width = _number(gpu, f"{info}/link_widths/current_link_width")
    widest = _number(gpu, f"{info}/link_widths/max_link_width")
    if width is not None and widest is not None and width < widest:
        yield Finding("pcie-width", f"GPU {name}: x{width:g} of x{widest:g}")
    generation = _number(gpu, f"{info}/pcie_gen/current_link_gen")
    best = _number(gpu, f"{info}/pcie_gen/max_link_gen")
    at_work = _text(gpu, "performance_state") == "P0"
    if at_work and generation is not None and best is not None and generation < best:
        yield Finding("pcie-speed", f"GPU {name}: generation {generation:g} of {best:g}")


def _slowdown(gpu: ET.Element, name: str, slowed: dict[str, int]) -> Iterator[Finding]:
    """Driver 535 renamed throttle reasons to event reasons."""
    active = [
        reason
        for reason in _SLOWED
        if "Active"
        in {
            _text(gpu, f"clocks_event_reasons/clocks_event_reason_{reason}"),
            _text(gpu, f"clocks_throttle_reasons/clocks_throttle_reason_{reason}"),
        }
    ]
    slowed[name] = slowed.get(name, 0) + 1 if active else 0
    if active:
        message = f"GPU {name}: {', '.join(active)}, {slowed[name]} runs in a row"
        yield Finding("gpu-slowed", message, drains=slowed[name] >= THROTTLED_LOOKS)


def _text(gpu: ET.Element, path: str) -> str:
    return (gpu.findtext(path) or "").strip()


def _number(gpu: ET.Element, path: str) -> float | None:
    return _digits(gpu.findtext(path))


def _digits(text: str | None) -> float | None:
    found = re.match(r"-?[0-9]+(\.[0-9]+)?", (text or "").strip())
    return float(found[0]) if found else None
