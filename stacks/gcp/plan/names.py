"""How a Google Cloud site's resources are called."""

from __future__ import annotations

from ...pulumi.names import label_value
from .layout import SitePlan

OPTION = "gcluster-option"
"""Option of the fallback list that an elastic machine, or a template, is of."""


def found_by(plan: SitePlan) -> dict[str, str]:
    """Return the labels by which a site's machines are found."""
    return {key: label_value(value) for key, value in plan.labels.found_by().items()}


def label_filter(labels: dict[str, str]) -> str:
    """Return the filter of lists for resources with all of these labels."""
    return " AND ".join(f"labels.{key}={value}" for key, value in labels.items())
