"""Arguments and options that several verbs share, spelled once."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from ..lifecycle.cluster.places import data_home
from ..schemas.structure.decoding import decode_json
from .ending import FORMAT


class Format(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"


class SizeFormat(StrEnum):
    """How sizes are written: for people, programs, tickets and browsers."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


class PlanFormat(StrEnum):
    """How a plan is written: for people, programs and the comment on a pull request."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class ReportFormat(StrEnum):
    """How the findings of a check are written: for people, programs and CI servers."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    JUNIT = "junit"


def remember_format(ctx: typer.Context, value: Any) -> Any:
    """Keep the format where the message of an error finds it."""
    ctx.meta[FORMAT] = str(value)
    return value


def complete_target(incomplete: str) -> list[str]:
    """Return names of known clusters and spec files that begin so; reads nothing but listings."""
    return sorted({*_cluster_names(incomplete), *complete_spec(incomplete)})


def complete_spec(incomplete: str) -> list[str]:
    """Return YAML files and folders that begin so."""
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    try:
        entries = list(folder.iterdir())
    except OSError:
        return []
    prefix = incomplete[: incomplete.rfind("/") + 1]
    shown = [
        f"{prefix}{entry.name}" + ("/" if entry.is_dir() else "")
        for entry in entries
        if entry.is_dir() or entry.suffix in {".yaml", ".yml"}
    ]
    hidden = incomplete[len(prefix) :].startswith(".")
    return sorted(
        text
        for text in shown
        if text.startswith(incomplete) and (hidden or not text[len(prefix) :].startswith("."))
    )


def _cluster_names(incomplete: str) -> Iterator[str]:

    for path in (data_home() / "clusters").glob("*.json"):
        try:
            name = decode_json(path.read_bytes(), dict[str, Any]).get("name", "")
        except (OSError, ValueError):
            continue
        if str(name).startswith(incomplete):
            yield str(name)


Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTER",
        help="Path of a spec, or the name of a cluster.",
        autocompletion=complete_target,
    ),
]
SpecPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="SPEC", help="Path of a spec.", autocompletion=complete_spec)
]
Nodes: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="NODES...", help='Host ranges such as "gpu[001-004]", or pools.'),
]
SizeOutput: TypeAlias = Annotated[
    SizeFormat,
    typer.Option("--format", help="How the answer is written.", callback=remember_format),
]
OutputFormat: TypeAlias = Annotated[
    Format,
    typer.Option("--format", help="How the result is written.", callback=remember_format),
]
PlanOutput: TypeAlias = Annotated[
    PlanFormat,
    typer.Option("--format", help="How the answer is written.", callback=remember_format),
]
ReportFormatOption: TypeAlias = Annotated[
    ReportFormat,
    typer.Option("--format", help="How the findings are written.", callback=remember_format),
]
Yes: TypeAlias = Annotated[
    bool, typer.Option("--yes", "-y", help="Skip the confirmation.", show_default=False)
]
