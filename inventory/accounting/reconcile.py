"""Make the accounting database what the spec says: the commands, in the order slurmdbd takes them.

The order, and why (seen with Slurm 24.11.5):
1. QOS are added and changed, those that others preempt first: names must exist.
2. Accounts are added and moved from the top down: no account is ever put below its own part.
3. Accounts whose jobs may ask for less than before may ask for both first: slurmdbd refuses what
   leaves any member or part with a default QOS that it may not ask for.
4. Members are added and changed, then default accounts: a user's default account can't be removed.
5. Accounts get their lists from the bottom up, the narrowed ones now too.
6. Members, then accounts from the bottom up, then QOS are removed, the preempting first. An account
   that still has parts must not go: slurmdbd takes the order, and its tree is broken from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from .changes import AccountingChange, Entity, HeldBack, Verb
from .keep import BUILT_IN, JobOwner, kept
from .member_changes import added_members, removed_members
from .records import (
    ROOT,
    Accounting,
    Association,
    QosRecord,
    accounts_from_the_top,
    effective_qos,
)
from .settings import (
    Setting,
    association_settings,
    differing,
    qos_settings,
)


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, and what waits."""

    changes: tuple[AccountingChange, ...]
    held_back: tuple[HeldBack, ...]
    result: Accounting
    """What the database holds once all has run."""


def reconcile(
    desired: Accounting, actual: Accounting, cluster: str, jobs: Collection[JobOwner] = ()
) -> Reconciliation:
    """Return the changes that make `actual` what is desired; none where it is already.

    Args:
        desired: of `desired_accounting`.
        actual: as read from the database.
        cluster: its name: QOS belong to the database, all else to one cluster of it.
        jobs: those that haven't ended; what they run under isn't removed.
    """
    result, held_back = kept(desired, actual, jobs)
    here = ("cluster", cluster)
    changes = [
        *_qos(result, actual),
        *_accounts(result, actual, here),
        *added_members(result, actual, here),
        *_final_lists(result, actual, here),
        *removed_members(result, actual, here),
        *_removed_accounts(result, actual, here),
        *_removed_qos(result, actual),
    ]
    return Reconciliation(changes=tuple(changes), held_back=held_back, result=result)


def _qos(result: Accounting, actual: Accounting) -> Iterator[AccountingChange]:
    there = actual.qos_by_name
    for one in _preempted_first(result.qos_by_name):
        before = there.get(one.name, QosRecord(name=one.name))
        settings = differing(qos_settings(before), qos_settings(one))
        if one.name not in there:
            yield _change("add", "qos", one.name, (), settings)
        elif settings:
            yield _change("modify", "qos", one.name, (), settings)


def _preempted_first(qos: dict[str, QosRecord]) -> Iterator[QosRecord]:
    """Yield the QOS, each after those that it preempts; a circle is cut somewhere."""
    seen: set[str] = set()

    def visit(name: str) -> Iterator[QosRecord]:
        if name in qos and name not in seen:
            seen.add(name)
            for other in qos[name].preempts:
                yield from visit(other)
            yield qos[name]

    for name in sorted(qos):
        yield from visit(name)


def _accounts(
    result: Accounting, actual: Accounting, here: tuple[str, str]
) -> Iterator[AccountingChange]:
    """Yield what adds, moves and widens accounts: no job may ask for less after it."""
    there = _there(actual)
    wanted = result.accounts
    for name in accounts_from_the_top(wanted):
        one = wanted[name]
        before = there.get(name, Association(account=name))
        after = _widened(there, one) if name in there else one
        settings = differing(association_settings(before), association_settings(after))
        if name not in there:
            yield _change("add", "account", name, (here,), settings)
        elif settings:
            yield _change("modify", "account", name, (here,), settings)


def _there(actual: Accounting) -> dict[str, Association]:
    """Return the accounts; root is in every database that knows its cluster."""
    return {ROOT: Association(account=ROOT), **actual.accounts}


def _widened(there: dict[str, Association], one: Association) -> Association:
    """Return an account as it is on the way: its jobs may ask for all of before and after.

    It says its default itself then, so that moving it below another account changes neither.
    """
    had, default = effective_qos(there, one.account)
    return msgspec.structs.replace(
        one,
        qos=tuple(sorted({*had, *one.qos})),
        default_qos=default if default in had else one.default_qos,
    )


def _final_lists(
    result: Accounting, actual: Accounting, here: tuple[str, str]
) -> Iterator[AccountingChange]:
    """Yield what narrows the lists of accounts and sets their defaults, the lowest first."""
    there = _there(actual)
    wanted = result.accounts
    for name in reversed(accounts_from_the_top(wanted)):
        if name in there:
            before, after = _widened(there, wanted[name]), wanted[name]
            settings = differing(association_settings(before), association_settings(after))
            if settings:
                yield _change("modify", "account", name, (here,), settings)


def _removed_accounts(
    result: Accounting, actual: Accounting, here: tuple[str, str]
) -> Iterator[AccountingChange]:
    there, wanted = actual.accounts, result.accounts
    for name in reversed(accounts_from_the_top(there)):
        if name not in wanted and name not in BUILT_IN:
            yield _change("remove", "account", name, (here,), ())


def _removed_qos(result: Accounting, actual: Accounting) -> Iterator[AccountingChange]:
    wanted = result.qos_by_name
    for one in reversed([*_preempted_first(actual.qos_by_name)]):
        if one.name not in wanted and one.name not in BUILT_IN:
            yield _change("remove", "qos", one.name, (), ())


def _change(
    verb: Verb,
    entity: Entity,
    name: str,
    where: tuple[tuple[str, str], ...],
    settings: tuple[Setting, ...],
) -> AccountingChange:
    label = {"qos": "QOS", "account": "account"}[entity]
    said = ", ".join(setting.words for setting in settings)
    return AccountingChange(
        verb=verb,
        entity=entity,
        names=(name,),
        where=where,
        settings=tuple((setting.key, setting.value) for setting in settings),
        words=f"{verb} {label} {name}{f': {said}' if said else ''}",
    )
