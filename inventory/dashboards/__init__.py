"""Dashboards as data: boards of panels, findings, and what a Grafana reads of them."""

from .boards import Board, Panel, boards, boards_for, boards_of_pods, placeholders
from .documents import board_files
from .findings import Finding, findings
from .links import dashboard_link

__all__ = [
    "Board",
    "Finding",
    "Panel",
    "board_files",
    "boards",
    "boards_for",
    "boards_of_pods",
    "dashboard_link",
    "findings",
    "placeholders",
]
