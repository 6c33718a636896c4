"""The table of alert rules (`data/rules.yaml`), and the rule file that a cluster gets of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import yaml
from msgspec import Meta

from ...schemas.spec.model import SpecModel
from ...schemas.spec.units import Duration
from ...schemas.structure.compose import read_data_file

_DATA = Path(__file__).parent / "data"
Condition: TypeAlias = Literal[
    "infiniband",
    "clock",
    "lustre",
    "slurm",
    "slurmdbd",
    "gpus",
    "nvidia",
    "amd",
    "bmc",
    "waste_alert",
    "hour_budget",
    "month_budget",
    "expires",
    "kubernetes",
    "etcd",
    "figures",
    "units",
    "chart",
]
"""What a cluster must have for a rule: ports of InfiniBand, clocks of its own, Lustre's clients,
Slurm, a slurmdbd, GPUs whose use is measured, NVIDIA's or AMD's, BMCs (of dashboards alone); in
its spec `waste_alert`, a ceiling in `budget` or an end; Kubernetes, an etcd of its own, a host on
which `up` and `smoke` leave their figures, exporters that systemd runs, or Kubernetes' chart."""
_FAST = "gcluster", "5s"
"""Group, and time between two evaluations: an alert that holds for 30 s fires less than 90 s after
its cause."""
_SLOW = "gcluster-minute", "60s"
"""The same of rules that can wait. Groups are evaluated side by side: what these take, no rule of
the other group waits for."""
_PATIENT_S = 120
"""Rules that hold for so long can wait for a minute more."""
_BOARD = (
    "{{ if $labels.hpc_job }}job?var-job={{ $labels.hpc_job }}"
    "{{ else if $labels.instance }}node?var-node={{ $labels.instance }}"
    "{{ else }}cluster{{ end }}"
)
"""Which dashboard an alert links to, by its labels: a template of Prometheus'."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_METRIC = re.compile(
    r"(?<!:)\b(?:up|(?:node|probe|slurm|gcluster|prometheus|alertmanager|kube|kubelet|apiserver|gpu|pcie)_[a-z0-9_]+|DCGM_[A-Z0-9_]+)\b(?!\()"
)


class AlertRule(SpecModel, frozen=True, kw_only=True):
    """One alert: its condition, its message, and its page."""

    name: Annotated[str, Meta(pattern=r"^[A-Z][A-Za-z]+$")]
    severity: Literal["critical", "warning", "none"]
    """none: it is not sent, and inhibits others (`inhibitions`)."""
    expression: str
    """PromQL; it has no value where all is well."""
    for_: Annotated[str, Meta(pattern=r"^[0-9]+[smhd]$")] = msgspec.field(name="for")
    """How long it holds before the alert fires."""
    every: Literal["5s", "60s"] | None = None
    """Time between two evaluations; default: 60s for what holds for two minutes or longer, else 5s.
    What reads an hour or more of every GPU's samples takes seconds on thousands of nodes."""
    needs: tuple[Condition, ...] = ()
    summary: str
    """One line, with Prometheus' templates for labels and the value."""
    means: str
    do: tuple[str, ...]
    """Steps for the on-call engineer, the first one first."""

    @property
    def can_wait(self) -> bool:
        """Whether it is evaluated each minute, and not every few seconds."""
        if self.every is not None:
            return self.every == _SLOW[1]
        return Duration.parse(self.for_).value >= _PATIENT_S


class Inhibition(SpecModel, frozen=True, kw_only=True):
    """Alerts that aren't sent while another one has the cause."""

    while_: tuple[str, ...] = msgspec.field(name="while")
    """Alerts of which one fires."""
    quiet: tuple[str, ...] = ()
    """Alerts that aren't sent then; empty: all others."""
    but: tuple[str, ...] = ()
    """Alerts that are sent all the same."""
    equal: tuple[str, ...]
    """Labels that both have in common."""


class WasteLimits(SpecModel, frozen=True, kw_only=True):
    """When a job's waste is an alert: the figures $below, $window and $least of expressions."""

    below: float = 0.4
    """Share of the time that SMs are active."""
    window_s: int = 1800
    least: float = 5.0
    """Dollars an hour."""

    def filled(self, expression: str) -> str:
        """Return an expression with the figures in it."""
        return (
            expression.replace("$below", f"{self.below:.15g}")
            .replace("$window", str(self.window_s))
            .replace("$least", f"{self.least:.15g}")
        )


class _Rules(SpecModel, frozen=True):
    rules: tuple[AlertRule, ...]
    inhibitions: tuple[Inhibition, ...] = ()


