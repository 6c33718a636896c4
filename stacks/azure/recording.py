"""A site's program recorded offline."""

from __future__ import annotations

from collections.abc import Mapping

from ...schemas.catalog import Catalog
from ...schemas.spec import ClusterSpec
from ..pulumi.monitor import Answers
from ..pulumi.record import record
from ..pulumi.recorded import RecordedGraph
from .control_plane import (
    CREDENTIALS,
    LOGIN,
    RECORDED_CREDENTIALS,
    RECORDED_LOGIN,
)
from .moment import Moment
from .program import program

ANSWERS: Answers = {LOGIN: RECORDED_LOGIN, CREDENTIALS: RECORDED_CREDENTIALS}
"""What is asked of Azure while a program runs."""


def record_site(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    *,
    preview: bool = False,
    taken: Mapping[str, str] | None = None,
) -> RecordedGraph:
    """Return what the site's program asks for; needs no login. Raises RecordError."""
    run = program(spec, site, catalog, Moment(taken=dict(taken or {})))
    return record(
        run,
        project=f"gcluster-{spec.name}",
        stack=site,
        preview=preview,
        answers=ANSWERS,
    )
