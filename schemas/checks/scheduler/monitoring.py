"""What watches a cluster: where its metrics can be had, and what of it can't be set up."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.model.machine import Machine
from ...derived.control_planes import roles_watch
from ...diagnostics import PathTuple, Severity
from ...spec import KubernetesScheduler
from ...spec.cluster import Monitoring
from ...structure.fix.edits import Fix, Insert, Remove, Replace
from ..context import CheckContext
from ..registry import Finding, check
from ..software.versions import every_stack, relies_on

_PROMETHEUS: PathTuple = ("monitoring", "prometheus")


@check("GC571", summary="Settings of Prometheus without Prometheus.")
def metrics_missing(context: CheckContext) -> Iterator[Finding]:
    """`retention` is how long Prometheus keeps what it collects, `pool` where it runs.

    `alerts` says who is sent what its rules find, and a Grafana draws what it keeps. So all of them
    need `prometheus: true`.
    """
    monitoring = context.monitoring
    if monitoring is None or monitoring.prometheus:
        return
    draws = monitoring.grafana and not _by_roles(context)  # elsewhere GC576
    requested = {
        "grafana": True if draws else None,
        "grafana_url": monitoring.grafana_url,
        "retention": monitoring.retention,
        "pool": monitoring.pool,
        "alerts": monitoring.alerts,
        "remote_write": monitoring.remote_write,
        "volume": monitoring.volume,
        "waste_alert": monitoring.waste_alert,
    }
    keys = [key for key, value in requested.items() if value is not None]
    if keys:
        written = "prometheus" in (context.declared("monitoring") or ())
        yield Finding(
            summary=f"{' and '.join(keys)} without the metrics of Prometheus",
            path=("monitoring", keys[0]),
            at_key=True,
            hint="add prometheus: true",
            relies_on=(_PROMETHEUS, *(("monitoring", key) for key in requested)),
            fix=Replace(_PROMETHEUS, "true")
            if written
            else Insert(_PROMETHEUS[:1], "prometheus", "true"),
        )


@check("GC576", summary="A part of monitoring that gcluster doesn't set up.")
def monitoring_not_built(context: CheckContext) -> Iterator[Finding]:
    """Slurm clusters get Prometheus, Alertmanager and an exporter on each node, Kubernetes a chart.

    Kubernetes' nodes that are made on this machine have no images of the chart, and get what
    Slurm's nodes get; Prometheus runs on a control plane there, which has the right to let it log
    in. No Grafana server is installed on either (`grafana`): `gcluster compile` writes dashboards
    for one of yours, and `gcluster dashboard` needs none. `volume` is the chart's, and the chart's
    Alertmanager alone knows whose pods an account's are (`to_owner`).

    The pod network `routed` keeps no network policy, and every pod could read what the chart's
    Prometheus has.
    """
    monitoring = context.monitoring
    if monitoring is None:
        return
    if _by_roles(context):
        yield from _not_by_roles(context, monitoring)
        if context.kubernetes is not None and monitoring.prometheus:
            yield from _not_of_pods_here(context, monitoring)
    elif monitoring.prometheus:
        yield from _not_by_the_chart(context.kubernetes)


def _by_roles(context: CheckContext) -> bool:
    return roles_watch(context.kubernetes, context.sites.values())


def _not_by_roles(context: CheckContext, monitoring: Monitoring) -> Iterator[Finding]:
    if monitoring.grafana:
        yield _not_built(
            "grafana", "gcluster installs no Grafana server", _without(context, "grafana")
        )
    if monitoring.volume is not None:
        where = "under Slurm" if context.kubernetes is None else "on nodes made on this machine"
        yield Finding(
            summary=f"volume: {where} metrics are kept in /var/lib/prometheus of their host",
            path=("monitoring", "volume"),
            at_key=True,
            hint="leave volume out",
            relies_on=(("monitoring", "volume"), ("scheduler", "type")),
            fix=_without(context, "volume"),
        )


def _not_of_pods_here(context: CheckContext, monitoring: Monitoring) -> Iterator[Finding]:
    """Yield what nodes of Kubernetes that are made on this machine lack of what Slurm's have."""
    relied = (("monitoring",), ("scheduler",), ("sites", "*"), ("pools", "*"))
    pool = context.pools.get(monitoring.pool or "")
    if pool is not None and pool.role != "controller":
        yield Finding(
            summary="on nodes made on this machine Prometheus runs on a control plane, which lets "
            f'it log in to Kubernetes: pool "{monitoring.pool}" has none',
            path=("monitoring", "pool"),
            hint="leave pool out",
            relies_on=relied,
            fix=Remove(("monitoring", "pool")),
        )
    if monitoring.waste_alert is not None and monitoring.waste_alert.to_owner:
        yield Finding(
            summary="to_owner: on nodes made on this machine Alertmanager doesn't know whose a "
            "pod is",
            path=("monitoring", "waste_alert", "to_owner"),
            at_key=True,
            hint="leave to_owner out: all receivers get these alerts",
            relies_on=relied,
        )


