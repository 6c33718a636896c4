"""Alert rules as data: what a watched cluster is told of, and what a person does about each."""

from .pages import alerts_page, where
from .rules import (
    AlertRule,
    Condition,
    alert_rules,
    exported_metrics,
    inhibitions,
    metrics_of,
    rule_file,
)

__all__ = [
    "AlertRule",
    "Condition",
    "alert_rules",
    "alerts_page",
    "exported_metrics",
    "inhibitions",
    "metrics_of",
    "rule_file",
    "where",
]
