"""Dashboards of one cluster as Grafana's JSON, made of what comes with gcluster as data."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from ..alerts import Condition
from .boards import DATA, boards_for

SOURCE_UID = "gcluster-source"
"""Of the data source in the JSON that comes with gcluster; a cluster's has its name."""


def board_files(cluster: str, has: Collection[Condition]) -> Iterator[tuple[str, bytes]]:
    """Yield name and JSON of each dashboard, for this cluster alone.

    Grafana keeps one dashboard for each uid: so several clusters' may lie in one Grafana.
    """
    for board in boards_for(has):
        document = json.loads((DATA / f"grafana/{board.name}.json").read_text(encoding="utf-8"))
        titles = {panel.title for panel in board.panels}
        document["panels"] = [p for p in document["panels"] if p["title"] in titles]
        for at, panel in enumerate(document["panels"]):
            panel["gridPos"] |= {"x": at % 3 * 8, "y": at // 3 * 8}
        document["uid"] = f"{cluster}-{board.name}"
        document["title"] = f"{cluster}: {board.title}"
        text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
        yield board.name, text.replace(SOURCE_UID, f"gcluster-{cluster}").encode() + b"\n"
