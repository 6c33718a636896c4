"""Users in accounts: who comes, who is changed, who goes, many in one command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from .changes import AccountingChange, Verb
from .records import Accounting, Association
from .settings import Setting, association_settings, differing

USERS_AT_ONCE = 200
"""Users in one command: a line that a shell, a log and a reader still take."""
USERS_SAID = 8
"""Users named in the words of a change; the others are counted."""

_Where = tuple[tuple[str, str], ...]


def added_members(
    result: Accounting, actual: Accounting, here: tuple[str, str]
) -> Iterator[AccountingChange]:
    """Yield what adds and changes members, and what makes an account somebody's default.

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
        for some in _in_parts(users):
            yield AccountingChange(
                verb="modify",
                entity="user",
                names=some,
                where=(here,),
                settings=(("defaultaccount", account),),
                words=f"charge {_said(some)} to account {account} by default",
            )


def _changes(
    verb: Verb, groups: dict[tuple[_Where, tuple[Setting, ...]], list[str]]
) -> Iterator[AccountingChange]:
    """Yield one change for each group of users that have the same done to them."""
    for (where, settings), users in groups.items():
        said = ", ".join(setting.words for setting in settings)
        account = dict(where).get("account")
        place = {"add": "to", "modify": "of", "remove": "from"}[verb]
        there = f" {place} account {account}" if account else " from the database"
        for some in _in_parts(users):
            yield AccountingChange(
                verb=verb,
                entity="user",
                names=some,
                where=where,
                settings=tuple((setting.key, setting.value) for setting in settings),
                words=f"{verb} {_said(some)}{there}{f': {said}' if said else ''}",
            )


def _in_parts(users: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(users), USERS_AT_ONCE):
        yield tuple(users[start : start + USERS_AT_ONCE])


def _said(users: tuple[str, ...]) -> str:
    named = ", ".join(users[:USERS_SAID])
    more = len(users) - USERS_SAID
    kind = "user" if len(users) == 1 else "users"
    return f"{kind} {named}{f' and {more:,} more' if more > 0 else ''}"
