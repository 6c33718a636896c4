"""Accounts, their shares and limits, and which QOS preempts which."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.graph import cycles
from ...diagnostics import PathTuple, Severity
from ...spec import Account, Qos
from ..context import CheckContext
from ..registry import Finding, check

_ALL: PathTuple = ("scheduler", "accounts")


def _accounts(context: CheckContext) -> dict[str, Account]:
    return context.scheduler.accounts if context.scheduler is not None else {}


@check("GC522", summary="An account's default QOS is not one that it may use.")
def default_qos_not_allowed(context: CheckContext) -> Iterator[Finding]:
    """Where an account lists its `qos`, `default_qos` is one of them."""
    declared = context.declared("scheduler.qos") or frozenset()
    for name, account in _accounts(context).items():
        if not account.qos or account.default_qos in account.qos:
            continue
        if account.default_qos not in declared:
            continue  # none, or an unknown one
        path: PathTuple = (*_ALL, name, "default_qos")
        yield Finding(
            summary=f'account "{name}" takes "{account.default_qos}" by default, which it may not '
            "use",
            path=path,
            hint=f"choose one of {', '.join(account.qos)}, or add {account.default_qos} to its qos",
            relies_on=(path, (*_ALL, name, "qos")),
        )


@check("GC523", summary="Accounts are part of each other in a circle.")
def account_cycle(context: CheckContext) -> Iterator[Finding]:
    """`parent` makes a tree: the part, then what it is part of, up to an account without parent."""
    parents = {
        name: [account.parent]
        for name, account in _accounts(context).items()
        if account.parent is not None
    }
    for circle in cycles(parents):
        if len(circle) == 1:
            summary = f'account "{circle[0]}" is its own parent'
        else:
            summary = f"accounts are parts in a circle: {' in '.join([*circle, circle[0]])}"
        yield Finding(
            summary=summary,
            path=(*_ALL, circle[0], "parent"),
            hint="remove parent from the account that is the whole",
            relies_on=tuple((*_ALL, name, "parent") for name in circle),
        )


@check("GC536", summary="An account has the name of Slurm's own.")
def account_named_root(context: CheckContext) -> Iterator[Finding]:
    """`root` is the account in Slurm's database that all others are part of: it has no parent.

    An account for all others is a `parent` of another name; Kubernetes knows no such account.
    """
    if context.slurm is not None and "root" in context.slurm.accounts:
        path: PathTuple = (*_ALL, "root")
        yield Finding(
            summary='account "root" is the one that Slurm has above all others',
            path=path,
            at_key=True,
            hint="give it another name, such as everyone",
            relies_on=(path, ("scheduler", "type")),
        )


@check("GC524", summary="The quotas of an account's parts add up to more than its own.")
def quotas_exceed_parent(context: CheckContext) -> Iterator[Finding]:
    """The quota of an account holds for all its parts together.

    Parts may be promised more, since seldom all of them want it at once; then each gets its quota
    only while the others leave theirs.
    """
    accounts = _accounts(context)
    sums: dict[str, int] = {}
    for account in accounts.values():
        if account.parent is not None and account.gpu_quota is not None:
            sums[account.parent] = sums.get(account.parent, 0) + account.gpu_quota
    for name, total in sums.items():
        quota = accounts[name].gpu_quota if name in accounts else None
        if quota is not None and total > quota:
            path: PathTuple = (*_ALL, name, "gpu_quota")
            yield Finding(
                summary=f'account "{name}" may use {quota:,} GPUs, its parts {total:,} together',
                path=path,
                severity=Severity.WARNING,
                hint=f"raise it to {total}, or lower the parts' quotas",
                relies_on=((*_ALL, "*", "gpu_quota"), (*_ALL, "*", "parent")),
            )


@check("GC525", summary="A quota or limit is above the GPUs that exist.")
def quota_exceeds_gpus(context: CheckContext) -> Iterator[Finding]:
    """A quota above all GPUs of the cluster limits nothing.

    What exists is counted from the machine types and the most machines of each compute pool, burst
    pools included. Nothing is said while one of them isn't known.
    """
    limits = list(_limits(context))
    total = _gpus(context) if limits else None
    if total is None:
        return
    for who, limit, path in limits:
        if limit > total:
            yield Finding(
                summary=f"{who} may use {limit:,} GPUs, but the cluster has {total:,}",
                path=path,
                severity=Severity.WARNING,
                hint=f"at most {total}",
                relies_on=(
                    path,
                    *(("pools", "*", key) for key in ("machine", "hosts", "count", "role")),
                ),
            )


def _limits(context: CheckContext) -> Iterator[tuple[str, int, PathTuple]]:
    for name, account in _accounts(context).items():
        if account.gpu_quota is not None:
            yield f'account "{name}"', account.gpu_quota, (*_ALL, name, "gpu_quota")
    for name, qos in (context.scheduler.qos if context.scheduler is not None else {}).items():
        path: PathTuple = ("scheduler", "qos", name)
        if qos.gpu_limit is not None:
            yield f'QOS "{name}"', qos.gpu_limit, (*path, "gpu_limit")
        if qos.gpu_limit_per_user is not None:
            who = f'a user of QOS "{name}"'
            yield who, qos.gpu_limit_per_user, (*path, "gpu_limit_per_user")


def _gpus(context: CheckContext) -> int | None:
    """Return all GPUs that compute pools may have; None when one of them isn't known."""
    total = 0
    for name, pool in context.pools.items():
        if not pool.is_compute:
            continue
        machine, size = context.machine(pool), context.size(name)
        if machine is None or size is None:
            return None
        total += size * (machine.gpu.count if machine.gpu is not None else 0)
    return total


