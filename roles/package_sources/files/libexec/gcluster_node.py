"""What roles' programs on a node share: asking tools, and telling all differences."""  # noqa: INP001  # programs import it from beside them

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def run(
    *argv: str, timeout_s: float = 120, environment: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run a program; return its status and what it printed (127: it isn't there, 124: too slow)."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, **(environment or {})},
        )
    except FileNotFoundError:
        return 127, f"{argv[0]}: not found"
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]}: no answer within {timeout_s} s"
    return done.returncode, done.stdout.strip()


def asked_for_json(*argv: str) -> tuple[Any, str]:
    """Return what a tool says as JSON, and a message where it says none."""
    code, text = run(*argv)
    try:
        return (None, f"{' '.join(argv)}: {text}") if code else (json.loads(text), "")
    except ValueError:
        return None, f"{' '.join(argv)}: no JSON: {text[:200]}"


def is_of(version: str, wanted: str) -> bool:
    """Say whether a version is the wanted one, or of the branch that is wanted."""
    return version == wanted or version.startswith((f"{wanted}.", f"{wanted}-"))


def fits(version: str, pattern: str) -> bool:
    """Say whether a version is the one that a pattern stands for."""
    return fnmatch.fnmatchcase(version, pattern)


def job_runs() -> bool:
    """Say whether Slurm runs a job here, beside the one by which it gave this node for a change."""
    code, steps = run("pgrep", "--list-full", "--exact", "slurmstepd")
    granted = first_line(root("/run/gcluster/granted-job"))
    given = granted and steps and all(f" [{granted}." in step for step in steps.splitlines())
    return code == 0 and not given


def root(path: str) -> Path:
    """Return a path of /sys, /proc or /dev; a test has them elsewhere."""
    return Path(os.environ.get("GCLUSTER_NODE_ROOT", "/"), path.lstrip("/"))


def first_line(path: Path) -> str:
    """Return what a file of the kernel says; nothing where it isn't there."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def replace(path: Path | str, content: str, *, act: bool, mode: int = 0o644) -> bool:
    """Write a file at once where it differs; return whether it does."""
    path = Path(path)
    if path.exists() and path.read_text() == content:
        return False
    if act:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(content)
        fresh.chmod(mode)
        fresh.replace(path)
    return True


def finish(wrong: list[str]) -> None:
    """End with all that is wrong, if anything is."""
    if wrong:
        sys.exit("\n".join(wrong))
