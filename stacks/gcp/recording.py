"""A site's program recorded offline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ...schemas.spec import ClusterSpec, GcpSite
from ..pulumi.record import record
from ..pulumi.recorded import RecordedGraph
from .answers import answers
from .program import program

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog


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
        answers=answers(cast("GcpSite", spec.sites[site]).region),
    )
