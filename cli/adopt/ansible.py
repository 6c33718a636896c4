"""`gcluster adopt ansible`: a spec of the hosts of an inventory."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.outcome import Exit
from ..adopting import Output, adopt
from ..options import Format, OutputFormat


def command(  # noqa: PLR0917  # typer reads the options from the parameters
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
    from ...lifecycle.adopt import ansible_inventory
    from ...schemas.adopt.ansible import adopt_ansible

    found = ansible_inventory(inventory)
    roles = dict.fromkeys(controller or (), "controller") | dict.fromkeys(login or (), "login")
    origin = f"the Ansible inventory {inventory.name}"
    return adopt(
        lambda day: adopt_ansible(found, name=name, roles=roles, origin=origin, date=day),
        origin,
        output,
        fmt,
    )
