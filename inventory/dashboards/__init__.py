"""Dashboards as data: boards of panels with their queries, and what a Grafana reads of them."""

from .boards import Board, Panel, boards, boards_for, placeholders
from .grafana import grafana_files

__all__ = ["Board", "Panel", "boards", "boards_for", "grafana_files", "placeholders"]
