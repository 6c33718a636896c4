"""`gcluster adopt parallelcluster`: a spec of a cluster file of AWS ParallelCluster 3."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.outcome import Exit
from ..adopting import Output, adopt
from ..options import Format, OutputFormat


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    name: Annotated[
        str, typer.Option("--name", help="Name of the cluster; default: the file's.")
    ] = "",
    zone_id: Annotated[
        str, typer.Option("--zone-id", metavar="ID", help="Zone of its subnets, such as use1-az4.")
    ] = "",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a cluster file of AWS ParallelCluster 3.

    Every line of it is carried over or listed. The cluster that it made is not touched.
    """
    from ...lifecycle.adopt import read_yaml
    from ...schemas.adopt.parallelcluster import adopt_parallelcluster

    data = read_yaml(file)
    origin = f"ParallelCluster ({file.name})"
    called = name or file.stem
    return adopt(
        lambda day: adopt_parallelcluster(
            data, name=called, origin=origin, date=day, zone_id=zone_id
        ),
        origin,
        output,
        fmt,
    )
