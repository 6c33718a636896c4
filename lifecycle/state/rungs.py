"""On which rung each pool's nodes stand, and how far its walk has come: a fold of the events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from ...schemas.derived.hostlist import expand
from .event_types import RungTried, RunStarted
from .events import Event, is_stale


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that gave nothing, or not enough."""

    rung: str
    outcome: Literal["refused", "skipped"]
    reason: str
    time: datetime | None = None


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pool stands on its ladder."""

    site: str = ""
    standing: dict[str, str] = {}
    """Node -> rung, of the nodes that were made and are kept."""
    fresh: frozenset[str] = frozenset()
    """Of those: made in the walk that is not over."""
    loose: frozenset[str] = frozenset()
    """Made on a rung that didn't give enough: to be taken back."""
    trying: str = ""
    """Rung that is being asked; what came of it isn't known yet."""
    tried: tuple[Tried, ...] = ()
    """In the walk that is not over."""
    last: tuple[Tried, ...] = ()
    """In the walk that ended last."""
    paid: str = ""
    """Rung whose capacity block was bought: it isn't left for another."""

    def after(self, step: RungTried, time: datetime | None = None) -> Walk:
        """Return where the pool stands after one more step."""
        change = msgspec.structs.replace
        nodes = frozenset(expand(step.nodes)) if step.nodes else frozenset()
        found = self if self.site == step.site else Walk(site=step.site)
        match step.outcome:
            case "trying":
                found = change(found, trying=step.rung)
            case "held":
                new = nodes - found.standing.keys()
                standing = found.standing | dict.fromkeys(sorted(nodes), step.rung)
                found = change(found, standing=standing, fresh=found.fresh | new)
            case "refused" | "skipped":
                found = found.without_rung(step, nodes, time)
            case "bought":
                found = change(found, paid=step.rung)
            case "taken-back":
                found = found.without(nodes)
            case "again":
                found = Walk(site=step.site)
            case "given-up":
                pass
        if step.ends:
            found = change(found, fresh=frozenset(), trying="", tried=(), last=found.tried)
        return found

    def without_rung(self, step: RungTried, nodes: frozenset[str], time: datetime | None) -> Walk:
        """Return the walk after a rung that gave nothing, or not enough."""
        refused = step.outcome == "refused"
        told = Tried(
            rung=step.rung,
            outcome="refused" if refused else "skipped",
            reason=step.reason,
            time=time,
        )
        loose = frozenset(expand(step.loose)) if step.loose else frozenset()
        kept = self.without(nodes | loose)
        return msgspec.structs.replace(
            kept,
            tried=(*self.tried, told),
            loose=kept.loose | loose,
            trying="" if refused else self.trying,
        )

    def without(self, nodes: frozenset[str]) -> Walk:
        """Return the walk without nodes that are gone."""
        return msgspec.structs.replace(
            self,
            standing={node: rung for node, rung in self.standing.items() if node not in nodes},
            fresh=self.fresh - nodes,
            loose=self.loose - nodes,
        )


def walks(events: Iterable[Event]) -> dict[str, Walk]:
    """Return pool -> where it stands; from the moment that it is taken down nothing is certain."""
    newest: dict[str, int] = {}
    found: dict[str, Walk] = {}
    for event in events:
        if is_stale(event, newest):
            continue
        newest.update(event.epochs)
        match event.body:
            case RungTried() as step:
                found[step.pool] = found.get(step.pool, Walk(site=step.site)).after(
                    step, event.time
                )
            case RunStarted(command="down"):
                found.clear()
            case _:
                pass
    return found
