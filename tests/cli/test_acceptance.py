"""`gcluster acceptance`: what can't be done is said before anything is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def up(run: Run, spec: Path) -> str:
    """Bring simulated nodes up; return their spec."""
    assert run("up", str(spec), "--yes").exit_code == 0
    return str(spec)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--exclude", "gpu001"], "an exclusion needs --reason, --accepted-by too"),
        (["--exclude", "gpu001", "--reason", "x"], "an exclusion needs --accepted-by too"),
        (["--soak", "a day"], "--soak a day"),
        (["--show"], "no acceptance of demo is finished"),
    ],
)
def test_options_with_nothing_to_do_are_refused(
    run: Run, up: str, options: list[str], message: str
) -> None:
    done = run("acceptance", up, *options)
    assert "GC1196" in done.stderr
    assert message in " ".join(done.stderr.split())
    assert done.exit_code in {1, 64}


def test_simulated_nodes_run_no_jobs_and_get_no_report(run: Run, up: str, tmp_path: Path) -> None:
    done = run("acceptance", up, "--out", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert "GC931" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_cluster_of_kubernetes_is_refused(run: Run, spec: Path) -> None:
    text = spec.read_text(encoding="utf-8").replace("type: slurm", "type: kubernetes")
    spec.write_text(text, encoding="utf-8")
    assert run("up", str(spec), "--yes").exit_code == 0
    done = run("acceptance", str(spec))
    assert done.exit_code == 4
    assert "is accepted by Slurm jobs only" in done.stderr
