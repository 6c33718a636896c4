"""`gcluster schema`: the spec language for editors and other programs."""

from enum import StrEnum
from typing import Annotated

import typer

from ...lifecycle.cluster.outcome import Exit
from ...schemas.catalog import json_schema as catalog_schema
from ...schemas.policies import json_schema as policies_schema
from ...schemas.structure import json_schema
from ..console import emit


class Document(StrEnum):
    """A kind of document that people write."""

    CLUSTER = "cluster"
    CATALOG = "catalog"
    POLICIES = "policies"


_RENDERERS = {
    Document.CLUSTER: json_schema.render,
    Document.CATALOG: catalog_schema.render,
    Document.POLICIES: policies_schema.render,
}


def command(
    document: Annotated[
        Document, typer.Argument(metavar="[KIND]", help="cluster, catalog or policies.")
    ] = Document.CLUSTER,
) -> Exit:
    """Print the JSON Schema of specs, catalogs or policies.

    gcluster schema > cluster.schema.json, and in the first line of a spec:
    # yaml-language-server: $schema=cluster.schema.json
    """
    emit(_RENDERERS[document]().rstrip("\n"))
    return Exit.OK
