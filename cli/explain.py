"""`gcluster explain`: what a diagnostic code means and what to do about it."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

import re
from typing import Annotated

import typer

from gcluster.cli.options import Format, OutputFormat
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit, failure

_FAMILIES = {
    "0": "structure: the file can't be read as a spec; the message says where and what to write",
    "1": "capacity: machines, counts, zones, quotas",
    "2": "fabric: what the nodes' fast network is and can do",
    "3": "network: addresses and who may reach them",
    "4": "storage: sizes, mounts, throughput",
    "5": "scheduler: partitions, queues, accounts",
    "6": "software: versions that go together",
    "7": "hybrid: work that moves between sites",
    "8": "budget and policy",
    "9": "running: state, providers, nodes, the AllReduce, this command line",
}


def _complete(incomplete: str) -> list[str]:
    from gcluster.schemas.checks import CHECKS

    return [code for code in sorted(CHECKS) if code.startswith(incomplete.upper())]


def command(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="GC204, say.", autocompletion=_complete)
    ],
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Explain a diagnostic code.

    Checks of a spec are explained in full, other codes by the family they belong to.
    """
    from gcluster.cli.render.document import document
    from gcluster.schemas.checks import CHECKS

    code = code.upper()
    if not re.fullmatch(r"GC\d{3}", code):
        raise failure(
            "GC947",
            f'"{code}" is not a diagnostic code',
            hint="codes look like GC204 and stand in brackets at the start of a message",
            exit_code=Exit.USAGE,
        )
    family = _FAMILIES[code[2]]
    known = CHECKS.get(code)
    if fmt is Format.JSON:
        told = {"summary": known.summary, "explanation": known.explanation} if known else {}
        say(document({"code": code, "family": family, **told}))
    elif known is not None:
        say(f"{code}   {known.summary}\n\n{_wrapped(known.explanation)}\n\nfamily: {family}")
    else:
        say(f"{code}   {family}")
    return Exit.OK


def _wrapped(text: str) -> str:
    import textwrap

    return textwrap.fill(text, width=88)
