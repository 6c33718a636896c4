"""Damage of a state, and its repair, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..console import Console, printable
from .quantities import plural

if TYPE_CHECKING:
    from ...lifecycle.state.check import Damage, StateCheck
    from ...lifecycle.state.repair import StateRepair


def check_text(check: StateCheck, console: Console) -> str:
    """Return the check as text: the verdict first, the next command last."""
    many = plural(check.objects, "object")
    if not check.damage:
        return f"{check.target}: {many}, none of them damaged"
    verdict = f"{check.target}: {len(check.damage)} of {many} damaged or missing"
    lines = [console.paint("error", verdict), *damage_lines(check.damage, console)]
    lines.append(f"repair what can be: gcluster state repair {check.target}")
    return console.plain("\n".join(lines))


def damage_lines(damage: Iterable[Damage], console: Console) -> Iterator[str]:
    """Yield two lines for each damaged object."""
    for item in damage:
        mark = console.paint("error", "!")
        yield f"  {mark} {item.what} {printable(item.key)}: {printable(item.problem)}"
        yield f"      {item.remedy}: {item.then}"


def repair_text(repair: StateRepair, console: Console) -> str:
    """Return the repair as text: what was done, what is left, the next command."""
    done = [f"  {printable(key)}: {printable(what)}" for key, what in repair.done.items()]
    done += [f"  in the ledger again: {printable(each)}" for each in repair.adopted]
    target = repair.target
    if repair.left:
        verdict = f"{target}: {plural(len(repair.left), 'object')} can't be rebuilt"
        give_up = f"restore them from a backup, or: gcluster state repair {target} --discard KEY"
        lines = [*done, console.paint("error", verdict), *damage_lines(repair.left, console)]
        return console.plain("\n".join([*lines, give_up]))
    if not done:
        return f"{target}: nothing is damaged, and nothing was changed"
    lines = [f"{target}: the state is whole", *done, f"see what is there: gcluster status {target}"]
    return console.plain("\n".join(lines))
