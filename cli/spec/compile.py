"""`gcluster compile`: everything a spec becomes, as a tree of files."""

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.planning.compile_tree import compile_tree
from ..console import emit, say
from ..options import Format, OutputFormat, SpecPath
from ..render.document import document


def command(
    spec: SpecPath,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write; new, empty or compiled before.")
    ],
    diagram: Annotated[
        bool, typer.Option("--diagram", help="Draw cloud sites too, as Mermaid flowcharts.")
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Write the files that a spec compiles to.

    Nothing else is touched. The same spec writes the same bytes: commit the folder and read what a
    change of the spec does.
    """
    files = compile_tree(Path(spec), out, diagram=diagram)
    if fmt is Format.JSON:
        emit(document({"out": str(out), "files": [str(file) for file in files]}))
    else:
        say("\n".join(map(str, files)))
    return Exit.OK
