"""A unit's program that roles install from the modules' own files finds all that it imports."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT / "plugins/module_utils"


@pytest.mark.parametrize("role", ["roce", "tuning"])
def test_a_program_is_installed_with_all_that_it_imports(role: str, tmp_path: Path) -> None:
    written = (ROOT / f"roles/{role}/vars/main.yml").read_text()
    listed = re.search(rf"{role}_sources: .*?\[(.*?)\]", written, re.DOTALL)
    assert listed is not None
    package = tmp_path / f"gcluster_{role}"
    package.mkdir()
    for name in re.findall(r"\'(\w+\.py)\'", listed[1]):
        shutil.copy(SHARED / name, package)
    program = f"import gcluster_{role}.{role}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
