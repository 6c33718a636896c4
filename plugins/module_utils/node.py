"""Queries of a node by modules: its programs, its kernel's files, and whether a job runs."""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any


def run(
    *argv: str,
    timeout_s: float = 120,
    environment: dict[str, str] | None = None,
    stdin: str | None = None,
) -> tuple[int, str]:
    """Run a program; return its status and what it printed (127: it isn't there, 124: too slow)."""
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, **(environment or {})},
            **given,
        )
    except FileNotFoundError:
        return 127, f"{argv[0]}: not found"
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]}: no answer within {timeout_s} s"
    return done.returncode, str(done.stdout).strip()


def run_detached(*argv: str, timeout_s: float) -> tuple[int, str]:
    """Run a program as `run` does, but leave it behind after its time.

    One that waits in the kernel for a server that is away is ended by no signal.
    """
    with tempfile.TemporaryFile("w+") as output:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except FileNotFoundError:
            return 127, f"{argv[0]}: not found"
        try:
            code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()  # not waited for: it may be stuck in the kernel
            return 124, f"no answer within {timeout_s} s"
        output.seek(0)
        return code, output.read().strip()


def run_json(*argv: str) -> tuple[Any, str]:
    """Return what a tool prints as JSON, and a message where it prints none."""
    code, text = run(*argv)
    try:
        return (None, f"{' '.join(argv)}: {text}") if code else (json.loads(text), "")
    except ValueError:
        return None, f"{' '.join(argv)}: no JSON: {text[:200]}"


def is_of_branch(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, or of the branch that is wanted."""
    return version == wanted or version.startswith((f"{wanted}.", f"{wanted}-"))


def fits(version: str, pattern: str) -> bool:
    """Return whether a version matches a pattern with `*`."""
    return fnmatch.fnmatchcase(version, pattern)


def is_active(unit: str) -> bool:
    """Return whether systemd runs a unit."""
    return run("systemctl", "is-active", "--quiet", unit)[0] == 0


def journal_of(unit: str, lines: int = 5) -> str:
    """Return the last lines that a unit wrote to the journal."""
    return run(
        "journalctl", "--unit", unit, "--no-pager", "--output", "cat", "--lines", str(lines)
    )[1]


def job_runs() -> bool:
    """Return whether Slurm runs a job here other than the one that granted this change."""
    code, steps = run("pgrep", "--list-full", "--exact", "slurmstepd")
    granted = first_line(system_path("/run/gcluster/granted-job"))
    given = granted and steps and all(f" [{granted}." in step for step in steps.splitlines())
    return code == 0 and not given


def system_path(path: str) -> Path:
    """Return a path of the node; tests have its root at GCLUSTER_NODE_ROOT."""
    return Path(os.environ.get("GCLUSTER_NODE_ROOT", "/"), path.lstrip("/"))


def first_line(path: Path) -> str:
    """Return the content of a kernel's file; "" where it doesn't exist."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
