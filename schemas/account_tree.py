"""Accounts and the accounts that are part of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .spec import Account


class AccountTree:
    """The accounts of a spec by their parents, read once and asked for many of them."""

    def __init__(self, accounts: Mapping[str, Account]) -> None:
        """Take all accounts of the spec; a parent that isn't among them is no parent."""
        self._parts: dict[str, list[str]] = {}
        for name, account in accounts.items():
            if account.parent is not None and account.parent in accounts:
                self._parts.setdefault(account.parent, []).append(name)

    def with_parts(self, named: Iterable[str]) -> frozenset[str]:
        """Return the accounts that are named, and all that are part of them, however far below."""
        pending = list(named)
        found = set(pending)
        while pending:
            below = [n for n in self._parts.get(pending.pop(), ()) if n not in found]
            found.update(below)
            pending += below
        return frozenset(found)
