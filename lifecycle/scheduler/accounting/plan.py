"""Planned changes of Slurm's accounts and maintenance windows, as values with texts (pure)."""

from __future__ import annotations

import shlex

import msgspec

from ....inventory.accounting.desired import desired_accounting, keeps_accounts
from ....inventory.accounting.reconcile import reconcile
from ....inventory.hosts import ClusterInventory
from ....inventory.reservations import desired_reservations, reconcile_reservations
from ....schemas.spec import ClusterSpec
from .sacctmgr_state import AccountingState


class AccountingChange(msgspec.Struct, frozen=True, kw_only=True):
    """One command of Slurm's that changes its books."""

    command: tuple[str, ...]
    words: str
    exact: str = ""
    """What it changes, where the command has more details: when it is run."""


class AccountingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` would change in accounts and windows, for a plan that a person reads."""

    changes: tuple[str, ...] = ()
    """As text, in the order they happen."""
    held_back: tuple[str, ...] = ()
    """Removals that wait for jobs."""
    problem: str = ""
    """Why it could not be queried; then changes are unknown."""
    exact: tuple[str, ...] = ()
    """The changes in full, each command or object with all details: an approved plan is compared by
    these, where texts leave details out."""


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between the spec and the books."""

    changes: tuple[AccountingChange, ...]
    held_back: tuple[str, ...]

    def plan(self) -> AccountingPlan:
        """Return the text of it."""
        return AccountingPlan(
            changes=tuple(change.words for change in self.changes),
            held_back=self.held_back,
            exact=tuple(c.exact or shlex.join(c.command) for c in self.changes),
        )


def balance(
    spec: ClusterSpec, inventory: ClusterInventory, accounting: AccountingState, now: int
) -> Balance:
    """Return the changes that bring Slurm's accounts to the spec; none where they match.

    Args:
        spec: a spec that passed its checks.
        inventory: its hosts.
        accounting: their state in Slurm.
        now: seconds since 1970, UTC.
    """
    found: list[AccountingChange] = []
    held: tuple[str, ...] = ()
    if keeps_accounts(spec):
        desired = desired_accounting(spec)
        result = reconcile(desired, accounting.accounting, spec.name, accounting.jobs)
        found += [AccountingChange(command=c.command, words=c.words) for c in result.changes]
        held = tuple(one.words for one in result.held_back)
    compute = {
        name: inventory.in_pool(name)
        for name, pool in sorted(spec.pools.items())
        if pool.is_compute
    }
    windows = desired_reservations(spec, compute, now)
    found += [
        AccountingChange(command=change.command, words=change.words, exact=change.exact)
        for change in reconcile_reservations(windows, accounting.reservations, now)
    ]
    return Balance(changes=tuple(found), held_back=held)
