"""How busy GPUs are: which pools have no metrics of it, and whether their alert can fire."""

from __future__ import annotations

from collections.abc import Iterator

from ...cost.pools import pool_cost
from ...derived.control_planes import GpuSharing, gpu_sharing
from ...diagnostics import PathTuple, Severity
from ...spec import KubernetesScheduler
from ...spec.cluster import WasteAlert
from ...spec.units import Duration
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check
from ..software.versions import every_stack, relies_on

_PROMETHEUS: PathTuple = ("monitoring", "prometheus")
_ALERT: PathTuple = ("monitoring", "waste_alert")
_NOT_SHOWN = "nothing to do: their use is shown as not measured"
_SIMULATED_AMD = "AMD's exporter has no double for simulated GPUs", _NOT_SHOWN
_WINDOW_LEAST_S = 60
"""Seconds of an average that has several values: metrics are scraped every 15 s."""
_KEPT = "15d"
"""How long Prometheus keeps metrics where the spec doesn't say it: prometheus(1)."""


@check("GC584", summary="GPUs without metrics: what their jobs waste isn't known.")
def gpus_not_measured(context: CheckContext) -> Iterator[Finding]:
    """How busy a GPU is says NVIDIA's DCGM exporter, from DCGM 4 on, where gcluster installs it.

    Of AMD's GPUs it is AMD's exporter, under Kubernetes its operator's. Metrics of MIG slices name
    no job, and DCGM 3 or one that came with the image has no package of NVIDIA's.
    Under Kubernetes NVIDIA's operator brings the exporter, but not where GKE brings the driver.
    `gcluster top` and `gcluster report` show the GPUs of such pools as not measured, and no alert
    watches them. Only a warning.
    """
    monitoring = context.monitoring
    if monitoring is None or not monitoring.prometheus or context.scheduler is None:
        return
    for name in context.pools:
        why = _not_measured(context, name)
        if why is not None:
            reason, hint = why
            yield Finding(
                summary=f'GPUs of pool "{name}" are not measured: {reason}',
                path=_PROMETHEUS,
                severity=Severity.WARNING,
                hint=hint,
                relies_on=(_PROMETHEUS, *relies_on(every_stack(context)[name], "dcgm")),
            )


def _not_measured(context: CheckContext, name: str) -> tuple[str, str] | None:
    """Return why a pool's GPUs have no metrics, and what to write; None where they have some."""
    pool, stack = context.pools[name], every_stack(context).get(name)
    machine = context.machine(pool)
    if not pool.is_compute or machine is None or machine.gpu is None or stack is None:
        return None
    if pool.is_sliced:
        return "no metric of a MIG slice names its job", _NOT_SHOWN
    if machine.gpu.vendor != "nvidia":
        return _SIMULATED_AMD if machine.simulated else None
    if machine.simulated:
        return None
    if context.kubernetes is not None:
        return _not_by_the_operator(context.kubernetes, gpu_sharing(context.kubernetes, name, pool))
    return _not_by_a_role(stack.resolved.installs("dcgm"))


def _not_by_the_operator(
    kubernetes: KubernetesScheduler, sharing: GpuSharing
) -> tuple[str, str] | None:
    """Return why NVIDIA's operator measures nothing of use, as `_not_measured`."""
    if sharing.mig is not None:
        return (
            "what share of a GPU a MIG slice uses isn't calculated",
            _NOT_SHOWN,
        )
    if kubernetes.control_plane != "gke" or kubernetes.gpu.driver == "container":
        return None
    return (
        "GKE brings their driver, and NVIDIA's operator isn't there",
        "write gpu: {driver: container}, or read GKE's own metrics",
    )


def _not_by_a_role(dcgm: str | None) -> tuple[str, str] | None:
    """Return why a role installs no exporter for a version of DCGM, as `_not_measured`."""
    if dcgm is None:
        return (
            "their DCGM came with the image",
            "take an image without drivers: gcluster then installs DCGM 4 with them",
        )
    if dcgm.startswith("3."):
        return f"DCGM {dcgm} has no exporter", "take a newer driver: DCGM 4 comes with it"
    return None


def _alert(context: CheckContext) -> WasteAlert | None:
    return None if context.monitoring is None else context.monitoring.waste_alert


