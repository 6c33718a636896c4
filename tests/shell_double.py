"""Doubles of programs, as shell scripts in a folder of a PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_double(path: Path, script: str) -> None:
    """Write a double of the program `path.name`: a script of /bin/sh that can be run."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
