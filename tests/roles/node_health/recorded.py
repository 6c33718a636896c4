"""A recorded machine: its tools on a PATH of their own, its /proc and /sys below a folder.

The recordings are in the role's scenario; a case is a good recording with one thing changed.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

RECORDINGS = Path(__file__).parents[3] / "molecule/node_health/recordings"
CASES: dict[str, dict[str, Any]] = yaml.safe_load((RECORDINGS / "cases.yml").read_text())["cases"]
TOOLS = ("nvidia-smi", "journalctl", "chronyc", "smartctl", "dcgmi")

HGX_H100: dict[str, Any] = {
    "node": "gpu001",
    "gpus": {"vendor": "nvidia", "count": 8, "memory_gib": 80, "nvlink": True},
    "nics": [{"kind": "infiniband", "count": 8, "gbps": 400}],
    "mounts": [{"path": "/lustre", "type": "lustre"}],
    "memory_gib": 2048,
}
"""What the recorded machine must have."""


def text(name: str, case: str | None = None) -> str:
    """Return a recording without its head, as it is in a case."""
    lines = (RECORDINGS / name).read_text().splitlines(keepends=True)
    body = "".join(line for line in lines if not line.startswith("# "))
    change = CASES[case] if case else {}
    if change.get("in") != name:
        return body
    if "cut_gpu" in change:
        cut = re.sub(rf'<gpu id="00000000:{change["cut_gpu"]}.*?</gpu>', "", body, flags=re.DOTALL)
        assert cut != body
        return cut
    assert change["old"] in body, f"{case}: nothing to change"
    return body.replace(change["old"], change["new"], 1)


def calls(body: str) -> dict[str, str]:
    """Return call -> what the tool printed."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def make_machine(folder: Path, case: str | None = None, files: str = "files.yml") -> None:
    """Write the machine's tools to folder/bin and its files to folder/root."""
    tools = folder / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    for tool in TOOLS:
        lines = ["#!/bin/sh", f'case "{tool} $*" in']
        for number, (call, output) in enumerate(calls(text(tool, case)).items()):
            answer = tools / f"{tool}.{number}.said"
            answer.write_text(output)
            pattern = f"{shlex.quote(call.removesuffix('*'))}*"
            lines.append(f"{pattern}) cat {shlex.quote(str(answer))} ;;")
        lines += ['*) echo "not recorded: $*" >&2; exit 64 ;;', "esac"]
        (tools / tool).write_text("\n".join(lines) + "\n")
        (tools / tool).chmod(0o755)
    for path, content in yaml.safe_load(text(files, case)).items():
        place = folder / "root" / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{content}\n")


def settings(folder: Path, **changes: Any) -> Path:
    """Write what the machine must have and return the file."""
    path = folder / "node-health.json"
    path.write_text(json.dumps(HGX_H100 | changes))
    return path
