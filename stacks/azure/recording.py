"""A site's program recorded offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.stacks.azure.control_plane import (
    CREDENTIALS,
    LOGIN,
    RECORDED_CREDENTIALS,
    RECORDED_LOGIN,
)
from gcluster.stacks.azure.moment import Moment
from gcluster.stacks.azure.program import program
from gcluster.stacks.pulumi.record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.pulumi.monitor import Answers
    from gcluster.stacks.pulumi.recorded import RecordedGraph

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
