"""A double of what a process of the model finds out about itself and others while it runs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

import msgspec

from gcluster.lifecycle.state import lock as locks
from gcluster.lifecycle.state.process import ProcessIdentity, this_process
from gcluster.lifecycle.up import run
from gcluster.stacks.simulated import fleet

from .places import Machines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gcluster.stacks.provider import SiteContext

    from .world import World


@contextmanager
def as_processes_of(world: World) -> Iterator[None]:
    """Have the lifecycle live in this world while the body runs."""

    def identity() -> ProcessIdentity:
        return msgspec.structs.replace(this_process(), pid=world.at_work(), started="")

    def is_gone(who: ProcessIdentity) -> bool:
        return who.pid > 0 and world.processes[who.pid - 1].is_known_dead

    def machines(context: SiteContext) -> Machines:
        process = world.owner(context.ledger)
        return Machines(world, process, fleet.described(context), context.cluster_id)

    def one_by_one(emit: Callable[..., None], items: Iterable[tuple[str, ...]]) -> None:
        for item in items:
            emit(*item)

    with ExitStack() as stack:
        stack.enter_context(patch.object(locks, "this_process", identity))
        stack.enter_context(patch.object(ProcessIdentity, "is_gone", is_gone))
        stack.enter_context(patch.object(run, "commit_of", lambda _: ""))  # a process each
        stack.enter_context(patch.object(fleet, "cloud", machines))
        stack.enter_context(patch.object(fleet, "_at_once", one_by_one))
        yield
