"""`gcluster adopt`: a spec of what runs already."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from ...lifecycle.cluster.adopt import (
    ansible_inventory,
    drafted,
    read_yaml,
    slurm_texts,
    today,
    write_adopted,
)
from ...lifecycle.cluster.outcome import Exit, failure
from ...schemas.adopt.ansible import adopt_ansible
from ...schemas.adopt.draft import Adopted
from ...schemas.adopt.parallelcluster import adopt_parallelcluster
from ...schemas.adopt.slurm import adopt_slurm
from ...schemas.adopt.slurm_output import read_slurm
from ...schemas.adopt.toolkit import adopt_toolkit, named
from ..app import group
from ..console import stdout
from ..options import Format, OutputFormat
from ..render.document import answer
from ..render.spec.software import adopted_text

app = group("adopt")


Output: TypeAlias = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The spec to write.")
]
Name: TypeAlias = Annotated[
    str, typer.Option("--name", help="Name of the cluster; default: as the source has it.")
]


def write_draft(make: Callable[[str], Adopted], origin: str, output: Path, fmt: Format) -> Exit:
    """Write what was drafted, say what is missing and whether the spec is right.

    Args:
        make: drafts it, on the day that it is given.
        origin: what it is adopted from, in words.
        output: the spec to write.
        fmt: format of the result.
    """
    written = write_adopted(drafted(lambda: make(today())), output, origin)
    answer(fmt, written, lambda: adopted_text(written, stdout()))
    return Exit.SPEC if any(found.is_error for found in written.findings) else Exit.OK


@app.callback()
def adopt() -> None:
    """Write a spec of an existing cluster, and list gaps."""


@app.command("slurm")
def slurm(  # noqa: PLR0917  # typer reads the options from the parameters
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Saved output of scontrol show config, nodes and partitions, or slurm.conf; "
            "default: scontrol is asked here.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="[USER@]HOST", help="Ask scontrol there, by SSH.")
    ] = "",
    user: Annotated[
        str, typer.Option("--user", help="Whom gcluster logs in to the nodes as.")
    ] = "root",
    name: Name = "",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a Slurm cluster from the output of scontrol.

    Nothing is changed. Nodes that are alike and serve the same partitions become a pool. Exit code
    2 when the spec needs a hand before it is right.
    """
    if host.startswith("-") or (host and files):
        summary = "--host takes [USER@]HOST, and no files beside it"
        raise failure("GC941", summary, hint="gcluster adopt slurm --help", exit_code=Exit.USAGE)
    read = read_slurm(slurm_texts(files or [], host))
    where = ", ".join(path.name for path in files or []) or host or "this machine"
    origin = f"Slurm ({where})"
    return write_draft(
        lambda day: adopt_slurm(read, name=name, user=user, origin=origin, date=day),
        origin,
        output,
        fmt,
    )


@app.command("ansible")
def ansible(  # noqa: PLR0917  # typer reads the options from the parameters
    inventory: Annotated[
        Path, typer.Argument(metavar="INVENTORY", help="An inventory: a file, or a folder of them.")
    ],
    controller: Annotated[
        list[str] | None,
        typer.Option("--controller", metavar="GROUP", help="A group of controllers."),
    ] = None,
    login: Annotated[
        list[str] | None, typer.Option("--login", metavar="GROUP", help="A group of login nodes.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the cluster.")] = "adopted",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt the hosts of an Ansible inventory.

    Groups become pools: controllers and logins by their names, unless told. Scripts and plugins of
    an inventory are not run. Values of variables besides the address, user and port are not shown.
    """
    found = ansible_inventory(inventory)
    roles = dict.fromkeys(controller or (), "controller") | dict.fromkeys(login or (), "login")
    origin = f"the Ansible inventory {inventory.name}"
    return write_draft(
        lambda day: adopt_ansible(found, name=name, roles=roles, origin=origin, date=day),
        origin,
        output,
        fmt,
    )


@app.command("parallelcluster")
def parallelcluster(
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
    data = read_yaml(file)
    origin = f"ParallelCluster ({file.name})"
    called = name or file.stem
    return write_draft(
        lambda day: adopt_parallelcluster(
            data, name=called, origin=origin, date=day, zone_id=zone_id
        ),
        origin,
        output,
        fmt,
    )


@app.command("cluster-toolkit")
def cluster_toolkit(  # noqa: PLR0917  # typer reads the options from the parameters
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
    data = read_yaml(blueprint)
    try:
        given: dict[str, Any] = dict(named(var or ()))
    except ValueError as error:
        summary = "--var takes KEY=VALUE"
        raise failure(
            "GC941", summary, hint="--var region=us-central1", exit_code=Exit.USAGE
        ) from error
    if deployment is not None:
        deployed = read_yaml(deployment)
        given = {**(deployed.get("vars") or {} if isinstance(deployed, dict) else {}), **given}
    origin = f"a Cluster Toolkit blueprint ({blueprint.name})"
    return write_draft(
        lambda day: adopt_toolkit(data, given=given, name=name, origin=origin, date=day),
        origin,
        output,
        fmt,
    )
