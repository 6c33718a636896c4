"""Reports as files: what `report --export` writes, and `report FILE` shows after `down`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ....schemas.structure.decoding import decode_json
from ....stacks.io import atomic
from ...cluster.outcome import Exit, failure
from .report import FORMAT, Report


def export(report: Report, file: Path) -> None:
    """Write a report whole, or not at all.

    Raises:
        LifecycleError: it can't be written (GC1199).
    """
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    try:
        atomic.write(file, text + b"\n")
    except OSError as error:
        raise failure(
            "GC1199", f"{file} can't be written: {error.strerror or error}", exit_code=Exit.USAGE
        ) from error


def is_snapshot(target: str) -> bool:
    """Say whether a target is an exported report: a file that ends with .json."""
    return target.endswith(".json") and Path(target).is_file()


def read_snapshot(file: Path) -> Report:
    """Read an exported report.

    Raises:
        LifecycleError: it is none, or one of another version (GC1199).
    """
    try:
        report = decode_json(file.read_bytes(), Report)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise failure(
            "GC1199", f"{file} is no exported report: {error}", exit_code=Exit.USAGE
        ) from error
    if report.format != FORMAT:
        raise failure(
            "GC1199",
            f"{file} has format {report.format}, and this gcluster reads {FORMAT}",
            exit_code=Exit.USAGE,
        )
    return report
