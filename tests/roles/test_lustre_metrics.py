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
SAID = """\
mdc.scratch-MDT0000-mdc-ffff9a0c2f6c5800.state=
current_state: FULL
state_history:
 - [ 1795840000, CONNECTING ]
 - [ 1795840000, FULL ]
 - [ 1795841000, DISCONN ]
 - [ 1795841005, CONNECTING ]
 - [ 1795841005, EVICTED ]
 - [ 1795841006, RECOVER ]
 - [ 1795841006, FULL ]
osc.scratch-OST0000-osc-ffff9a0c2f6c5800.state=
current_state: IDLE
state_history:
 - [ 1795840000, FULL ]
 - [ 1795840900, EVICTED ]
osc.scratch-OST0001-osc-ffff9a0c2f6c5800.state=
current_state: DISCONN
state_history:
 - [ 1795840000, FULL ]
mdc.home-MDT0000-mdc-ffff9a0c2f6c5801.state=
current_state: FULL
state_history:
llite.scratch-ffff9a0c2f6c5800.stats=
snapshot_time             1523008010.817348638 secs.nsecs
read_bytes                25673 samples [bytes] 1 3366225 145121869
write_bytes               13641 samples [bytes] 1 3366225 468230469
open                      12 samples [regs]
"""


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
