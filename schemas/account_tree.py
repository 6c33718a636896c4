"""Accounts and the accounts that are part of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .spec import Account


def with_parts(accounts: Mapping[str, Account], named: Iterable[str]) -> frozenset[str]:
    """Return the accounts that are named, and all that are part of them, however far below.

    Args:
        accounts: all of the spec.
        named: some of them.
    """
    found = set(named)
    for name in accounts:
        trail = [name]
        while trail[-1] not in found:
            parent = accounts[trail[-1]].parent
            if parent is None or parent not in accounts or parent in trail:
                break
            trail.append(parent)
        else:
            found.update(trail)
    return frozenset(found)
