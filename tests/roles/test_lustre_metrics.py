"""What a Lustre client prints, as figures for Prometheus.

The output is made up in the form of lustre/obdclass/lprocfs_status.c and of a listing of llite's
stats on lustre-discuss (2018-04-06); no Lustre runs here.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from gcluster.inventory.alerts import exported_metrics

from .programs import load_program

ROOT = Path(__file__).parents[2]
SAID = (ROOT / "tests/cases/metrics/lustre-lctl.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return load_program(ROOT / "roles/node_exporter/files/libexec/lustre-metrics.py", "lustre")


def test_targets_evictions_and_bytes_are_counted_by_file_system(program: ModuleType) -> None:
    lines = program.page(SAID).splitlines()

    assert lines == [
        'gcluster_lustre_targets{filesystem="home",state="connected"} 1',
        'gcluster_lustre_targets{filesystem="home",state="disconnected"} 0',
        'gcluster_lustre_targets{filesystem="scratch",state="connected"} 2',
        'gcluster_lustre_targets{filesystem="scratch",state="disconnected"} 1',
        'gcluster_lustre_evicted_time_seconds{filesystem="scratch"} 1795841005',
        'gcluster_lustre_read_bytes_total{filesystem="scratch"} 145121869',
        'gcluster_lustre_write_bytes_total{filesystem="scratch"} 468230469',
    ]
    assert set(exported_metrics()["lustre"]) <= {line.partition("{")[0] for line in lines}


def test_a_node_without_lctl_keeps_no_old_figures(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / program.FILE).write_text("old 1\n")

    assert program.main() == 1
    assert not (tmp_path / program.FILE).exists()
