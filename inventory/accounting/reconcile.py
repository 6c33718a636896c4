"""Commands that bring the accounting database to the spec, in the order that slurmdbd accepts.

The order, and why (seen with Slurm 24.11.5):
1. QOS are added and changed, those that others preempt first: names must exist.
2. Accounts are added and moved from the top down: no account is ever put below its own part.
3. Accounts whose jobs may request less than before get both lists first: slurmdbd refuses what
   leaves any member or part with a default QOS that it may not request.
4. Members are added and changed, then default accounts: a user's default account can't be removed.
5. Accounts get their lists from the bottom up, the narrowed ones now too.
6. Members, then accounts from the bottom up, then QOS are removed, the preempting first. An account
   that still has parts must not be removed: slurmdbd accepts the command, and its tree is broken
   from then on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Literal, TypeAlias

import msgspec

from .desired import BUILT_IN, DeferredRemoval, JobOwner, retained
from .records import (
    ROOT,
    Accounting,
    Association,
    QosRecord,
    Setting,
    accounts_from_the_top,
    association_settings,
    differing,
    effective_qos,
    qos_settings,
)


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, and what waits."""

    changes: tuple[AccountingChange, ...]
    held_back: tuple[DeferredRemoval, ...]
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
    result, held_back = retained(desired, actual, jobs)
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
    """Yield what adds, moves and widens accounts: no job may request less after it."""
    there = _existing_accounts(actual)
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


def _existing_accounts(actual: Accounting) -> dict[str, Association]:
    """Return the accounts; root is in every database that has its cluster."""
    return {ROOT: Association(account=ROOT), **actual.accounts}


def _widened(there: dict[str, Association], one: Association) -> Association:
    """Return an account's intermediate form: its jobs may request all of before and after.

    It has an explicit default then, so that moving it below another account changes neither.
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
    there = _existing_accounts(actual)
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
    message = ", ".join(setting.words for setting in settings)
    return AccountingChange(
        verb=verb,
        entity=entity,
        names=(name,),
        where=where,
        settings=tuple((setting.key, setting.value) for setting in settings),
        words=f"{verb} {label} {name}{f': {message}' if message else ''}",
    )


Verb: TypeAlias = Literal["add", "modify", "remove"]
Entity: TypeAlias = Literal["qos", "account", "user"]

SACCTMGR = ("sacctmgr", "--immediate", "--quiet")
"""Prompts for nothing and prints errors only."""


class AccountingChange(msgspec.Struct, frozen=True, kw_only=True):
    """One command. The caller stops at the first that fails: the next run continues."""

    verb: Verb
    entity: Entity
    names: tuple[str, ...]
    """What is changed; several users at once, as sacctmgr takes them."""
    where: tuple[tuple[str, str], ...] = ()
    """Further conditions: cluster, account, partition."""
    settings: tuple[tuple[str, str], ...] = ()
    """Keys and values as sacctmgr writes them; -1 and "" take a limit away."""
    words: str
    """For the plan: one clause without a full stop."""

    @property
    def command(self) -> tuple[str, ...]:
        """The argument list to run, without a shell."""
        names = f"name={','.join(self.names)}"
        conditions = [f"{key}={value}" for key, value in self.where]
        settings = [f"{key}={value}" for key, value in self.settings]
        if self.verb == "add":
            return (*SACCTMGR, "add", self.entity, names, *conditions, *settings)
        if self.verb == "remove":
            return (*SACCTMGR, "remove", self.entity, "where", names, *conditions)
        head = (*SACCTMGR, "modify", self.entity, "where", names, *conditions)
        return (*head, "set", *settings)


USERS_AT_ONCE = 200
"""Users in one command: a line that a shell, a log and a reader still take."""
MAX_NAMED_USERS = 8
"""Most users that a change's text names; the others are counted."""

_Where = tuple[tuple[str, str], ...]


