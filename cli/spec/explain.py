"""`gcluster explain`: what a diagnostic code or an alert means, and what to do about it."""

import re
from difflib import get_close_matches
from typing import Annotated

import typer

from ...inventory.alerts import AlertRule, alert_rules
from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...schemas.codes import CodeExplanation, explanations, register
from ...schemas.codes.registered import number_of
from ..console import emit, say, stdout
from ..options import Format, OutputFormat
from ..render.document import document
from ..render.spec.explain import (
    alert_text,
    alert_value,
    explained_text,
    explained_value,
    listed,
    listed_value,
    shown_example,
)


def _complete(incomplete: str) -> list[str]:

    codes = [code for code in explanations() if code.startswith(incomplete.upper())]
    return codes + [name for name in alert_rules() if name.startswith(incomplete)]


def command(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]",
            help="GC101, or an alert: NodeDown; without one: all codes.",
            autocompletion=_complete,
        ),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Explain a diagnostic code or an alert.

    Says what it means and what to do, and shows a spec that gets it with its correction. Without a
    code it lists all of them by family.
    """
    known = explanations()
    if code is None:
        _list(known, fmt)
        return Exit.OK
    alert = alert_rules().get(code)
    if alert is not None:
        _explain_alert(alert, fmt)
        return Exit.OK
    explained = known.get(code.upper())
    if explained is None:
        raise _unknown(code, known)
    _explain(explained, fmt)
    return Exit.OK


def _list(known: dict[str, CodeExplanation], fmt: Format) -> None:

    if fmt is Format.JSON:
        emit(document(listed_value(known.values())))
    else:
        say(listed(known.values(), stdout()))


def _explain(explained: CodeExplanation, fmt: Format) -> None:

    example = shown_example(explained.code)
    if fmt is Format.JSON:
        emit(document(explained_value(explained, example)))
    else:
        say(explained_text(explained, example, stdout()))


def _explain_alert(alert: AlertRule, fmt: Format) -> None:

    if fmt is Format.JSON:
        emit(document(alert_value(alert)))
    else:
        say(alert_text(alert, stdout()))


def _unknown(code: str, known: dict[str, CodeExplanation]) -> LifecycleError:
    """Say that there is no such code, and which are near."""
    entry = register().get(code.upper())
    if entry is not None:
        summary, hint = f"{entry.code} is not given any more; it meant: {entry.was}", ""
    else:
        near = _near(code.upper()[:40], known)
        summary = f'"{code}" is neither a diagnostic code nor an alert'
        hint = f"did you mean {', '.join(near)}? " if near else ""
        hint += "gcluster explain lists all codes"
    return failure("GC947", summary, hint=hint, exit_code=Exit.USAGE)


def _near(code: str, known: dict[str, CodeExplanation]) -> list[str]:
    """Return codes that may have been meant: numbers near by, or letters alike."""
    if re.fullmatch(r"GC[0-9]{3,4}", code):
        number = number_of(code)
        family = [other for other in known if number_of(other) // 100 == number // 100]
        return sorted(family, key=lambda other: abs(number_of(other) - number))[:3]
    names = {name.upper(): name for name in alert_rules()} | {other: other for other in known}
    return [names[near] for near in get_close_matches(code, names, n=3, cutoff=0.7)]
