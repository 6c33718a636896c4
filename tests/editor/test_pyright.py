"""Files of the package, opened by the path that an editor opens them by: pyright finds no error.

A file that could be imported by two names would have two of each class, and pyright would say that
"Cluster" is not assignable to "Cluster".
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.editor

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "node_modules" / "pyright" / "index.js"
PACKAGES = ("schemas", "inventory", "stacks", "lifecycle", "cli")
FILES_PER_PACKAGE = 4


def largest(package: str) -> list[Path]:
    """Return the files of a package that import most of the others."""
    files = [path for path in (ROOT / package).rglob("*.py") if "pulumi" not in path.read_text()]
    return sorted(files, key=lambda path: (-path.read_text().count("\nfrom ."), str(path)))[
        :FILES_PER_PACKAGE
    ]


def test_twenty_files_opened_by_their_real_path_have_no_error() -> None:
    opened = [path for package in PACKAGES for path in largest(package)]
    done = subprocess.run(
        ["node", PROGRAM, "--outputjson", "--pythonpath", sys.executable, *opened],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    report = json.loads(done.stdout)
    errors = [
        f"{each['file']}:{each['range']['start']['line'] + 1} {each['message']}"
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    assert errors == []
    assert report["summary"]["filesAnalyzed"] == len(PACKAGES) * FILES_PER_PACKAGE
