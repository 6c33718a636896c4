"""The desired accounting database of a spec, and what must not be removed yet.

slurmdbd itself refuses to remove an association that jobs run under, but not a QOS of theirs, and
its refusal comes in the middle of the commands. Here it is known before the first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from ...schemas.spec import Account, ClusterSpec, Qos, SlurmScheduler
from ...schemas.spec.units import Duration
from .records import (
    NORMAL,
    ROOT,
    SMOKE_MEMBER,
    SMOKE_QOS,
    Accounting,
    Association,
    AssociationKey,
    PreemptMode,
    QosRecord,
    accounting,
    accounts_from_the_top,
    effective_qos,
)

EVERYONE = "everyone"
"""The account of all listed users where the spec has QOS and no accounts: limits need one."""

_PREEMPT_MODES: dict[str, PreemptMode] = {"no": "cluster", "requeue": "requeue", "cancel": "cancel"}


def keeps_accounts(spec: ClusterSpec) -> bool:
    """Whether the cluster has an accounting database: the spec has one, or something needs it."""
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler):
        return False
    return slurm.accounting is not None or bool(slurm.qos or slurm.accounts)


def desired_accounting(spec: ClusterSpec) -> Accounting:
    """Return what the database must hold, for a spec that passed its checks.

    Every account has an explicit list of the QOS of its jobs, so that a change of one affects no
    other: its own list; without one its parent's, and at the top every QOS of the spec. A job that
    requests none gets `default_qos`; without it the parent's default where that is allowed, else
    "normal" where that is allowed, else the first of the account's list. A user of several accounts
    is charged by default to the first of them by name.
    """
    qos = {name: qos_record(name, qos_spec) for name, qos_spec in spec.scheduler.qos.items()}
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
        Association(account=ROOT, user=SMOKE_MEMBER),
        *(
            Association(account=name, user=user)
            for name, users in members.items()
            for user in users
            if user != ROOT
        ),
    ]
    defaults: dict[str, str] = {SMOKE_MEMBER: ROOT}
    for name in sorted(members):
        for user in members[name]:
            if user != ROOT:
                defaults.setdefault(user, name)
    return accounting(qos, {one.key: one for one in associations}, defaults)


def qos_record(name: str, qos: Qos) -> QosRecord:
    """Return a QOS as the database holds it."""
    return QosRecord(
        name=name,
        priority=qos.priority,
        preempts=tuple(sorted(set(qos.preempts))),
        preempt_mode=_PREEMPT_MODES[qos.preemptible],
        grace_s=0 if qos.grace is None else int(qos.grace.value),
        gpu_limit=qos.gpu_limit,
        gpu_limit_per_user=qos.gpu_limit_per_user,
        max_time_min=whole_minutes(qos.max_time),
        max_jobs_per_user=qos.max_jobs_per_user,
    )


def whole_minutes(time: Duration | None) -> int | None:
    """Return a limit in minutes, rounded up as Slurm counts; None: unlimited."""
    return None if time is None else max(1, -int(-time.value // 60))


def _accounts(accounts: Mapping[str, Account], every: tuple[str, ...]) -> dict[str, Association]:
    """Return the accounts with root, each with its own list of QOS."""
    roots = tuple(sorted({*every, SMOKE_QOS}))
    made = {ROOT: Association(account=ROOT, qos=roots, default_qos=NORMAL)}
    tree = {
        n: Association(account=n, parent=account.parent or ROOT) for n, account in accounts.items()
    }
    for name in accounts_from_the_top(tree):
        account, parent = accounts[name], made[tree[name].parent]
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


class DeferredRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """A removal that waits, because jobs would lose what they run under."""

    what: str
    """Such as: user ada of account nlp."""
    reason: str
    """Such as: 2 jobs."""

    @property
    def words(self) -> str:
        """For the plan."""
        return f"keep {self.what} until a later run: {self.reason}"


class JobOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose job it is, for a job that hasn't ended: running, pending or suspended."""

    user: str
    account: str
    qos: str
    partition: str = ""
    """Of the association, not of the job: "" for nearly all."""


