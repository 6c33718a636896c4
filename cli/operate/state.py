"""`gcluster state`: is what a cluster's state holds as it was written, and what can be rebuilt."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import find_state
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.cluster.state_upgrade import upgrade_state
from ...lifecycle.state import StateStore
from ...lifecycle.state.check import Damage, check_state
from ...lifecycle.state.repair import repair_state
from ..app import group
from ..console import ask, say, stdout
from ..options import Format, OutputFormat, Target, Yes
from ..render.document import answer
from ..render.operate.operations import check_text, damage_lines, repair_text, upgrade_text

app = group("state")


@app.callback()
def state() -> None:
    """Check, repair and upgrade a cluster's state."""


@app.command("check")
def check(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """List the objects of the state that are damaged or missing.

    Every object is read. Exit code 1 when one is damaged. Changes nothing.
    """
    place = find_state(cluster)
    store = StateStore.open(place.state_url, target=cluster, checks_format=False)
    checked = check_state(store)
    answer(fmt, checked, lambda: check_text(checked, stdout()))
    return checked.exit_code


@app.command("repair")
def repair(
    cluster: Target,
    discard: Annotated[
        list[str] | None,
        typer.Option("--discard", metavar="KEY", help="A damaged object that is given up."),
    ] = None,
    yes: Yes = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Rebuild damaged objects from events, spec and sites.

    What was damaged is moved to damaged/ in the state. Exit code 1 when damage is left.
    """

    def confirm(damage: tuple[Damage, ...]) -> bool:
        if yes:
            return True
        if fmt is Format.TEXT:
            say("\n".join(damage_lines(damage, stdout())))
        return ask("repair it?", possible=fmt is Format.TEXT)

    done = repair_state(cluster, confirm=confirm, discard=discard or ())
    answer(fmt, done, lambda: repair_text(done, stdout()))
    return done.exit_code


@app.command("upgrade")
def upgrade(cluster: Target, yes: Yes = False, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rewrite a state of an older gcluster for this version.

    An older gcluster can't read it then. Nothing of the cluster itself is touched; up does it too.
    """

    def confirm(before: int) -> bool:
        question = f"rewrite the state, of format {before}, for this version?"
        return yes or ask(question, possible=fmt is Format.TEXT)

    done = upgrade_state(cluster, confirm=confirm)
    answer(fmt, done, lambda: upgrade_text(done))
    return Exit.OK
