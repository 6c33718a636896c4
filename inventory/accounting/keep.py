"""What a removal must leave alone for now: users with jobs, and whatever their jobs run under.

slurmdbd itself refuses to remove an association that jobs run under, but not a QOS of theirs, and
it says so in the middle of the commands. Here it is known before the first.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from .changes import HeldBack
from .records import (
    NORMAL,
    ROOT,
    Accounting,
    Association,
    AssociationKey,
    QosRecord,
    accounting,
    effective_qos,
)


class JobOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose job it is, for a job that hasn't ended: running, pending or suspended."""

    user: str
    account: str
    qos: str
    partition: str = ""
    """Of the association, not of the job: "" for nearly all."""


def kept(
    desired: Accounting, actual: Accounting, jobs: Collection[JobOwner]
) -> tuple[Accounting, tuple[HeldBack, ...]]:
    """Return what the database must hold after this run, and which removals wait.

    A member with jobs stays, with the accounts above; a QOS stays while jobs are in it or what
    stays needs it. All else is as desired.
    """
    associations = {one.key: one for one in desired.associations}
    defaults = dict(desired.default_accounts)
    there = actual.accounts
    waiting: list[HeldBack] = []
    for member in _members_with_jobs(actual, associations, jobs):
        count = sum((job.user, job.account) == (member.user, member.account) for job in jobs)
        waiting.append(_held(f"user {member.user} of account {member.account}", count))
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
            waiting.append(HeldBack(what=f"account {name}", reason=f"{member.user} is in it"))
            name = account.parent
    for user, charged in defaults.items():
        if AssociationKey(charged, user, "") not in associations:
            defaults[user] = min(key.account for key in associations if key.user == user)
    found, waiting_qos = _kept_qos(desired, actual, associations.values(), jobs)
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
    """Return a member whose jobs may ask for what its account's may: one list less to keep."""
    return msgspec.structs.replace(member, qos=(), default_qos="")


def _kept_qos(
    desired: Accounting,
    actual: Accounting,
    associations: Collection[Association],
    jobs: Collection[JobOwner],
) -> tuple[dict[str, QosRecord], list[HeldBack]]:
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
        _held(f"QOS {one.name}", sum(job.qos == one.name for job in jobs)) for one in waiting
    ]


def _held(what: str, jobs: int) -> HeldBack:
    if not jobs:
        return HeldBack(what=what, reason="what stays needs it")
    return HeldBack(what=what, reason=f"{jobs:,} job{'' if jobs == 1 else 's'}")


BUILT_IN = frozenset({ROOT, NORMAL})
"""Names of the account and the QOS that are never removed."""