def retained(
    desired: Accounting, actual: Accounting, jobs: Collection[JobOwner]
) -> tuple[Accounting, tuple[DeferredRemoval, ...]]:
    """Return what the database must hold after this run, and which removals wait.

    A member with jobs stays, with the accounts above; a QOS stays while jobs are in it or what
    stays needs it. All else is as desired.
    """
    associations = {one.key: one for one in desired.associations}
    defaults = dict(desired.default_accounts)
    there = actual.accounts
    waiting: list[DeferredRemoval] = []
    for member in _members_with_jobs(actual, associations, jobs):
        count = sum((job.user, job.account) == (member.user, member.account) for job in jobs)
        waiting.append(_blocking_jobs(f"user {member.user} of account {member.account}", count))
        associations[member.key] = _without_own_qos(member)
        defaults.setdefault(
            member.user, dict(actual.default_accounts).get(member.user, member.account)
        )
        name = member.account
        while name in there and AssociationKey(name, "", "") not in associations:
            qos, default = effective_qos(there, name)
            account = msgspec.structs.replace(
                there[name],
                qos=tuple(sorted(qos)),
                default_qos=default if default in qos else _a_default(qos),
            )
            associations[account.key] = account
            waiting.append(
                DeferredRemoval(what=f"account {name}", reason=f"{member.user} is in it")
            )
            name = account.parent
    for user, charged in defaults.items():
        if AssociationKey(charged, user, "") not in associations:
            defaults[user] = min(key.account for key in associations if key.user == user)
    found, waiting_qos = _retained_qos(desired, actual, associations.values(), jobs)
    return accounting(found, associations, defaults), (*waiting, *waiting_qos)


def _a_default(qos: tuple[str, ...]) -> str:
    return NORMAL if NORMAL in qos else qos[0]


def _members_with_jobs(
    actual: Accounting, wanted: Collection[AssociationKey], jobs: Collection[JobOwner]
) -> list[Association]:
    """Return the members that would go while they have jobs, by name."""
    busy = {(job.account, job.user) for job in jobs}
    return [
        one
        for key, one in sorted(actual.members.items())
        if key not in wanted and (key.account, key.user) in busy
    ]


def _without_own_qos(member: Association) -> Association:
    """Return a member with its account's QOS list: one list less to maintain."""
    return msgspec.structs.replace(member, qos=(), default_qos="")


def _retained_qos(
    desired: Accounting,
    actual: Accounting,
    associations: Collection[Association],
    jobs: Collection[JobOwner],
) -> tuple[dict[str, QosRecord], list[DeferredRemoval]]:
    """Return the QOS that stay by name, and those that wait to go."""
    found = desired.qos_by_name
    needed = {name for one in associations for name in (*one.qos, one.default_qos)}
    in_use = {job.qos for job in jobs}
    waiting = [
        one for one in actual.qos if one.name not in found and one.name in {*needed, *in_use}
    ]
    stays = {*found, *(one.name for one in waiting)}
    for one in waiting:
        preempts = tuple(name for name in one.preempts if name in stays)
        found[one.name] = msgspec.structs.replace(one, preempts=preempts)
    return found, [
        _blocking_jobs(f"QOS {one.name}", sum(job.qos == one.name for job in jobs))
        for one in waiting
    ]


def _blocking_jobs(what: str, jobs: int) -> DeferredRemoval:
    if not jobs:
        return DeferredRemoval(what=what, reason="what stays needs it")
    return DeferredRemoval(what=what, reason=f"{jobs:,} job{'' if jobs == 1 else 's'}")


BUILT_IN = frozenset({ROOT, NORMAL})
"""Names of the account and the QOS that are never removed."""
