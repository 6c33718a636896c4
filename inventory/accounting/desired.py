"""The accounting database that a spec asks for."""

from __future__ import annotations

from collections.abc import Mapping

from ...schemas.spec import Account, ClusterSpec, Qos, SlurmScheduler
from ...schemas.spec.units import Duration
from .records import (
    NORMAL,
    ROOT,
    SMOKE_QOS,
    Accounting,
    Association,
    PreemptMode,
    QosRecord,
    accounting,
    accounts_from_the_top,
)

EVERYONE = "everyone"
"""The account of all listed users where the spec has QOS and no accounts: limits need one."""

_PREEMPT_MODES: dict[str, PreemptMode] = {"no": "cluster", "requeue": "requeue", "cancel": "cancel"}


def keeps_accounts(spec: ClusterSpec) -> bool:
    """Whether the cluster has an accounting database: it is asked for, or something needs it."""
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler):
        return False
    return slurm.accounting is not None or bool(slurm.qos or slurm.accounts)


def desired_accounting(spec: ClusterSpec) -> Accounting:
    """Return what the database must hold, for a spec that passed its checks.

    Every account says itself what its jobs may ask for, so that a change of one touches no other:
    its list; without one what its parent's jobs may, and at the top every QOS of the spec. A job
    that asks for none gets `default_qos`; without it the parent's default where that is allowed,
    else "normal" where that is allowed, else the first of the account's list. A user of several
    accounts is charged by default to the first of them by name.
    """
    qos = {name: qos_record(name, said) for name, said in spec.scheduler.qos.items()}
    qos.setdefault(NORMAL, QosRecord(name=NORMAL))
    every = tuple(sorted(qos))
    qos.setdefault(SMOKE_QOS, QosRecord(name=SMOKE_QOS))
    accounts = spec.scheduler.accounts
    members = {name: account.users for name, account in accounts.items()}
    if not accounts:
        members = {EVERYONE: [user.name for user in spec.local_users]}
    made = _accounts(accounts, every)
    if not accounts and members[EVERYONE]:
        made[EVERYONE] = Association(account=EVERYONE, parent=ROOT, qos=every, default_qos=NORMAL)
    associations = [
        *made.values(),
        *(
            Association(account=name, user=user)
            for name, users in members.items()
            for user in users
            if user != ROOT
        ),
    ]
    defaults: dict[str, str] = {}
    for name in sorted(members):
        for user in members[name]:
            if user != ROOT:
                defaults.setdefault(user, name)
    return accounting(qos, {one.key: one for one in associations}, defaults)


def qos_record(name: str, said: Qos) -> QosRecord:
    """Return a QOS as the database holds it."""
    return QosRecord(
        name=name,
        priority=said.priority,
        preempts=tuple(sorted(set(said.preempts))),
        preempt_mode=_PREEMPT_MODES[said.preemptible],
        grace_s=0 if said.grace is None else int(said.grace.value),
        gpu_limit=said.gpu_limit,
        gpu_limit_per_user=said.gpu_limit_per_user,
        max_time_min=whole_minutes(said.max_time),
        max_jobs_per_user=said.max_jobs_per_user,
    )


def whole_minutes(time: Duration | None) -> int | None:
    """Return a limit in minutes, rounded up as Slurm counts; None: unlimited."""
    return None if time is None else max(1, -int(-time.value // 60))


def _accounts(said: Mapping[str, Account], every: tuple[str, ...]) -> dict[str, Association]:
    """Return the accounts with root, each with its own list of QOS."""
    roots = tuple(sorted({*every, SMOKE_QOS}))
    made = {ROOT: Association(account=ROOT, qos=roots, default_qos=NORMAL)}
    tree = {n: Association(account=n, parent=account.parent or ROOT) for n, account in said.items()}
    for name in accounts_from_the_top(tree):
        account, parent = said[name], made[tree[name].parent]
        allowed = tuple(sorted(set(account.qos))) or (every if parent is made[ROOT] else parent.qos)
        made[name] = Association(
            account=name,
            parent=parent.account,
            share=account.share,
            gpu_quota=account.gpu_quota,
            qos=allowed,
            default_qos=account.default_qos
            or next(
                (one for one in (parent.default_qos, NORMAL) if one in allowed),
                account.qos[0] if account.qos else allowed[0],
            ),
        )
    return made
