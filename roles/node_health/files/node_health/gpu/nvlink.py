"""NVLink: every link up and as many as the machine has, and no errors that grow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..expected import Gpus
from ..finding import CheckIncomplete, Finding
from ..probe import Probe

_GPU = re.compile(r"^GPU ([0-9]+):")
_LINK = re.compile(r"^\s+Link ([0-9]+): (.*)$")
_ERRORS = re.compile(r"^(Replay|Recovery|CRC) Errors: ([0-9]+)")


def links_of(text: str) -> dict[int, dict[int, list[str]]]:
    """Return GPU -> link -> its text, from `nvidia-smi nvlink`."""
    gpus: dict[int, dict[int, list[str]]] = {}
    here: dict[int, list[str]] = {}
    for line in text.splitlines():
        gpu, link = _GPU.match(line), _LINK.match(line)
        if gpu:
            here = gpus.setdefault(int(gpu[1]), {})
        elif link:
            here.setdefault(int(link[1]), []).append(link[2].strip())
    return gpus


def check_nvlink(expected: Gpus, probe: Probe, memory: dict[str, Any]) -> Iterator[Finding]:
    """Yield links that are down or missing, and errors since the last run."""
    gpus = links_of(probe.run("nvidia-smi", "nvlink", "--status"))
    if not gpus:
        raise CheckIncomplete("nvidia-smi nvlink --status names no GPU")
    wanted = expected.links or max(len(links) for links in gpus.values())
    for gpu, links in gpus.items():
        up = [n for n, items in links.items() if any("GB/s" in item for item in items)]
        down = sorted(links.keys() - set(up))
        if len(up) < wanted or not up:
            named = f"; down: {', '.join(map(str, down))}" if down else ""
            many = f"{len(up)} of {wanted or 'all'} links up"
            yield Finding("nvlink-down", f"GPU {gpu}: {many}{named}")
    yield from _errors(probe, memory)


def _errors(probe: Probe, memory: dict[str, Any]) -> Iterator[Finding]:
    """A recovery is a link that trained again: jobs saw it. Replays are what links are made for."""
    before = memory.get("errors")
    now: dict[str, int] = {}
    counted = links_of(probe.run("nvidia-smi", "nvlink", "--errorcounters"))
    for gpu, links in counted.items():
        for link, items in links.items():
            for match in filter(None, map(_ERRORS.match, items)):
                now[f"GPU{gpu}/link{link} {match[1]}"] = int(match[2])
    memory["errors"] = now
    for key, count in now.items():
        grown = count - (before or {}).get(key, 0)
        if before is not None and grown > 0:
            place, kind = key.split(" ")
            message = f"{place}: {grown} {kind} errors since the last run"
            yield Finding("nvlink-errors", message, drains=kind == "Recovery")
