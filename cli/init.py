"""`gcluster init`: a commented spec to start from."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit, failure

TEMPLATES = Path(__file__).parent / "templates"


class Kind(StrEnum):
    """Where the machines of the first site come from."""

    LOCAL = "local"
    BARE_METAL = "bare-metal"
    SSH_FLEET = "ssh-fleet"


def command(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("cluster.yaml"),
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind", help="Nodes on this machine, hosts that exist, or a cloud's list of them."
        ),
    ] = Kind.LOCAL,
    name: Annotated[
        str, typer.Option("--name", help="Name of the cluster: lower case, digits, hyphens.")
    ] = "demo",
) -> Exit:
    """Write a commented spec to start from.

    A file that exists is never written over.
    """
    text = (TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
    _check_name(name)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("name: demo\n", f"name: {name}\n", 1))
    except FileExistsError:
        raise failure(
            "GC945",
            f"{path} exists already and was left as it is",
            hint="give another path: gcluster init PATH",
        ) from None
    say(f"wrote {path}\n\n{_next_steps(path, kind)}")
    return Exit.OK


def _check_name(name: str) -> None:
    import re

    from gcluster.schemas.spec.noun import Name

    pattern = Name.__metadata__[0].pattern  # type: ignore[attr-defined]  # of Annotated
    if not re.match(pattern, name):
        raise failure(
            "GC946",
            f'"{name}" can\'t be the name of a cluster',
            hint="lower-case letters, digits and hyphens; starts with a letter; at most 32",
            exit_code=Exit.USAGE,
        )


def _next_steps(path: Path, kind: Kind) -> str:
    steps = [f"gcluster validate {path}", f"gcluster up {path}"]
    if kind is Kind.LOCAL:
        steps.insert(1, "gcluster doctor")
    else:
        steps.insert(0, f"edit {path}: the hosts are made up")
    return "next: " + "\n      ".join(steps)
