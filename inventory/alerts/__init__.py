"""Alert rules as data: conditions, messages, and the steps for each."""

from .owners import USER_LABEL, Owners, owners_of_jobs, owners_of_pods
from .pages import alerts_page, steps_of, where
from .receivers import MAIL_CA, alertmanager_config, messages
from .rules import (
    AlertRule,
    Condition,
    WasteLimits,
    alert_rules,
    exported_metrics,
    inhibitions,
    metrics_of,
    node_checks,
    rule_file,
    rule_groups,
)

__all__ = [
    "MAIL_CA",
    "USER_LABEL",
    "AlertRule",
    "Condition",
    "Owners",
    "WasteLimits",
    "alert_rules",
    "alertmanager_config",
    "alerts_page",
    "exported_metrics",
    "inhibitions",
    "messages",
    "metrics_of",
    "node_checks",
    "owners_of_jobs",
    "owners_of_pods",
    "rule_file",
    "rule_groups",
    "steps_of",
    "where",
]
