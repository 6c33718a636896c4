"""`gcluster adopt`: a spec of what runs already."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from ...lifecycle.cluster.adopt import (
    ansible_inventory,
    drafted,
    folder_texts,
    read,
    read_yaml,
    slurm_texts,
    today,
    write_adopted,
)
from ...lifecycle.cluster.outcome import Exit, failure
from ...schemas.adopt.aws.eksctl import adopt_eksctl
from ...schemas.adopt.aws.hyperpod import adopt_hyperpod
from ...schemas.adopt.aws.parallelcluster import adopt_parallelcluster
from ...schemas.adopt.aws.place import AwsPlace
from ...schemas.adopt.draft import Adopted
from ...schemas.adopt.fleets.dstack import adopt_dstack
from ...schemas.adopt.fleets.skypilot import adopt_skypilot
from ...schemas.adopt.gcp.blueprint import named
from ...schemas.adopt.gcp.toolkit import adopt_toolkit
from ...schemas.adopt.inventories.ansible import adopt_ansible
from ...schemas.adopt.inventories.kubespray import adopt_kubespray
from ...schemas.adopt.node_lists.openhpc import adopt_openhpc
from ...schemas.adopt.node_lists.warewulf import adopt_warewulf
from ...schemas.adopt.slurm.cluster import adopt_slurm
from ...schemas.adopt.slurm.output import read_slurm
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
File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="The file to read.")]
Inventory: TypeAlias = Annotated[
    Path, typer.Argument(metavar="INVENTORY", help="An inventory: a file, or a folder of them.")
]
User: TypeAlias = Annotated[
    str, typer.Option("--user", help="Whom gcluster logs in to the nodes as.")
]
Region: TypeAlias = Annotated[
    str, typer.Option("--region", metavar="REGION", help="Region, where the file says none.")
]
ZoneId: TypeAlias = Annotated[
    str, typer.Option("--zone-id", metavar="ID", help="Zone of its subnets, such as use1-az4.")
]
Vpc: TypeAlias = Annotated[
    str, typer.Option("--vpc", metavar="ID", help="VPC of the subnets that the file names.")
]
Var: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="KEY=VALUE", help="A variable of the file that has no value."),
]
Provider: TypeAlias = Annotated[
    Literal["aws", "azure", "gcp", "oci", ""],
    typer.Option("--provider", help="The cloud, where the file says none."),
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


def variables(given: list[str] | None) -> dict[str, str]:
    """Return KEY=VALUE as a mapping. Raises LifecycleError (GC941): one has no =."""
    try:
        return dict(named(given or ()))
    except ValueError as error:
        hint = "--var region=us-central1"
        raise failure("GC941", "--var takes KEY=VALUE", hint=hint, exit_code=Exit.USAGE) from error


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
            "default: scontrol on this machine.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="[USER@]HOST", help="Run scontrol there, over SSH.")
    ] = "",
    user: User = "root",
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="MODEL", help="Model of GPUs that Slurm knows as gpu:8.")
    ] = "",
    name: Name = "",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a Slurm cluster from the output of scontrol.

    Nothing is changed. Nodes that are alike and serve the same partitions become a pool. Exit code
    2 when the spec needs a hand before it is right.
    """
    if host.startswith("-") or (host and files):
        summary = "--host takes [USER@]HOST, and no files with it"
        raise failure("GC941", summary, hint="gcluster adopt slurm --help", exit_code=Exit.USAGE)
    printed = read_slurm(slurm_texts(files or [], host))
    where = ", ".join(path.name for path in files or []) or host or "this machine"
    origin = f"Slurm ({where})"
    return write_draft(
        lambda day: adopt_slurm(printed, name=name, user=user, origin=origin, date=day, gpu=gpu),
        origin,
        output,
        fmt,
    )


