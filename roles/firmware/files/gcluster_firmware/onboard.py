"""Firmware versions from the node itself: GPUs, NICs, BIOS. Needs no BMC."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

TIMEOUT_S = 30


def onboard(root: Path = Path("/")) -> dict[str, str]:
    """Return part -> version; or the error of the part's tool instead of a version."""
    found = {**_gpus(), **_nics(root)}
    bios = _read(root / "sys/class/dmi/id/bios_version")
    return found | ({"bios": bios} if bios else {})


def _gpus() -> dict[str, str]:
    if shutil.which("nvidia-smi") is None:
        return {}
    text = _run("nvidia-smi", "-q", "-x")
    try:
        gpus = ET.fromstring(text[text.index("<") :]).findall("gpu")  # noqa: S314  # our own tool
    except (ET.ParseError, ValueError):
        return {"gpus": "unknown: nvidia-smi answers what can't be read"}
    found: dict[str, str] = {}
    for gpu in gpus:
        place = gpu.get("id", "?")
        found[f"gpu {place} vbios"] = (gpu.findtext("vbios_version") or "unknown").strip()
        inforom = gpu.findtext("inforom_version/img_version") or "unknown"
        found[f"gpu {place} inforom"] = inforom.strip()
    return found


def _nics(root: Path) -> dict[str, str]:
    """Mstflint reads the card itself; the driver's version is used where it isn't installed."""
    found: dict[str, str] = {}
    for device in sorted((root / "sys/class/infiniband").glob("*")):
        found[f"nic {device.name}"] = _read(device / "fw_ver") or "unknown"
        if shutil.which("mstflint"):
            match = re.search(
                r"^FW Version:\s+(\S+)", _run("mstflint", "-d", device.name, "q"), re.MULTILINE
            )
            found[f"nic {device.name} flash"] = match[1] if match else "unknown"
    for device in sorted((root / "sys/class/net").glob("*")):
        if (device / "device").exists() and shutil.which("ethtool"):
            text = _run("ethtool", "-i", device.name)
            match = re.search(r"^firmware-version: *(\S+)", text, re.MULTILINE)
            if match:
                found[f"nic {device.name}"] = match[1]
    return found


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