class _Checks(SpecModel, frozen=True):
    checks: dict[str, tuple[str, ...]]


class _Metrics(SpecModel, frozen=True, kw_only=True):
    prometheus: tuple[str, ...]
    probe: tuple[str, ...]
    alertmanager: tuple[str, ...]
    node: tuple[str, ...]
    hardware: tuple[str, ...]
    slurm: tuple[str, ...]
    cluster: tuple[str, ...]
    lustre: tuple[str, ...]
    kubernetes: tuple[str, ...]
    dcgm: tuple[str, ...]
    amd: tuple[str, ...]


@lru_cache(maxsize=8)
def _table(name: str = "rules") -> _Rules:
    return read_data_file(_DATA / f"{name}.yaml", _Rules)


@lru_cache(maxsize=1)
def alert_rules() -> dict[str, AlertRule]:
    """Return all rules by name, in the order of the table."""
    tables = [_table(name) for name in ("rules", "kubernetes", "cluster", "gpu", "amd")]
    return {rule.name: rule for table in tables for rule in table.rules}


def inhibitions(scheduler: Literal["slurm", "kubernetes"] = "slurm") -> list[dict[str, list[str]]]:
    """Return Alertmanager's `inhibit_rules`."""
    return [
        {
            "source_matchers": [f'alertname=~"{"|".join(one.while_)}"'],
            "target_matchers": [
                f'alertname=~"{"|".join(one.quiet)}"'
                if one.quiet
                else f'alertname!~"{"|".join((*one.while_, *one.but))}"'
            ],
            "equal": ["cluster", *one.equal],
        }
        for one in _table("rules" if scheduler == "slurm" else scheduler).inhibitions
    ]


@lru_cache(maxsize=1)
def exported_metrics() -> dict[str, tuple[str, ...]]:
    """Return the metrics that rules may use, by exporter."""
    return msgspec.structs.asdict(read_data_file(_DATA / "metrics.yaml", _Metrics))


@lru_cache(maxsize=1)
def node_checks() -> dict[str, tuple[str, ...]]:
    """Return alert -> codes of the node's own check that look at the same fault, and drain."""
    return read_data_file(_DATA / "checks.yaml", _Checks).checks


def metrics_of(expression: str) -> set[str]:
    """Return the names of metrics in an expression; strings are ignored."""
    return set(_METRIC.findall(_STRING.sub('""', expression)))


def rule_file(
    conditions: Collection[Condition],
    page: str = "gcluster explain",
    recorded: Mapping[str, Any] | None = None,
    limits: WasteLimits | None = None,
    dashboards: str = "",
) -> str:
    """Return Prometheus' rule file, YAML: the groups of `rule_groups`, which says the arguments."""
    groups = rule_groups(conditions, page, recorded, limits, dashboards)
    return yaml.dump({"groups": groups}, Dumper=_Dumper, sort_keys=False, width=1000)


def rule_groups(
    conditions: Collection[Condition],
    page: str = "gcluster explain",
    recorded: Mapping[str, Any] | None = None,
    limits: WasteLimits | None = None,
    dashboards: str = "",
) -> list[Mapping[str, Any]]:
    """Return the groups of rules of a cluster that has what is listed.

    No rule of a group reads what a rule of another one of them records, but for the metrics of
    `recorded`, of which the last sample will do.

    Args:
        conditions: what the cluster has; rules that need something else are left out.
        page: command that shows an alert's page, an annotation of each.
        recorded: group of recording rules that goes before them; None: there is none.
        limits: of GpusWasted; None: the ones of the page's examples.
        dashboards: address of the cluster's in a Grafana, without the board: "https://HOST/d/NAME";
            each alert links to the one of its job, its node or the cluster. "": there is none.
    """
    link = {"dashboard": f"{dashboards}-{_BOARD}"} if dashboards else {}
    chosen = [rule for rule in alert_rules().values() if set(rule.needs) <= set(conditions)]
    groups: list[Mapping[str, Any]] = [] if recorded is None else [recorded]
    for (name, interval), can_wait in ((_FAST, False), (_SLOW, True)):
        rules = [
            {
                "alert": rule.name,
                "expr": (limits or WasteLimits()).filled(rule.expression),
                "for": rule.for_,
                "labels": {"severity": rule.severity},
                "annotations": {"summary": rule.summary, "runbook": f"{page} {rule.name}"} | link,
            }
            for rule in chosen
            if rule.can_wait == can_wait
        ]
        groups.append({"name": name, "interval": interval, "rules": rules})
    return groups


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
