"""A code explained: words, an example that fails as the program says it, and its correction."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from msgspec.structs import replace

from ....inventory.alerts import AlertRule, node_checks, steps_of, where
from ....schemas.codes import FAMILIES, CodeExplanation, example_of, family_of
from ....schemas.load import Loaded, load_text
from ....schemas.structure.fix.apply import fixed_text
from ...console import Console, wrap
from ..diagnostics import diagnostics_text
from .diff import diff_text

_FILE = "cluster.yaml"
"""What the example is called: people see their own file there."""
_WIDEST = 88


class Shown(NamedTuple):
    """An example, run: what is said about the wrong spec, and the text of the right one."""

    fails: Loaded
    passes: str | None


def shown_example(code: str) -> Shown | None:
    """Load the example of a code, or return None where there is none."""
    example = example_of(code)
    if example is None:
        return None
    with TemporaryDirectory() as folder:
        for name, text in example.fails.files.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        fails = load_text(example.fails.spec, file=_FILE, folder=Path(folder))
        found = (replace(d, file=d.file.removeprefix(f"{folder}/")) for d in fails.diagnostics)
        fails = replace(fails, diagnostics=tuple(found))
    passes = None if example.passes is None else example.passes.spec
    return Shown(fails=fails, passes=passes)


def explained_text(code: CodeExplanation, example: Shown | None, console: Console) -> str:
    """Return all that is known of a code."""
    title = f"{console.paint('strong', code.code)}   {console.plain(code.summary)}"
    parts = [title, console.plain(_wrapped(code.explanation, console))]
    if example is not None:
        parts += _example_parts(example, console)
    family = family_of(code.code)
    parts.append(console.paint("faint", f"family: {family.title.lower()} (GC{family.hundred})"))
    return "\n\n".join(parts)


def _example_parts(example: Shown, console: Console) -> list[str]:
    fails = example.fails
    text = diagnostics_text(fails.diagnostics, console, {fails.file: fails.text})
    parts = [console.paint("strong", "An example that gets it:"), text]
    if example.passes is not None and example.passes != fails.text:  # else a named file differs
        diff = diff_text(_FILE, fails.text, example.passes, console)
        by_machine = fixed_text(fails.text, fails.diagnostics).text == example.passes
        how = "Corrected, as gcluster validate --fix does it:" if by_machine else "Corrected:"
        parts += [console.paint("strong", how), diff]
    return parts


def alert_text(alert: AlertRule, console: Console) -> str:
    """Return the page of an alert: when it fires, what it means, what to do."""
    lasting = "at once" if alert.for_ == "0s" else f"after {alert.for_}"
    title = f"{console.paint('strong', alert.name)}   {alert.severity}, fires {lasting}"
    parts = [title, console.plain(_wrapped(alert.means, console))]
    parts += [console.plain(_wrapped(f"- {step}", console)) for step in steps_of(alert)]
    if alert.needs:
        parts.append(console.plain(_wrapped(f"Only {where(alert)}.", console)))
    parts.append(console.paint("faint", alert.expression))
    return "\n\n".join(parts)


def alert_value(alert: AlertRule) -> dict[str, Any]:
    """Return the same as a value for JSON."""
    return {
        "alert": alert.name,
        "severity": alert.severity,
        "for": alert.for_,
        "means": alert.means,
        "do": list(alert.do),
        "needs": list(alert.needs),
        "node_check": list(node_checks().get(alert.name, ())),
        "expression": alert.expression,
    }


def explained_value(code: CodeExplanation, example: Shown | None) -> dict[str, Any]:
    """Return the same as a value for JSON."""
    value: dict[str, Any] = {
        "code": code.code,
        "family": family_of(code.code).title,
        "summary": code.summary,
        "explanation": code.explanation,
        "example": None,
    }
    if example is not None:
        value["example"] = {
            "fails": example.fails.text,
            "diagnostics": example.fails.diagnostics,
            "passes": example.passes,
        }
    return value


def listed(codes: Iterable[CodeExplanation], console: Console) -> str:
    """Return every code with its summary, family by family."""
    known = list(codes)
    parts = []
    for family in FAMILIES:
        rows = [code for code in known if family_of(code.code) is family]
        if rows:
            title = console.paint("strong", f"GC{family.hundred}  {family.title}")
            lines = [f"  {row.code}  {console.plain(row.summary)}" for row in rows]
            parts.append("\n".join([f"{title}: {family.about}", *lines]))
    return "\n\n".join(parts)


def listed_value(codes: Iterable[CodeExplanation]) -> dict[str, Any]:
    """Return the same as a value for JSON."""
    return {
        "families": {family.hundred: family.title for family in FAMILIES},
        "codes": [{"code": code.code, "summary": code.summary} for code in codes],
    }


def _wrapped(text: str, console: Console) -> str:
    return "\n".join(wrap(text, min(_WIDEST, console.width)))
