"""A site's program recorded offline, with what OCI would answer it."""

from __future__ import annotations

from collections.abc import Mapping

from ...schemas.catalog import Catalog
from ...schemas.spec import ClusterSpec
from ..pulumi.monitor import Answer, Json
from ..pulumi.record import record
from ..pulumi.recorded import RecordedGraph, Values
from .program import program


def _domain(arguments: Values) -> dict[str, Json]:
    number = arguments.get("adNumber")
    number = int(number) if isinstance(number, int | float) else 0
    return {"adNumber": number, "name": f"${{availability domain {number}}}"}


ANSWERS: dict[str, Answer] = {
    "oci:Identity/getAvailabilityDomain:getAvailabilityDomain": _domain,
    "oci:Core/getServices:getServices": {
        "services": [
            {
                "id": "${all services of the region}",
                "cidrBlock": "${label of all services}",
                "name": "All Services In Oracle Services Network",
                "description": "",
            }
        ]
    },
    "oci:ObjectStorage/getNamespace:getNamespace": {"namespace": "${namespace of the tenancy}"},
}
"""Placeholders for what the program asks: no question is asked while recording."""


def record_site(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    *,
    preview: bool = False,
    taken: Mapping[str, str] | None = None,
) -> RecordedGraph:
    """Return what the site's program asks for; needs no credentials. Raises RecordError."""
    return record(
        program(spec, site, catalog, taken=taken),
        project=f"gcluster-{spec.name}",
        stack=site,
        preview=preview,
        answers=ANSWERS,
    )