def _qos(context: CheckContext) -> dict[str, Qos]:
    return context.scheduler.qos if context.scheduler is not None else {}


def _path(name: str, *steps: str | int) -> PathTuple:
    return ("scheduler", "qos", name, *steps)


@check("GC518", summary="Qualities of service preempt each other in a circle.")
def preemption_cycle(context: CheckContext) -> Iterator[Finding]:
    """Preemption goes one way.

    In a circle two jobs would take the nodes from each other again and again, and neither would
    end.
    """
    for circle in cycles({name: qos.preempts for name, qos in _qos(context).items()}):
        if len(circle) == 1:
            summary = f'QOS "{circle[0]}" preempts itself'
        else:
            summary = f"QOS preempt in a circle: {' > '.join([*circle, circle[0]])}"
        yield Finding(
            summary=summary,
            path=_path(circle[0], "preempts"),
            hint="let only the more urgent one preempt",
            relies_on=tuple(_path(name, "preempts") for name in circle),
        )


@check("GC519", summary="A QOS is preempted whose jobs never give way.")
def preempt_target_not_preemptible(context: CheckContext) -> Iterator[Finding]:
    """A QOS whose jobs others take the nodes of says what happens to them.

    `preemptible: requeue` starts them again later, `cancel` ends them. Without it they stay, and
    the urgent job waits.
    """
    qualities = _qos(context)
    for name, qos in qualities.items():
        for index, other in enumerate(qos.preempts):
            if other == name or other not in qualities or qualities[other].preemptible != "no":
                continue
            path = _path(name, "preempts", index)
            yield Finding(
                summary=f'QOS "{name}" preempts "{other}", whose jobs never give way',
                path=path,
                hint=f'write preemptible: requeue (or cancel) in "{other}"',
                relies_on=(path, _path(other, "preemptible")),
            )


@check("GC520", summary="A QOS preempts one of higher priority.")
def preempt_target_higher_priority(context: CheckContext) -> Iterator[Finding]:
    """A job that may preempt should also precede the others in the queue.

    With the lower priority it waits behind the jobs that it could take the nodes from. Kubernetes
    preempts by priority alone, so there it would never preempt.
    """
    qualities = _qos(context)
    for name, qos in qualities.items():
        for index, other in enumerate(qos.preempts):
            if other not in qualities or qos.priority >= qualities[other].priority:
                continue
            path = _path(name, "preempts", index)
            yield Finding(
                summary=f'QOS "{name}" (priority {qos.priority:,}) preempts "{other}" '
                f"(priority {qualities[other].priority:,})",
                path=path,
                severity=Severity.WARNING,
                hint=f"give {name} a priority above {qualities[other].priority}",
                relies_on=(path, _path(name, "priority"), _path(other, "priority")),
            )


@check("GC521", summary="A QOS has a grace time, but its jobs never give way.")
def grace_without_preemption(context: CheckContext) -> Iterator[Finding]:
    """`grace` is the time a job gets to save before it gives way, so it needs `preemptible`.

    Where another QOS preempts it, GC519 says so.
    """
    preempted = {other for qos in _qos(context).values() for other in qos.preempts}
    for name, qos in _qos(context).items():
        if qos.grace is not None and qos.preemptible == "no" and name not in preempted:
            path = _path(name, "grace")
            yield Finding(
                summary=f'QOS "{name}" has a grace time, but its jobs never give way',
                path=path,
                at_key=True,
                severity=Severity.WARNING,
                hint="add preemptible: requeue, or remove grace",
                relies_on=(path, _path(name, "preemptible")),
            )