@app.command("ansible")
def ansible(  # noqa: PLR0917  # typer reads the options from the parameters
    inventory: Inventory,
    controller: Annotated[
        list[str] | None,
        typer.Option("--controller", metavar="GROUP", help="A group of controllers."),
    ] = None,
    login: Annotated[
        list[str] | None, typer.Option("--login", metavar="GROUP", help="A group of login nodes.")
    ] = None,
    compute: Annotated[
        list[str] | None,
        typer.Option("--compute", metavar="GROUP", help="A group of compute nodes."),
    ] = None,
    name: Name = "",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt the hosts of an Ansible inventory.

    Groups become pools by their names, unless an option says otherwise; hosts whose role no group
    says are left out. Scripts and plugins of an inventory are not run, and values of its variables
    are not shown.
    """
    found = ansible_inventory(inventory)
    roles = dict.fromkeys(controller or (), "controller") | dict.fromkeys(login or (), "login")
    roles |= dict.fromkeys(compute or (), "compute")
    origin = f"the Ansible inventory {inventory.name}"
    return write_draft(
        lambda day: adopt_ansible(found, name=name, roles=roles, origin=origin, date=day),
        origin,
        output,
        fmt,
    )


@app.command("kubespray")
def kubespray(
    inventory: Inventory,
    name: Annotated[str, typer.Option("--name", help="Name of the cluster.")] = "adopted",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt the hosts of an inventory of kubespray.

    Control planes and nodes are carried, with their networks and labels.
    """
    found = ansible_inventory(inventory)
    origin = f"kubespray's inventory {inventory.name}"
    return write_draft(
        lambda day: adopt_kubespray(found, name=name, origin=origin, date=day), origin, output, fmt
    )


@app.command("parallelcluster")
def parallelcluster(  # noqa: PLR0917  # typer reads the options from the parameters
    file: File,
    name: Name = "",
    region: Region = "",
    zone_id: ZoneId = "",
    vpc: Vpc = "",
    var: Var = None,
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a cluster file of AWS ParallelCluster 3.

    Every line of it is carried over or listed. The cluster that it made is not touched.
    """
    data, origin, called = read_yaml(file), f"ParallelCluster ({file.name})", name or file.stem
    place = AwsPlace(region=region, zone_id=zone_id, vpc=vpc, variables=variables(var))
    return write_draft(
        lambda day: adopt_parallelcluster(data, name=called, origin=origin, date=day, place=place),
        origin,
        output,
        fmt,
    )


@app.command("eksctl")
def eksctl(  # noqa: PLR0917  # typer reads the options from the parameters
    file: File,
    name: Name = "",
    region: Region = "",
    zone_id: ZoneId = "",
    var: Var = None,
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a file of eksctl.

    Node groups become pools under EKS. The cluster that it made is not touched.
    """
    data, origin = read_yaml(file), f"eksctl ({file.name})"
    place = AwsPlace(region=region, zone_id=zone_id, variables=variables(var))
    return write_draft(
        lambda day: adopt_eksctl(data, name=name, origin=origin, date=day, place=place),
        origin,
        output,
        fmt,
    )


@app.command("hyperpod")
def hyperpod(  # noqa: PLR0917  # typer reads the options from the parameters
    file: File,
    provisioning: Annotated[
        Path | None,
        typer.Option("--provisioning", metavar="FILE", help="Its provisioning_parameters.json."),
    ] = None,
    lifecycle: Annotated[
        Path | None,
        typer.Option(
            "--lifecycle",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="The folder of its lifecycle scripts.",
        ),
    ] = None,
    name: Name = "",
    region: Region = "",
    zone_id: ZoneId = "",
    vpc: Vpc = "",
    var: Var = None,
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a cluster of SageMaker HyperPod.

    FILE is what create-cluster takes as JSON. The cluster that it made is not touched.
    """
    data, origin = read_yaml(file), f"SageMaker HyperPod ({file.name})"
    parameters = read_yaml(provisioning) if provisioning is not None else None
    place = AwsPlace(region=region, zone_id=zone_id, vpc=vpc, variables=variables(var))
    return write_draft(
        lambda day: adopt_hyperpod(
            data,
            parameters,
            name=name,
            origin=origin,
            date=day,
            place=place,
            lifecycle=None if lifecycle is None else folder_texts(lifecycle),
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
    var: Var = None,
    name: Name = "",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a blueprint of Google's Cluster Toolkit.

    Nodesets and node pools become pools, partitions stay partitions; every other module is named.
    What was deployed from it is not touched.
    """
    data = read_yaml(blueprint)
    given: dict[str, Any] = dict(variables(var))
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


@app.command("skypilot")
def skypilot(  # noqa: PLR0917  # typer reads the options from the parameters
    file: File,
    name: Name = "",
    provider: Provider = "",
    region: Region = "",
    var: Var = None,
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt the resources of a task of SkyPilot.

    Its machines become a pool and its buckets storage; what it runs is a job.
    """
    return _fleet(adopt_skypilot, "SkyPilot", file, name, provider, region, var, output, fmt)


@app.command("dstack")
def dstack(  # noqa: PLR0917  # typer reads the options from the parameters
    file: File,
    name: Name = "",
    provider: Provider = "",
    region: Region = "",
    var: Var = None,
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a fleet of dstack.

    Of a cloud, or of your own hosts over SSH.
    """
    return _fleet(adopt_dstack, "dstack", file, name, provider, region, var, output, fmt)


def _fleet(  # noqa: PLR0917  # the options of two commands
    make: Callable[..., Adopted],
    tool: str,
    file: Path,
    name: str,
    provider: str,
    region: str,
    var: list[str] | None,
    output: Path,
    fmt: Format,
) -> Exit:
    data, origin = read_yaml(file), f"{tool} ({file.name})"
    given = {"provider": provider, "region": region, **variables(var)}
    return write_draft(
        lambda day: make(data, name=name, origin=origin, date=day, given=given), origin, output, fmt
    )


@app.command("warewulf")
def warewulf(  # noqa: PLR0917  # typer reads the options from the parameters
    file: File,
    controller: Annotated[
        str, typer.Option("--controller", metavar="HOST", help="The host that runs slurmctld.")
    ] = "",
    user: User = "root",
    name: Annotated[str, typer.Option("--name", help="Name of the cluster.")] = "adopted",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt the nodes of Warewulf's nodes.conf.

    Nodes with the same profiles become a pool. What they boot is not touched.
    """
    data, origin = read_yaml(file), f"Warewulf ({file.name})"
    return write_draft(
        lambda day: adopt_warewulf(
            data, name=name, user=user, controller=controller, origin=origin, date=day
        ),
        origin,
        output,
        fmt,
    )


@app.command("openhpc")
def openhpc(
    file: File,
    user: User = "root",
    name: Annotated[str, typer.Option("--name", help="Name of the cluster.")] = "adopted",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt the settings of an OpenHPC recipe.

    FILE is input.local: the head, the compute nodes, and what the recipe sets up on them.
    """
    text, origin = read(file), f"OpenHPC ({file.name})"
    return write_draft(
        lambda day: adopt_openhpc(text, name=name, user=user, origin=origin, date=day),
        origin,
        output,
        fmt,
    )
