"""Write Grafana's dashboards of the table (inventory/dashboards/data) with Grafana's own SDK.

usage: python .ci/dashboards.py [--check]      --check: exit 1, and name what is out of date

The JSON is committed: gcluster has it as data and needs no SDK.
"""

from __future__ import annotations

import sys

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    VariableRefresh,
)

from gcluster.inventory.dashboards.boards import DATA, Board, Panel, boards
from gcluster.inventory.dashboards.documents import SOURCE_UID

SOURCE = DataSourceRef(type_val="prometheus", uid=SOURCE_UID)
VALUES = {
    "pool": 'label_values(up{job="node"}, pool)',
    "node": 'label_values(up{job="node"}, instance)',
    "job": "label_values(gcluster_slurm_job_gpus, hpc_job)",
}
"""Variable of a board -> what a person chooses from."""


def main() -> int:
    """Write or check all of them."""
    stale = []
    for board in boards().values():
        path = DATA / f"grafana/{board.name}.json"
        text = dashboard_json(board)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path))
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    print("\n".join(stale))
    return 1 if stale and "--check" in sys.argv else 0


def dashboard_json(board: Board) -> str:
    """Return the document of a board."""
    builder = (
        dashboard.Dashboard(board.title)
        .uid(f"gcluster-{board.name}")
        .description(board.answers)
        .tags(["gcluster"])
        .refresh("30s")
        .time("now-6h", "now")
        .timezone("browser")
        .readonly()
        .link(
            dashboard.DashboardLink("gcluster")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["gcluster"])
        )
    )
    if board.variable is not None:
        builder = builder.with_variable(
            dashboard.QueryVariable(board.variable)
            .label(board.variable)
            .datasource(SOURCE)
            .query(VALUES[board.variable])
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        )
    for number, panel in enumerate(board.panels, start=1):
        builder = builder.with_panel(panel_of(panel, number))
    document = JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False).encode(builder.build())
    return f"{document}\n"


def panel_of(panel: Panel, number: int) -> timeseries.Panel:
    """Return a panel; its number in the board is its id."""
    builder = (
        timeseries.Panel()
        .id(number)
        .title(panel.title)
        .datasource(SOURCE)
        .unit(panel.unit)
        .min(0)
        .line_width(1)
        .fill_opacity(10)
        .span(8)
        .height(8)
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    for at, (legend, expression) in enumerate(panel.queries.items()):
        builder = builder.with_target(
            prometheus.Dataquery()
            .ref_id(chr(ord("A") + at))
            .datasource(SOURCE)
            .expr(expression)
            .legend_format(legend)
            .range()
        )
    return builder


if __name__ == "__main__":
    sys.exit(main())
