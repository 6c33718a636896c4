"""`gcluster schema`: the spec language for editors and other programs."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from enum import StrEnum
from typing import Annotated

import typer

from ..lifecycle.outcome import Exit
from .render.output import say


class Document(StrEnum):
    """A kind of document that people write."""

    CLUSTER = "cluster"
    CATALOG = "catalog"
    POLICIES = "policies"


def command(
    document: Annotated[
        Document, typer.Argument(metavar="[KIND]", help="cluster, catalog or policies.")
    ] = Document.CLUSTER,
) -> Exit:
    """Print the JSON Schema of the spec (or of catalogs, policies), for editors.

    gcluster schema > cluster.schema.json, and in the first line of a spec:
    # yaml-language-server: $schema=cluster.schema.json
    """
    if document is Document.CATALOG:
        from ..schemas.catalog.json_schema import render
    elif document is Document.POLICIES:
        from ..schemas.policies.json_schema import render
    else:
        from ..schemas.structure.json_schema import render
    say(render().rstrip("\n"))
    return Exit.OK
