"""Whether the account's quotas have room for what the spec still wants to run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from ...schemas.cost.quotas import QuotaNeed, still_needed
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec
from ..pulumi.questions import Standing, finding
from .api import Answer, Api

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog

_LOOK_BACK = timedelta(minutes=30)
"""Usage is published every minute (CloudWatch User Guide, "usage metrics", November 2026)."""


class _UsageMetric(Answer, frozen=True):
    metric_namespace: str = ""
    metric_name: str = ""
    metric_dimensions: dict[str, str] = msgspec.field(default_factory=dict)


class _QuotaValue(Answer, frozen=True):
    value: float
    quota_name: str = ""
    usage_metric: _UsageMetric = _UsageMetric()


class _Quota(Answer, frozen=True):
    quota: _QuotaValue


class _Point(Answer, frozen=True):
    timestamp: datetime
    maximum: float = 0.0


class _Points(Answer, frozen=True):
    datapoints: tuple[_Point, ...] = ()


def check_limit(api: Api, need: QuotaNeed) -> Iterator[Diagnostic]:
    """Yield a finding where a quota is below what the spec takes at its largest."""
    quota = _quota(api, need.code)
    if quota.value >= need.amount:
        return
    yield finding(
        "GC972",
        f"quota {need.code} ({quota.quota_name}) is {quota.value:g} {need.unit}, "
        f"pools {', '.join(need.pools)} need {need.amount}",
        detail="What already runs in the account counts against it too.",
        hint=_ask_for(api, need.code, need.amount),
    )


def check_room(
    api: Api, spec: ClusterSpec, catalog: Catalog, need: QuotaNeed, standing: Standing
) -> Iterator[Diagnostic]:
    """Yield a warning where a quota is large enough, but others use what the spec still needs.

    Machines of this cluster that run are among what is used, and are needed no more. Where AWS
    publishes no usage of the quota nothing is said.
    """
    missing = still_needed(spec, catalog, need, standing.counts())
    quota = _quota(api, need.code)
    if not missing or quota.value < need.amount:  # the limit itself is told by check_limit
        return
    used = _used(api, quota.usage_metric)
    if used is None or quota.value - used >= missing:
        return
    yield finding(
        "GC972",
        f"quota {need.code} ({quota.quota_name}): {used:g} of {quota.value:g} are in use, "
        f"{missing} more are needed",
        severity=Severity.WARNING,
        detail="What is in use is CloudWatch's figure of the last minutes, for the whole account.",
        hint=_ask_for(api, need.code, int(used) + missing),
    )


def _quota(api: Api, code: str) -> _QuotaValue:
    return api.ask(
        _Quota, "service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode=code
    ).quota


def _used(api: Api, metric: _UsageMetric) -> float | None:
    """Return what CloudWatch last counted; None: it counts nothing of the kind."""
    if not metric.metric_name:
        return None
    now = datetime.now(UTC)
    points = api.ask(
        _Points,
        "cloudwatch",
        "get_metric_statistics",
        Namespace=metric.metric_namespace,
        MetricName=metric.metric_name,
        Dimensions=[{"Name": k, "Value": v} for k, v in metric.metric_dimensions.items()],
        StartTime=now - _LOOK_BACK,
        EndTime=now,
        Period=300,
        Statistics=["Maximum"],
    ).datapoints
    newest = max(points, key=lambda point: point.timestamp, default=None)
    return None if newest is None else newest.maximum


def _ask_for(api: Api, code: str, amount: int) -> str:
    return (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code {code} --desired-value {amount} --region {api.region}"
    )
