"""The unit file runs this very program for this very cluster, and holds no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.burst.agent.unit import unit_file


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


def test_a_cluster_by_its_name_needs_no_folder() -> None:
    assert "burst agent trial --interval 5s" in unit_file("trial", "ops", "5s")