def _not_by_the_chart(kubernetes: KubernetesScheduler | None) -> Iterator[Finding]:
    if kubernetes is not None and kubernetes.cni == "routed":
        yield Finding(
            summary="monitoring needs a pod network that keeps network policies: routed keeps none",
            path=("monitoring",),
            at_key=True,
            hint="write cni: cilium or cni: calico",
            relies_on=(("monitoring",), ("scheduler",), ("sites", "*")),
        )


def _without(context: CheckContext, key: str) -> Fix:
    """Return how a key goes; alone in its mapping it goes with that."""
    alone = set(context.declared("monitoring") or ()) == {key}
    return Remove(("monitoring",) if alone else ("monitoring", key))


def _not_built(key: str, why: str, fix: Fix) -> Finding:
    return Finding(
        summary=f"{key}: {why}",
        path=("monitoring", key),
        at_key=True,
        hint=f"leave {key} out; gcluster compile writes dashboards for a Grafana of yours, and "
        "gcluster dashboard needs none",
        fix=fix,
    )


@check("GC577", summary="Metrics are requested from nodes for which there is no exporter.")
def exporter_has_no_package(context: CheckContext) -> Iterator[Finding]:
    """The exporters are the distribution's own packages, on EL those of the source prometheus-rpm.

    That has none for ARM, and AMD has no package of its exporter for EL. Such nodes can be watched
    when they boot an image of Debian or Ubuntu.
    """
    monitoring = context.monitoring
    if monitoring is None or not monitoring.prometheus or context.kubernetes is not None:
        return
    for name, stack in every_stack(context).items():
        missing = None if stack.resolved.distribution != "el-9" else _not_for_el(stack.machine)
        if missing is not None:
            yield Finding(
                summary=f'pool "{name}" runs EL 9, for which there is no package of {missing}',
                path=_PROMETHEUS,
                hint="give the pool Debian or Ubuntu (software: {distribution: ...}), or leave "
                "monitoring out",
                relies_on=(_PROMETHEUS, *relies_on(stack, "distribution")),
            )
            return


def _not_for_el(machine: Machine | None) -> str | None:
    """Return the exporter that EL has no package of on a machine type."""
    if machine is None:
        return None
    if machine.cpu.architecture == "aarch64":
        return "node exporter for ARM"
    gpu = machine.gpu
    return "AMD's exporter of GPUs" if gpu is not None and gpu.vendor == "amd" else None


@check("GC579", summary="A mail server that alerts can't log in to, or not safely.")
def mail_login(context: CheckContext) -> Iterator[Finding]:
    """`user` and `password` of a mail server belong together, and go over TLS alone.

    Alertmanager logs in by a method that the server offers; PLAIN and LOGIN send the password as
    it is. So `tls: false` is for servers that take mail without a login.
    """
    monitoring = context.monitoring
    mail = None if monitoring is None or monitoring.alerts is None else monitoring.alerts.mail
    if mail is None:
        return
    path: PathTuple = ("monitoring", "alerts", "mail")
    if (mail.user is None) != (mail.password is None):
        given, missing = ("user", "password") if mail.password is None else ("password", "user")
        yield Finding(
            summary=f"the mail server has a {given}, but no {missing}",
            path=(*path, given),
            at_key=True,
            hint="add password: env:SMTP_PASSWORD (a reference, never the password)"
            if missing == "password"
            else "add user, or remove password",
            relies_on=((*path, given), (*path, missing)),
        )
    elif mail.user is not None and not mail.tls:
        yield Finding(
            summary="the mail server's password would be sent in the clear",
            path=(*path, "tls"),
            hint="leave tls out, or user and password",
            relies_on=((*path, "tls"), (*path, "user")),
            fix=Remove((*path, "tls")),
        )


@check("GC580", summary="Alerts of a severity without a receiver.")
def alerts_unsent(context: CheckContext) -> Iterator[Finding]:
    """A spec with receivers of alerts is meant to call them when work stops.

    Where none of them takes critical alerts, or none is named, they are on Alertmanager's page
    alone. Only a warning.
    """
    monitoring = context.monitoring
    if monitoring is None or monitoring.alerts is None:
        return
    alerts = monitoring.alerts
    receivers = [one for one in (alerts.mail, alerts.webhook, alerts.slack) if one is not None]
    if any("critical" in one.severities for one in receivers):
        return
    yield Finding(
        summary="critical alerts have no receiver",
        path=("monitoring", "alerts"),
        at_key=True,
        severity=Severity.WARNING,
        hint="add mail, webhook or slack"
        if not receivers
        else "let a receiver take them: severities: [critical, warning]",
    )