@check("GC585", summary="waste_alert can't fire.")
def waste_alert_never_fires(context: CheckContext) -> Iterator[Finding]:
    """The alert is about GPUs of which a metric says how busy they are, on average over a time.

    A cluster may have no such GPUs, use is never below 0%, and an average needs several scrapes
    (one every 15 s) that Prometheus still keeps.
    """
    alert = _alert(context)
    if alert is None or context.monitoring is None or context.scheduler is None:
        return
    if context.slurm is None and context.kubernetes is None:
        yield Finding(
            summary="waste_alert without a scheduler: there are no jobs",
            path=_ALERT,
            at_key=True,
            hint="leave waste_alert out",
            relies_on=(_ALERT, ("scheduler", "type")),
            fix=Remove(_ALERT),
        )
        return
    kept = context.monitoring.retention or Duration.parse(_KEPT)
    if not alert.below.value:
        yield Finding(
            summary="use of GPUs is never below 0%",
            path=(*_ALERT, "below"),
            hint="write the share below which it is waste: below: 40%",
        )
    if not _WINDOW_LEAST_S <= alert.for_.value <= kept.value:
        yield Finding(
            summary=f"there is no average over {alert.for_}: metrics are kept for {kept}"
            if alert.for_.value > kept.value
            else f"{alert.for_} is too short for an average: nodes are scraped every 15 s",
            path=(*_ALERT, "for"),
            hint=f"write a time from 1m to {kept}, say for: 30m",
            relies_on=((*_ALERT, "for"), ("monitoring", "retention")),
        )
    if not any(_has_metrics(context, name) for name in context.pools):
        yield Finding(
            summary="no pool has GPUs whose use is measured",
            path=_ALERT,
            at_key=True,
            hint="leave waste_alert out",
            relies_on=(_ALERT, ("pools", "*"), ("software",)),
            fix=Remove(_ALERT),
        )


def _has_metrics(context: CheckContext, name: str) -> bool:
    """Say whether a pool has GPUs whose use is measured; yes where its machine isn't known."""
    pool = context.pools[name]
    machine = context.machine(pool)
    if not pool.is_compute or machine is None:
        return pool.is_compute
    return machine.gpu is not None and _not_measured(context, name) is None


@check("GC586", summary="A least sum of waste where prices aren't known.")
def waste_without_a_price(context: CheckContext) -> Iterator[Finding]:
    """`min_usd_per_hour` leaves jobs alone that are known to waste less.

    Where a node's price isn't known, each job below the limit is an alert. Only a warning.
    """
    alert = _alert(context)
    if alert is None or not alert.min_usd_per_hour:
        return
    least: PathTuple = (*_ALERT, "min_usd_per_hour")
    for name, pool in context.pools.items():
        site, machine = context.sites.get(pool.site), context.machine(pool)
        if site is None or machine is None or not _has_metrics(context, name):
            continue
        if pool_cost(pool, site, context.catalog).usd_per_node_hour is not None:
            continue
        has_own = "usd_per_hour" in type(site).__struct_fields__
        yield Finding(
            summary=f'the price of pool "{name}" isn\'t known: whatever its jobs waste is an alert',
            path=least,
            severity=Severity.WARNING,
            hint=f"say what a node costs: usd_per_hour: {{{pool.machine}: 20}} at site {pool.site}"
            if has_own
            else "nothing to do, if all of the pool's idle jobs are to be alerts",
            relies_on=(least, ("pools", name), ("sites", pool.site)),
        )


@check("GC587", summary="Owners of jobs can't be mailed.")
def owner_without_an_address(context: CheckContext) -> Iterator[Finding]:
    """`to_owner` sends mail through the server of `alerts.mail`, to an address that is known.

    A user of the spec has `mail`, or is LOGIN@`mail_domain`. What a directory knows of its users'
    addresses isn't read: there it is the domain. Under Kubernetes it goes to the members that
    the account of a pod has in the spec (`users` of accounts).
    """
    alert = _alert(context)
    if alert is None or context.monitoring is None:
        return
    path: PathTuple = (*_ALERT, "to_owner")
    domain: PathTuple = (*_ALERT, "mail_domain")
    if not alert.to_owner:
        if alert.mail_domain is not None:
            yield Finding(
                summary="mail_domain without mail to owners",
                path=domain,
                at_key=True,
                hint="add to_owner: true, or leave mail_domain out",
                relies_on=(domain, path),
                fix=Remove(domain),
            )
        return
    if context.monitoring.alerts is None or context.monitoring.alerts.mail is None:
        yield Finding(
            summary="mail to owners without a mail server",
            path=path,
            at_key=True,
            hint="add alerts: {mail: {to: [...], from: ..., server: HOST:PORT}} under monitoring",
            relies_on=(path, ("monitoring", "alerts")),
        )
    kubernetes = context.kubernetes
    accounts = {} if kubernetes is None else kubernetes.accounts
    members = {user for account in accounts.values() for user in account.users}
    if kubernetes is not None and not members:
        yield Finding(
            summary="mail to owners, but no account has members",
            path=path,
            at_key=True,
            hint="say who they are under scheduler: accounts: {nlp: {users: [ada]}}",
            relies_on=(path, ("scheduler", "accounts")),
        )
        return
    if alert.mail_domain is not None:
        return
    named = {user.name for user in context.users}
    unknown = [
        user.name
        for user in context.users
        if user.mail is None and (kubernetes is None or user.name in members)
    ] + sorted(members - named)
    if unknown or not (context.users or members):
        more = f" and of {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        yield Finding(
            summary=f'the address of user "{unknown[0]}"{more} isn\'t known'
            if unknown
            else "the addresses of users aren't known",
            path=path,
            at_key=True,
            hint="add mail_domain: example.edu" + (", or mail to the user" if unknown else ""),
            relies_on=(path, domain, ("users", "*")),
        )
