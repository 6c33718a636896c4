"""Golden files: what the program answers, kept for review under tests/cases.

A test compares through the fixture `golden`; `pytest --update-goldens TESTS` writes what is
answered now instead and lists the files it changed. A golden file is right when a person has
read its diff, not when this was run.

A case file (`tests/cases/FAMILY.yaml`, or one file for each subject in `tests/cases/FAMILY/`) maps
the name of each case to its inputs and to what is expected, texts as literal blocks: lines and
columns in a finding count inside the block. Texts that several cases use are its first entry.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gcluster.schemas.diagnostics import Diagnostic, Severity, Span

CASES = Path(__file__).parent / "cases"
SHARED = "shared"
"""The entry of a case file with texts that several of its cases name."""
_PRINTABLE = re.compile(
    r"[\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)
"""Text that a YAML block gives back as it is."""


class _CaseDumper(yaml.SafeDumper):
    """Writes YAML for reviewers: text of several lines as a block, lists of words on one line."""

    def analyze_scalar(self, scalar: str) -> Any:
        """Allow a block for any printable text, also with tabs or spaces at the end of lines."""
        analysis = super().analyze_scalar(scalar)
        analysis.allow_block = _PRINTABLE.fullmatch(scalar) is not None
        return analysis

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002
        """Indent lists below their key."""
        return super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write equal parts out: a case is read alone."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    short = all(not isinstance(item, dict | list) and "\n" not in str(item) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_CaseDumper.add_representer(str, _text)
_CaseDumper.add_representer(list, _list)


@cache
def read_cases(path: Path) -> dict[str, dict[str, Any]]:
    """Return the cases of a file by name. Callers don't change them."""
    with path.open(encoding="utf-8") as file:
        cases: dict[str, dict[str, Any]] = yaml.load(file, Loader=yaml.CSafeLoader)
    return cases


def case_names(path: Path) -> list[str]:
    """Return the names of the cases of a file."""
    return [name for name in read_cases(path) if name != SHARED]


def case_text(path: Path, name: str, key: str) -> str:
    """Return a text of a case: its own, or the shared one that it names."""
    text: str = read_cases(path)[name][key]
    return read_cases(path).get(SHARED, {}).get(text, text)


def as_yaml(value: Any) -> str:
    """Return a value as case files show it."""
    text: str = yaml.dump(
        value, Dumper=_CaseDumper, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text


def write_cases(path: Path, cases: dict[str, dict[str, Any]]) -> None:
    """Write a case file; comments above the first case stay.

    Raises:
        ValueError: a text can't be written so that it is read again as it is.
    """
    before = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    head = before[: next((i for i, line in enumerate(before) if line[:1] not in "#\n"), 0)]
    text = "".join(head) + "\n".join(as_yaml({name: case}) for name, case in cases.items())
    if yaml.load(text, Loader=yaml.CSafeLoader) != cases:
        raise ValueError(f"{path} would be read differently")
    path.write_text(text, encoding="utf-8")
    read_cases.cache_clear()


def unpack(files: dict[str, str], folder: Path) -> Path:
    """Write the files of a case below a folder and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def finding(diagnostic: Diagnostic, folder: Path | None = None) -> dict[str, Any]:
    """Return a diagnostic as case files show it; `at` is line:column, the end exclusive.

    Args:
        diagnostic: what was found.
        folder: where the files of the case lie; the finding then names its file from there.
    """
    value: dict[str, Any] = {} if folder is None else {"file": diagnostic.file}
    value["code"] = diagnostic.code
    if diagnostic.severity is not Severity.ERROR:
        value["severity"] = diagnostic.severity.value
    value |= {
        "at": _place(diagnostic.span),
        "path": list(diagnostic.path),
        "summary": diagnostic.summary,
    }
    value |= {key: text for key in ("detail", "hint") if (text := getattr(diagnostic, key))}
    if diagnostic.patch is not None:
        value["fix"] = {
            "at": _place(diagnostic.patch.span),
            "write": diagnostic.patch.replacement,
        }
    return {
        key: text.replace(f"{folder}/", "") if isinstance(text, str) else text
        for key, text in value.items()
    }


def _place(span: Span | None) -> str | None:
    if span is None:
        return None
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"


class GoldenFiles:
    """Compares answers with golden files, or writes them where `update` is set."""

    def __init__(self, *, update: bool) -> None:
        """Start with no file written."""
        self.update = update
        self.written: set[Path] = set()

    def check(self, path: Path, answer: str | bytes) -> None:
        """Hold an answer against a whole file."""
        answered = answer.encode() if isinstance(answer, str) else answer
        kept = path.read_bytes() if path.exists() else b""
        if self.update and answered != kept:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(answered)
            self.written.add(path)
        elif isinstance(answer, str):
            assert answer == kept.decode()
        else:
            assert answered == kept

    def check_case(self, path: Path, name: str, key: str, answer: Any) -> None:
        """Hold an answer against what a case of a case file expects under `key`."""
        cases = read_cases(path)
        if self.update and cases[name].get(key) != answer:
            write_cases(path, cases | {name: cases[name] | {key: answer}})
            self.written.add(path)
        else:
            assert answer == cases[name][key]
