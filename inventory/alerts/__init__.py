"""Alert rules as data: conditions, messages, and the steps for each."""

from .pages import alerts_page, where
from .rules import (
    AlertRule,
    Condition,
    WasteLimits,
    alert_rules,
    exported_metrics,
    inhibitions,
    metrics_of,
    rule_file,
)

__all__ = [
    "AlertRule",
    "Condition",
    "WasteLimits",
    "alert_rules",
    "alerts_page",
    "exported_metrics",
    "inhibitions",
    "metrics_of",
    "rule_file",
    "where",
]
