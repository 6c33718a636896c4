"""What pipelines call and a test machine lacks: the forge's API, pip, and jobs on real nodes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_GH = """\
echo "gh $*" >>"$DOUBLES/calls"
case "$*" in
*"--paginate"*) cat "$DOUBLES/comment_id" 2>/dev/null || : ;;
"api --method "*)
  cp body.md "$DOUBLES/comment"
  echo 7 >"$DOUBLES/comment_id"
  ;;
"api "*"/pulls "*) echo 0123abc ;;
"run list"*) echo 42 ;;
"run download 42"*) cp -r "$DOUBLES/artifacts/gcluster-plans/." . ;;
"issue list"*) cat "$DOUBLES/issue_id" 2>/dev/null || : ;;
"issue create"* | "issue edit"*) cp body.md "$DOUBLES/issue"; echo 3 >"$DOUBLES/issue_id" ;;
*) exit 99 ;;
esac
"""
_CURL = """\
echo "curl $*" >>"$DOUBLES/calls"
for word in "$@"; do
  case "$word" in *"$SECRET"*) exit 98 ;; esac
done
case "$*" in
*jobs/artifacts*) cp "$DOUBLES/plans.zip" plans.zip ;;
*per_page*) printf '[{"id": 5, "body": "hello"}, {"id": 7, "body": "<!-- gcluster:plans -->"}]' ;;
*body@comment.md*) cp comment.md "$DOUBLES/comment" ;;
*) exit 99 ;;
esac
"""
_PIP = 'echo "pip $*" >>"$DOUBLES/calls"\n'
# Simulated nodes run no job.
_GCLUSTER = """\
echo "gcluster $*" >>"$DOUBLES/calls"
case "$1" in
smoke) exit 0 ;;
esac
exec "%s" -c 'from gcluster.cli.main import main; main()' "$@"
"""


class Doubles:
    """Programs of one folder that come before those of the machine."""

    def __init__(self, folder: Path) -> None:
        """Write the programs."""
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        scripts = {"gh": _GH, "curl": _CURL, "pip": _PIP, "gcluster": _GCLUSTER % sys.executable}
        for name, script in scripts.items():
            (programs / name).write_text(f"#!/bin/sh\nset -eu\n{script}")
            (programs / name).chmod(0o755)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "DOUBLES": str(folder),
            "SECRET": "glpat-planted",
        }

    @property
    def calls(self) -> list[str]:
        """Every call, as one line each."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def left(self, name: str) -> str:
        """Return what a double keeps: the comment, the issue."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""
