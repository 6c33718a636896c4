"""`gcluster adopt cluster-toolkit`: a spec of a blueprint of Google's Cluster Toolkit."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from pathlib import Path
from typing import Annotated, Any

import typer

from ...lifecycle.outcome import Exit, failure
from ..adopting import Name, Output, adopt
from ..options import Format, OutputFormat


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    blueprint: Annotated[Path, typer.Argument(metavar="BLUEPRINT", help="The blueprint.")],
    deployment: Annotated[
        Path | None,
        typer.Option("--deployment", "-d", metavar="FILE", help="Its deployment file."),
    ] = None,
    var: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="KEY=VALUE", help="A variable that neither says."),
    ] = None,
    name: Name = "",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a blueprint of Google's Cluster Toolkit.

    Nodesets become pools, partitions stay partitions; every other module is named. What was
    deployed from it is not touched.
    """
    from ...lifecycle.adopt import read_yaml
    from ...schemas.adopt.toolkit import adopt_toolkit, named

    data = read_yaml(blueprint)
    try:
        given: dict[str, Any] = dict(named(var or ()))
    except ValueError as error:
        summary = "--var takes KEY=VALUE"
        raise failure(
            "GC941", summary, hint="--var region=us-central1", exit_code=Exit.USAGE
        ) from error
    if deployment is not None:
        told = read_yaml(deployment)
        given = {**(told.get("vars") or {} if isinstance(told, dict) else {}), **given}
    origin = f"a Cluster Toolkit blueprint ({blueprint.name})"
    return adopt(
        lambda day: adopt_toolkit(data, given=given, name=name, origin=origin, date=day),
        origin,
        output,
        fmt,
    )
