"""What of queues and accounts means something else under Kubernetes, or can't be held there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...diagnostics import PathTuple, Severity
from ...spec.model import NAME_PATTERN
from ..context import CheckContext
from ..registry import Finding, check

_QOS: PathTuple = ("scheduler", "qos")
_PARTITIONS: PathTuple = ("scheduler", "partitions")
_ACCOUNTS: PathTuple = ("scheduler", "accounts")
_TYPE: PathTuple = ("scheduler", "type")
_CHART = "kube-prometheus-stack"
_SYSTEM = frozenset({"default", "gcluster-system"})
"""Namespaces that are there before any account, in addition to those that start with kube-."""


@check("GC554", summary="Kubernetes does not take this name.")
def name_not_for_kubernetes(context: CheckContext) -> Iterator[Finding]:
    """Names under Kubernetes are lower-case letters, digits and hyphens (RFC 1123).

    Pools, partitions, QOS and accounts are labels, queues, priority classes and namespaces there.
    Slurm takes more.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    places: list[tuple[PathTuple, Iterable[str]]] = [
        (("pools",), context.pools),
        (("scheduler", "partitions"), kubernetes.partitions),
        (("scheduler", "qos"), kubernetes.qos),
        (("scheduler", "accounts"), kubernetes.accounts),
    ]
    for place, names in places:
        for name in names:
            if re.fullmatch(NAME_PATTERN, name) is None:
                yield Finding(
                    summary=f'Kubernetes takes no "{name}" as a name',
                    path=(*place, name),
                    at_key=True,
                    hint=f"write it such as {name.lower().replace('_', '-').replace('.', '-')}",
                    relies_on=((*place, name), _TYPE),
                )


@check("GC590", summary="Under Kubernetes a QOS preempts more than in the spec.")
def preemption_by_priority_only(context: CheckContext) -> Iterator[Finding]:
    """Kubernetes preempts by priority: who may preempt at all takes the nodes of all below.

    Slurm uses the list in `preempts`. Under Kubernetes a QOS that preempts one also preempts every
    other of lower priority; and Kueue's queues preempt or don't, whatever the QOS: where one QOS
    preempts, all do, in other accounts up to the highest priority that gives way. Jobs that request
    no QOS (`normal`, priority 0) give way too.
    """
    if context.kubernetes is None:
        return
    known = context.kubernetes.qos
    any_preempts = context.kubernetes.kueue and any(qos.preempts for qos in known.values())
    for name, qos in known.items():
        may = any_preempts or bool(qos.preempts)
        taken = [other for other, q in known.items() if may and q.priority < qos.priority]
        more = [other for other in taken if other not in qos.preempts]
        if more:
            names = ", ".join(f'"{other}"' for other in more)
            path: PathTuple = (*_QOS, name)
            yield Finding(
                summary=f'under Kubernetes QOS "{name}" also preempts {names}: it compares the '
                "priority alone",
                path=path,
                at_key=True,
                severity=Severity.WARNING,
                hint=f"add {', '.join(more)} to its preempts, or give them its priority",
                relies_on=((*_QOS, "*", "priority"), (*_QOS, "*", "preempts"), _TYPE),
            )


@check("GC591", summary="Kubernetes does not hold a limit of the spec.")
def limits_not_enforced(context: CheckContext) -> Iterator[Finding]:
    """Some limits have no counterpart under Kubernetes, or one that holds less.

    It counts neither users' GPUs nor their jobs; a QOS' GPUs are counted in each account apart; and
    where a QOS preempts, Kueue does not order by shares. docs/kubernetes.md has the whole table.
    """
    if context.kubernetes is None:
        return
    parts = (_of_qos, _of_partitions, _of_accounts, _of_pools)
    for path, why in (found for part in parts for found in part(context)):
        yield Finding(
            summary=f"under Kubernetes {why}",
            path=path,
            at_key=True,
            severity=Severity.WARNING,
            hint="remove it, or see docs/kubernetes.md for what holds instead",
            relies_on=(path, _TYPE),
        )


def _of_qos(context: CheckContext) -> Iterator[tuple[PathTuple, str]]:
    scheduler = context.kubernetes
    for name, qos in scheduler.qos.items() if scheduler is not None else ():
        if qos.gpu_limit_per_user is not None:
            yield (*_QOS, name, "gpu_limit_per_user"), "no user's GPUs are counted"
        if qos.max_jobs_per_user is not None:
            yield (*_QOS, name, "max_jobs_per_user"), "no user's jobs are counted"
        if qos.gpu_limit is not None and scheduler is not None and len(scheduler.accounts) > 1:
            yield (*_QOS, name, "gpu_limit"), "it holds for each account, not for all together"


_PARTITION_WORDS: tuple[tuple[str, str], ...] = (
    ("max_nodes", "no job's nodes are counted"),
    ("default_time", "jobs without a time limit have none"),
    ("exclusive", "nodes are shared by what fits on them"),
    ("hidden", "queues are shown to all users of an account"),
    ("memory_per_cpu", "pods without a memory request have no share of it"),
    ("memory_per_gpu", "pods without a memory request have no share of it"),
    ("memory_per_node", "pods without a memory request have no share of it"),
    ("spill", "jobs don't spill to other pools"),
)


