"""`gcluster migrate`: the diff, the file, and files that can't be migrated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def old(spec: Path) -> Path:
    """Return a spec with an older spelling, written on a machine with other line ends."""
    text = spec.read_text(encoding="utf-8").replace(
        "{lab: {provider: simulated}}", "{lab: {provider: simulated, capacity: 9}} # ours"
    )
    spec.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    spec.chmod(0o640)
    return spec


def test_what_would_change_is_shown_and_nothing_is_written(
    run: Callable[..., Any], old: Path
) -> None:
    before = old.read_bytes()
    done = run("migrate", str(old))

    assert done.exit_code == 0
    assert "-sites: {lab: {provider: simulated, capacity: 9}" in done.stdout
    assert "+sites: {lab: {provider: simulated, max_nodes: 9}" in done.stdout
    assert "1 older spelling would be rewritten: --write does it" in done.stdout
    assert old.read_bytes() == before


def test_the_file_is_rewritten_with_every_other_byte_as_it_was(
    run: Callable[..., Any], old: Path
) -> None:
    before = old.read_bytes()
    done = run("migrate", str(old), "--write")

    assert done.exit_code == 0
    assert old.read_bytes() == before.replace(b"capacity", b"max_nodes")
    assert old.stat().st_mode & 0o777 == 0o640
    assert "1 older spelling rewritten" in done.stdout
    assert run("validate", str(old)).exit_code == 0


def test_a_current_file_has_nothing_to_do(run: Callable[..., Any], spec: Path) -> None:
    before = spec.stat()
    done = run("migrate", str(spec), "--write")
    assert done.exit_code == 0
    assert "nothing to do" in done.stdout
    assert spec.stat().st_mtime_ns == before.st_mtime_ns


def test_validate_says_that_migrate_does_it(run: Callable[..., Any], old: Path) -> None:
    done = run("validate", str(old))
    assert done.exit_code == 0
    assert "warning[GC025]" in done.stdout
    assert "gcluster migrate" in done.stdout


def test_a_file_that_is_no_spec_is_told_and_the_others_are_migrated(
    run: Callable[..., Any], old: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [\n", encoding="utf-8")
    done = run("migrate", str(bad), str(tmp_path / "none.yaml"), str(old), "--write")

    assert done.exit_code == 2
    assert "GC010" in done.stdout
    assert "GC021" in done.stdout
    assert b"max_nodes: 9" in old.read_bytes()
    assert bad.read_text(encoding="utf-8") == "a: [\n"


def test_json_has_the_changes(run: Callable[..., Any], old: Path) -> None:
    told = json.loads(run("migrate", str(old), "--format", "json").stdout)
    assert told["ok"] is True
    assert [d["code"] for d in told["specs"][0]["changes"]] == ["GC025"]
    assert told["specs"][0]["written"] is False
