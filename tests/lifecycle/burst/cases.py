"""Cases of the spill policy: a spec, a queue and what is decided of each job."""

from __future__ import annotations

from pathlib import Path

from tests.golden_files import CASES, read_cases, unpack

CASE_FILE = CASES / "burst" / "decide.yaml"


def case_files(name: str, folder: Path) -> tuple[Path, Path]:
    """Write a case's queue, and its spec unless it names one, and return the paths of both."""
    case = read_cases(CASE_FILE)[name]
    unpack({"spec.yaml": case["spec"], "queue.json": case["queue"]}, folder)
    named = CASE_FILE.parent / case["spec"] if case["spec"].endswith("/spec.yaml") else None
    return named or folder / "spec.yaml", folder / "queue.json"
