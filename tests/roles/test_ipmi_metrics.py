"""What freeipmi prints of a BMC's power, as figures for Prometheus."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from gcluster.inventory.dashboards import boards

from .programs import load_program

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "molecule/ipmi_exporter/recordings/ipmi-dcmi"
# As a node of Chameleon's prints it (freeipmi-tools of Ubuntu, ChameleonCloud's page on power
# measurements, 2024-06-18); "watts" is spelt both ways.
CHAMELEON = """\
Current Power                        : 226 Watts
Minimum Power over sampling duration : 0 watts
Maximum Power over sampling duration : 650 watts
Average Power over sampling duration : 236 watts
Time Stamp                           : 06/18/2024 - 16:49:22
Statistics reporting time period     : 1000 milliseconds
Power Measurement                    : Active
"""
UP, DOWN = 'ipmi_up{collector="dcmi"} 1', 'ipmi_up{collector="dcmi"} 0'


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return load_program(ROOT / "roles/ipmi_exporter/files/libexec/ipmi-metrics.py", "ipmi")


def recorded(case: str) -> str:
    """Return what ipmi-dcmi printed in a case of the scenario's recording."""
    good, *others = RECORDED.read_text(encoding="utf-8").split("== ")
    texts = {"good": good} | dict(text.split("\n", 1) for text in others)
    return texts[case]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (CHAMELEON, [UP, "ipmi_dcmi_power_consumption_watts 226"]),
        (recorded("good"), [UP, "ipmi_dcmi_power_consumption_watts 4821"]),
        (recorded("not-measured"), [UP]),
        (recorded("no-dcmi"), [DOWN]),
        ("", [DOWN]),
    ],
    ids=["chameleon", "good", "not-measured", "no-dcmi", "nothing"],
)
def test_power_is_a_figure_only_where_it_is_measured(
    program: ModuleType, text: str, lines: list[str]
) -> None:
    assert program.page(text).splitlines() == lines


def test_a_node_without_freeipmi_keeps_no_old_power(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / program.FILE).write_text("ipmi_dcmi_power_consumption_watts 1\n")

    assert program.main() == 0
    assert (tmp_path / program.FILE).read_text() == f"{DOWN}\n"


def test_dashboards_draw_the_figure_that_is_written() -> None:
    drawn = {
        query
        for board in boards().values()
        for panel in board.panels
        if "bmc" in panel.needs
        for query in panel.queries.values()
    }
    assert len(drawn) == 3
    assert all("ipmi_dcmi_power_consumption_watts" in query for query in drawn)