def _of_partitions(context: CheckContext) -> Iterator[tuple[PathTuple, str]]:
    scheduler = context.kubernetes
    for name, one in scheduler.partitions.items() if scheduler is not None else ():
        for key, why in _PARTITION_WORDS:
            said = getattr(one, key)
            if said is not None and said is not False:
                yield (*_PARTITIONS, name, key), why
        if one.tier != 1:
            yield (*_PARTITIONS, name, "tier"), "partitions that share nodes have one order"
        if scheduler is not None and not scheduler.kueue:
            if one.max_time is not None:
                yield (*_PARTITIONS, name, "max_time"), "a partition's time needs Kueue"
            if one.qos:
                yield (*_PARTITIONS, name, "qos"), "a partition's QOS need Kueue"


def _of_pools(context: CheckContext) -> Iterator[tuple[PathTuple, str]]:
    for name, pool in context.pools.items():
        if pool.features:
            yield ("pools", name, "features"), "nodes have labels: kubernetes.labels of the pool"
        if pool.weight is not None:
            yield ("pools", name, "weight"), "no pool's nodes are taken first"


def _of_accounts(context: CheckContext) -> Iterator[tuple[PathTuple, str]]:
    scheduler = context.kubernetes
    if scheduler is None:
        return
    preempts = any(qos.preempts for qos in scheduler.qos.values())
    for name, account in scheduler.accounts.items():
        if account.share != 1 and (preempts or not scheduler.kueue):
            why = "Kueue orders by shares or preempts, not both" if scheduler.kueue else None
            yield (*_ACCOUNTS, name, "share"), why or "shares need Kueue"


@check("GC595", summary="An account has the name of a namespace that is not its own.")
def account_named_as_namespace(context: CheckContext) -> Iterator[Finding]:
    """An account is a namespace of the same name, so it can't be called as one that exists.

    Those are `default`, `gcluster-system`, all that start with `kube-`, and the add-ons' own.
    """
    if context.kubernetes is None or not context.kubernetes.accounts:
        return
    addons = {one.namespace: one.name for one in context.catalog.addons.values()}
    for name in context.kubernetes.accounts:
        if name in _SYSTEM or name.startswith("kube-"):
            whose = "Kubernetes' own" if name != "gcluster-system" else "gcluster's own"
        elif name in addons:
            whose = f"that of the add-on {addons[name]}"
        else:
            continue
        yield Finding(
            summary=f'account "{name}" would be the namespace of that name, which is {whose}',
            path=(*_ACCOUNTS, name),
            at_key=True,
            hint="give it another name",
            relies_on=((*_ACCOUNTS, name), _TYPE),
        )


@check("GC596", summary="An add-on is not in the catalog.")
def unknown_addon(context: CheckContext) -> Iterator[Finding]:
    """`addons` names add-ons of the catalog: those that come with gcluster, and your own files'."""
    if context.kubernetes is None or not context.catalog.complete:
        return
    for index, name in enumerate(context.kubernetes.addons):
        if name not in context.catalog.addons:
            closest = context.suggest(name, context.catalog.addons)
            path: PathTuple = ("scheduler", "addons", index)
            yield Finding(
                summary=f'there is no add-on "{name}"',
                path=path,
                hint=f'did you mean "{closest}"?' if closest else "add it in a catalog file",
                relies_on=(path,),
            )


@check("GC588", summary="The chart of Prometheus is named without monitoring.")
def chart_without_monitoring(context: CheckContext) -> Iterator[Finding]:
    """`monitoring` brings kube-prometheus-stack, with values from the spec.

    By the chart's own values every pod could read its pages, and Grafana's password would be made
    by the chart. A chart of a catalog of your own has a name of its own.
    """
    if context.kubernetes is None or (context.monitoring and context.monitoring.prometheus):
        return
    for index, name in enumerate(context.kubernetes.addons):
        if name == _CHART:
            path: PathTuple = ("scheduler", "addons", index)
            yield Finding(
                summary=f"{_CHART} without monitoring: its values come from that",
                path=path,
                hint="leave it out, and write monitoring: {prometheus: true}",
                relies_on=(path, ("monitoring", "prometheus")),
            )


@check("GC537", summary="A quality of service has a name that is taken.")
def qos_named_as_priority_class(context: CheckContext) -> Iterator[Finding]:
    """A QOS is a PriorityClass of the same name, and Kubernetes keeps names with `system-`.

    `gcluster-smoke` is the class of gcluster's own AllReduce.
    """
    if context.kubernetes is None:
        return
    for name in context.kubernetes.qos:
        whose = "Kubernetes'" if name.startswith("system-") else "gcluster's"
        if name == "gcluster-smoke" or name.startswith("system-"):
            yield Finding(
                summary=f'QOS "{name}" would be the PriorityClass of that name, which is {whose} '
                "own",
                path=(*_QOS, name),
                at_key=True,
                hint="give it another name",
                relies_on=((*_QOS, name), _TYPE),
            )
