"""Frees a site of a run that was killed: its lock, and the lock of the stack it worked on."""

from __future__ import annotations

import msgspec

from ...schemas.diagnostics import Diagnostic
from ...stacks.provider import ProviderError
from ..state import LockRecord, acquire
from ..state import unlock as end_lock
from .cluster import Cluster
from .sites import open_sites


class Unlocked(msgspec.Struct, frozen=True, kw_only=True):
    """What `unlock` did."""

    lock: str
    """As it was named: SITE/EPOCH."""
    record: LockRecord | None
    """The former holder; None: the record is damaged, so it is unknown."""
    stack_freed: bool = False
    """The site's stack was freed too; False: it has none."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Why the stack could not be freed, where it has one."""


def unlock(cluster: Cluster, site: str, epoch: int) -> Unlocked:
    """Break a lock whose holder is unreachable, then release the stack that the holder worked on.

    The site is held meanwhile, so that the stack of a run that began just now is left alone.

    Raises:
        LifecycleError: that epoch isn't the newest or isn't held; or another run took the site.
    """
    unlocked = Unlocked(lock=f"{site}/{epoch}", record=end_lock(cluster.store, site, epoch))
    for opened in open_sites(cluster):
        if opened.name == site and opened.provider.has_stack:
            with acquire(cluster.store, (site,), reason="unlock"):
                try:
                    freed = opened.provider.cancel(opened.context)
                except ProviderError as error:
                    return msgspec.structs.replace(unlocked, diagnostics=error.diagnostics)
            return msgspec.structs.replace(unlocked, stack_freed=freed)
    return unlocked
