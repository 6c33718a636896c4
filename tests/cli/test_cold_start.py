"""What `gcluster validate` doesn't import: the difference between an answer and a wait."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEAVY = {
    "ansible",
    "ansible_runner",
    "asyncio",
    "jsonschema",
    "molecule",
    "obstore",
    "pulumi",
    "pyrage",
    "rich",
}


def _imported(stderr: str) -> set[str]:
    return set(re.findall(r"^import time:.*\| +(\S+)$", stderr, re.MULTILINE))


def test_validate_of_a_valid_spec_imports_nothing_heavy(
    shell: Callable[..., Any], spec: Path
) -> None:
    done = shell("validate", str(spec), PYTHONPROFILEIMPORTTIME="1")
    assert done.stdout == "ok: demo: 2 pools, 5 hosts\n"
    imported = _imported(done.stderr)
    assert "gcluster.schemas.load" in imported
    assert {name.partition(".")[0] for name in imported} & HEAVY == set()
    above = {
        "gcluster.lifecycle.cluster.cluster",
        "gcluster.stacks.provider",
        "gcluster.stacks.registry",
    }
    assert imported & above == set()


def test_validate_of_a_wrong_spec_imports_nothing_that_draws_or_acts(
    shell: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("nam: demo\n", encoding="utf-8")
    done = shell("validate", str(path), PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 2
    tops = {name.partition(".")[0] for name in _imported(done.stderr)}
    assert tops & (HEAVY - {"jsonschema"}) == set()


def test_validate_starts_no_process(shell: Callable[..., Any], spec: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\n"
        f"starts = ('subprocess.Popen', 'os.system', 'os.exec', 'os.fork', 'os.posix_spawn')\n"
        f"def hook(event, _):\n"
        f"    if event in starts: open({str(log)!r}, 'a').write(event)\n"
        f"sys.addaudithook(hook)\n"
        f"open({str(log)!r}, 'w').write('watching ')\n",
        encoding="utf-8",
    )
    assert shell("validate", str(spec), PYTHONPATH=str(tmp_path)).returncode == 0
    assert log.read_text() == "watching "
