"""The unit file runs this very program for this very cluster, and holds no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.operations.burst.agent.unit import unit_file


def test_the_unit_runs_the_agent_of_the_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    spec = tmp_path / "cluster.yaml"
    spec.touch()

    unit = unit_file(str(spec), "ops", "10s")

    assert f"gcluster burst agent {spec} --interval 10s" in unit
    assert "User=ops" in unit
    assert "s3cret" not in unit


def test_no_character_of_a_path_means_something_to_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", '/srv/50%/a "b"')
    spec = tmp_path / "100%h $HOME.yaml"
    spec.touch()

    unit = unit_file(str(spec), "ops", "10s")

    assert f"burst agent '{tmp_path}/100%%h $$HOME.yaml' --interval" in unit
    assert 'Environment="XDG_DATA_HOME=/srv/50%%/a \\"b\\""' in unit


def test_an_agent_that_is_stopped_has_not_failed() -> None:
    assert f"SuccessExitStatus={Exit.INTERRUPTED:d}\n" in unit_file("trial", "ops", "5s")


def test_a_cluster_by_its_name_needs_no_folder() -> None:
    assert "burst agent trial --interval 5s" in unit_file("trial", "ops", "5s")
