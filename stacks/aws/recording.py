"""A site's program recorded offline."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...schemas.catalog import Catalog
from ...schemas.spec import ClusterSpec
from ..pulumi.record import record
from ..pulumi.recorded import RecordedGraph
from .access import PROFILE, RECORDED_PROFILE
from .blocks import OFFERING, RECORDED
from .control_plane import RECORDED_ZONES, ZONES
from .program import program


def record_site(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    *,
    preview: bool = False,
    taken: Mapping[str, str] | None = None,
    buys: Collection[str] | None = None,
) -> RecordedGraph:
    """Return what the site's program asks for; needs no credentials. Raises RecordError."""
    return record(
        program(spec, site, catalog, taken=taken, buys=buys),
        project=f"gcluster-{spec.name}",
        stack=site,
        preview=preview,
        answers={OFFERING: RECORDED, ZONES: RECORDED_ZONES, PROFILE: RECORDED_PROFILE},
    )
