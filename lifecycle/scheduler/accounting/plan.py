"""What would change in Slurm's accounts and maintenance windows, as values with words (pure)."""

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
    """What it changes, where its command says more: when it is run."""


class AccountingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` would change in accounts and windows, for a plan that a person reads."""

    changes: tuple[str, ...] = ()
    """In words, in the order they happen."""
    held_back: tuple[str, ...] = ()
    """Removals that wait for jobs."""
    problem: str = ""
    """Why nobody could be asked; then changes are unknown."""
    exact: tuple[str, ...] = ()
    """The changes in full, each command or object with all that it says: an approved plan is held
    to these, where words leave things out."""


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between the spec and the books."""

    changes: tuple[AccountingChange, ...]
    held_back: tuple[str, ...]

    def plan(self) -> AccountingPlan:
        """Return it in words."""
        return AccountingPlan(
            changes=tuple(change.words for change in self.changes),
            held_back=self.held_back,
            exact=tuple(c.exact or shlex.join(c.command) for c in self.changes),
        )


def balance(
    spec: ClusterSpec, inventory: ClusterInventory, accounting: AccountingState, now: int
) -> Balance:
    """Return what makes the books what the spec says; nothing where they are.

    Args:
        spec: a spec that passed its checks.
        inventory: the hosts that it asks for.
        accounting: as Slurm keeps them.
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