def added_members(
    result: Accounting, actual: Accounting, here: tuple[str, str]
) -> Iterator[AccountingChange]:
    """Yield what adds and changes members, and what sets users' default accounts.

    A user's first account becomes the default one, so that one is added first.
    """
    there, known = actual.members, dict(actual.default_accounts)
    defaults = dict(result.default_accounts)
    first: dict[tuple[_Where, tuple[Setting, ...]], list[str]] = defaultdict(list)
    further: dict[tuple[_Where, tuple[Setting, ...]], list[str]] = defaultdict(list)
    changed: dict[tuple[_Where, tuple[Setting, ...]], list[str]] = defaultdict(list)
    for key, one in sorted(result.members.items()):
        before = there.get(key, Association(account=key.account, user=key.user))
        settings = differing(association_settings(before), association_settings(one))
        where = _where(one, here)
        if key in there:
            if settings:
                changed[where, settings].append(key.user)
        elif key.user not in known and defaults[key.user] == key.account:
            first[where, settings].append(key.user)
        else:
            further[where, settings].append(key.user)
    for verb, group in (("add", first), ("add", further), ("modify", changed)):
        yield from _changes("add" if verb == "add" else "modify", group)
    yield from _defaults(defaults, known, here)


def removed_members(
    result: Accounting, actual: Accounting, here: tuple[str, str]
) -> Iterator[AccountingChange]:
    """Yield what removes members; who is in no account any more goes in one command for all."""
    staying = {key.user for key in result.members}
    leaving: dict[tuple[_Where, tuple[Setting, ...]], list[str]] = defaultdict(list)
    gone: set[str] = set()
    for key, one in sorted(actual.members.items()):
        if key.user not in staying:
            gone.add(key.user)
        elif key not in result.members:
            leaving[_where(one, here), ()].append(key.user)
    yield from _changes("remove", leaving)
    yield from _changes("remove", {((here,), ()): sorted(gone)} if gone else {})


def _where(one: Association, here: tuple[str, str]) -> _Where:
    partition = (("partition", one.partition),) if one.partition else ()
    return (here, ("account", one.account), *partition)


def _defaults(
    wanted: dict[str, str], known: dict[str, str], here: tuple[str, str]
) -> Iterator[AccountingChange]:
    """Yield what changes the default accounts of users that were there before."""
    by_account: dict[str, list[str]] = defaultdict(list)
    for user, account in sorted(wanted.items()):
        if user in known and known[user] != account:
            by_account[account].append(user)
    for account, users in sorted(by_account.items()):
        for some in _batches(users):
            yield AccountingChange(
                verb="modify",
                entity="user",
                names=some,
                where=(here,),
                settings=(("defaultaccount", account),),
                words=f"charge {_user_list(some)} to account {account} by default",
            )


def _changes(
    verb: Verb, groups: dict[tuple[_Where, tuple[Setting, ...]], list[str]]
) -> Iterator[AccountingChange]:
    """Yield one change for each group of users that have the same done to them."""
    for (where, settings), users in groups.items():
        message = ", ".join(setting.words for setting in settings)
        account = dict(where).get("account")
        place = {"add": "to", "modify": "of", "remove": "from"}[verb]
        there = f" {place} account {account}" if account else " from the database"
        for some in _batches(users):
            yield AccountingChange(
                verb=verb,
                entity="user",
                names=some,
                where=where,
                settings=tuple((setting.key, setting.value) for setting in settings),
                words=f"{verb} {_user_list(some)}{there}{f': {message}' if message else ''}",
            )


def _batches(users: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(users), USERS_AT_ONCE):
        yield tuple(users[start : start + USERS_AT_ONCE])


def _user_list(users: tuple[str, ...]) -> str:
    named = ", ".join(users[:MAX_NAMED_USERS])
    more = len(users) - MAX_NAMED_USERS
    kind = "user" if len(users) == 1 else "users"
    return f"{kind} {named}{f' and {more:,} more' if more > 0 else ''}"
