"""Without the engine, `up` on a cloud ends before it prompts or writes anything, and says so."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.stacks.provider import ProviderError
from gcluster.stacks.pulumi.engine import command
from gcluster.stacks.registry import clouds, names, provider

EXAMPLE = Path(__file__).parents[2] / "examples" / "aws-p5-slurm.yaml"


@pytest.fixture
def without_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has no pulumi and no way to the web to fetch it."""

    def install(_: Path) -> None:
        raise OSError("no way to the web")

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(command.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(command, "_install", install)


@pytest.mark.usefixtures("without_engine")
def test_up_on_a_cloud_reports_that_the_engine_is_missing_and_writes_nothing(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    spec = tmp_path / "cluster.yaml"
    shutil.copy(EXAMPLE, spec)
    done = run("up", str(spec), "--yes")
    output = done.stdout + done.stderr
    assert done.exit_code == 1
    assert "GC965" in output
    assert "no way to the web" in output
    assert "Traceback" not in output
    assert not (tmp_path / ".gcluster").exists()


@pytest.mark.usefixtures("without_engine")
@pytest.mark.parametrize("cloud", clouds())
def test_every_cloud_searches_for_the_engine_when_it_is_queried_to(cloud: str) -> None:
    maker = provider(cloud)
    with pytest.raises(ProviderError) as caught:
        maker.ensure_tools()
    assert caught.value.diagnostics[0].code == "GC965"


@pytest.mark.usefixtures("without_engine")
def test_sites_that_need_no_engine_are_not_requested_one() -> None:
    others = sorted(set(names()) - set(clouds()))
    for name in others:
        provider(name).ensure_tools()
