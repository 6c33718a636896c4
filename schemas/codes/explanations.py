"""What each code means, with its example, and the page of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..checks.registry import all_checks
from ..fleet.codes import FLEET_CODES
from ..policies import POLICY_CODES
from ..structure.decoding import decode_yaml
from .registered import FAMILIES, TEXTS, Text, family_of, number_of, read, register


class CodeExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a code means."""

    code: str
    summary: str
    explanation: str
    is_check: bool = False
    """Whether it is a rule of meaning for one spec: those have an example."""


def explanations() -> dict[str, CodeExplanation]:
    """Return every code that gcluster gives, in order; retired ones are not among them."""
    return {known.code: known for known in sorted(_all(), key=lambda known: number_of(known.code))}


def retired() -> dict[str, str]:
    """Return the retired codes and what they meant."""
    return {entry.code: entry.was for entry in register().values() if entry.retired}


def _all() -> Iterator[CodeExplanation]:

    for code, rule in all_checks().items():
        yield CodeExplanation(
            code=code, summary=rule.summary, explanation=rule.explanation, is_check=True
        )
    for name in TEXTS:
        for code, text in read(name, dict[str, Text]).items():
            yield CodeExplanation(code=code, summary=text.summary, explanation=text.explanation)
    for code, (summary, explanation) in (FLEET_CODES | POLICY_CODES).items():
        yield CodeExplanation(code=code, summary=summary, explanation=explanation)


DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
_TOP = """\
# Codes of errors and warnings

A code never changes its meaning and is never used again for another. The message itself says what
was found, where, and what to write instead. These pages say what a code stands for;
`gcluster explain CODE` says why the rule is there, and shows an example of the mistake with its
correction. `gcluster validate --fix` fixes those that have one right answer.

These pages are generated from the program by `python -m gcluster.schemas.codes --write`.
"""
_PAGES = {
    "diagnostics-spec.md": ("Codes about machines, networks and storage of a spec", range(5)),
    "diagnostics-scheduling.md": (
        "Codes about the scheduler, software and policy",
        (*range(5, 9), 12),
    ),
    "diagnostics-running.md": ("Codes of commands on a cluster", range(9, 12)),
}
"""File -> title, and the hundreds of codes that it lists."""
_HEAD = "| code | what it means |\n| --- | --- |\n"


def render() -> dict[str, str]:
    """Return the text of each page by its file name below docs/."""
    known = explanations().values()
    index, pages = [], {}
    for name, (page_title, hundreds) in _PAGES.items():
        parts = [f"# {page_title}\n\nGenerated; see [diagnostics.md](diagnostics.md).\n"]
        for family in (FAMILIES[hundred] for hundred in hundreds):
            rows = [f"| {k.code} | {k.summary} |\n" for k in known if family_of(k.code) is family]
            title = f"{family.title} (GC{family.hundred})"
            parts.append(f"## {title}\n\nAbout {family.about}.\n\n{_HEAD}{''.join(rows)}")
            anchor = re.sub(r"[^a-z0-9 ]", "", title.lower()).replace(" ", "-")
            index.append(
                f"| GC{family.hundred} | [{family.title}]({name}#{anchor}): {family.about} |\n"
            )
        pages[name] = "\n".join(parts)
    top = f"{_TOP}\n| codes | about |\n| --- | --- |\n{''.join(index)}"
    gone = [f"| {code} | {was} |\n" for code, was in sorted(retired().items())]
    if gone:
        top += f"\n## Not given any more\n\n{_HEAD}{''.join(gone)}"
    return {"diagnostics.md": top, **pages}


FOLDER = Path(__file__).parent / "examples"


class ExampleSpec(msgspec.Struct, frozen=True):
    """A spec and the files that it names, by their path from the spec's folder."""

    spec: str
    files: dict[str, str] = {}


class Example(msgspec.Struct, frozen=True):
    """A wrong spec and its correction; `passes` is None where only a wrong one is shown."""

    fails: ExampleSpec
    passes: ExampleSpec | None = None


def example_of(code: str) -> Example | None:
    """Return the example of a code, or None where there is none."""
    path = FOLDER / f"{code}.yaml"
    if not path.is_file():
        return None
    cases = decode_yaml(path.read_bytes(), dict[str, ExampleSpec])
    if "fails" not in cases:
        return None
    return Example(fails=cases["fails"], passes=cases.get("passes"))
