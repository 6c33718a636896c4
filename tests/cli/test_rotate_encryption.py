"""Who encrypts a cluster's secrets is changed by name alone: plan says it, up refuses till then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyrage
import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster

from .conftest import Run


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OLD_KEY", "NEW_KEY"):
        monkeypatch.setenv(name, str(pyrage.x25519.Identity.generate()))


def _set_keys(spec: Path, secrets: str) -> None:
    """Let the spec say who encrypts."""
    lines = [x for x in spec.read_text().splitlines() if not x.startswith("secrets:")]
    spec.write_text("\n".join([*lines, f"secrets: {secrets}"]) + "\n")


@pytest.fixture
def up(run: Run, spec: Path) -> Path:
    """Bring a cluster up whose secrets are encrypted by the old key."""
    _set_keys(spec, "{provider: age, key: env:OLD_KEY}")
    assert run("up", str(spec), "--yes").exit_code == 0
    return spec


def _codes(spec: Path, run: Run) -> set[str]:
    answer: dict[str, Any] = json.loads(run("plan", str(spec), "--format", "json").stdout)
    return {diagnostic["code"] for diagnostic in answer["diagnostics"]}


def test_another_provider_is_in_the_plan_and_up_refuses_until_it_is_changed(
    run: Run, up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "GC1164" not in _codes(up, run)
    _set_keys(up, "{provider: age, key: env:NEW_KEY}")
    before = open_cluster(str(up)).vault.version("munge")
    assert "GC1164" in _codes(up, run)
    refused = run("up", str(up), "--yes")
    assert refused.exit_code == 4
    assert "GC1164" in refused.stderr
    assert "gcluster rotate encryption" in refused.stderr

    done = run("rotate", "encryption", str(up))
    assert done.exit_code == 0, done.stderr
    assert "are encrypted by age (for age1" in done.stdout
    monkeypatch.delenv("OLD_KEY")
    assert "GC1164" not in _codes(up, run)
    assert open_cluster(str(up)).vault.version("munge") == before
    answer = json.loads(run("plan", str(up), "--format", "json").stdout)
    assert answer["steps"] == []
    assert run("up", str(up), "--yes").exit_code == 0
    assert run("down", str(up), "--yes").exit_code == 0


def test_a_change_that_was_not_followed_by_an_up_needs_the_old_key_no_more(
    run: Run, up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_keys(up, "{provider: age, key: env:NEW_KEY}")
    assert run("rotate", "encryption", str(up)).exit_code == 0
    monkeypatch.delenv("OLD_KEY")
    # What was applied last still names the old key: the state says itself where the new one is.
    assert len(open_cluster(str(up), running=True).vault.reveal("munge")) == 1024


def test_without_the_old_key_nothing_is_changed_and_it_is_reported_where_it_was(
    run: Run, up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_keys(up, "{provider: age, key: env:NEW_KEY}")
    monkeypatch.delenv("OLD_KEY")
    kept = _kept(up)
    done = run("rotate", "encryption", str(up), "--format", "json")
    assert done.exit_code == 1
    assert "GC905" in done.stdout + done.stderr
    assert "env:OLD_KEY" in done.stdout + done.stderr
    assert _kept(up) == kept


def test_a_provider_that_can_not_be_used_stops_up_before_a_machine_is_made(
    run: Run, spec: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    _set_keys(spec, f"{{provider: sops, age: [{pyrage.x25519.Identity.generate().to_public()}]}}")
    done = run("up", str(spec), "--yes")
    assert done.exit_code == 1
    assert "GC1162" in done.stderr
    assert not (spec.parent / ".gcluster").exists()


def test_a_new_provider_that_can_not_be_used_leaves_all_as_it_was(
    run: Run, up: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    _set_keys(up, f"{{provider: sops, age: [{pyrage.x25519.Identity.generate().to_public()}]}}")
    kept = _kept(up)
    assert run("rotate", "encryption", str(up)).exit_code == 1
    assert _kept(up) == kept


def _kept(spec: Path) -> dict[str, bytes]:
    state = spec.parent / ".gcluster" / "demo"
    return {
        str(path): path.read_bytes()
        for folder in ("secrets", "keyring")
        for path in (state / folder).rglob("*")
        if path.is_file()
    }
