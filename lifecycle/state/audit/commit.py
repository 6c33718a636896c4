"""Why a run changes something: the commit that its spec comes from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_LIMIT_S = 5
_PIPELINES = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""What pipelines say where the checkout has no history: GitHub, GitLab."""


def commit_of(spec: Path) -> str:
    """Return the commit that a spec file stands in; "+changes" after it where the file differs.

    "": it stands in none, or git isn't here.
    """
    commit = _git(spec.parent, "rev-parse", "HEAD")
    if not commit:
        return next((os.environ[name] for name in _PIPELINES if os.environ.get(name)), "")
    if not _git(spec.parent, "ls-files", "--", spec.name):
        return ""
    changed = _git(spec.parent, "status", "--porcelain", "--", spec.name)
    return f"{commit}+changes" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
