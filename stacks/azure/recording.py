"""A site's program recorded offline, and the recording as the provider contract's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.stacks.azure.program import program
from gcluster.stacks.azure.tags import POOL
from gcluster.stacks.provider import Resource, ResourceGraph
from gcluster.stacks.pulumi.graph import short_type, tags_of
from gcluster.stacks.pulumi.record import record

if TYPE_CHECKING:
    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.pulumi.recorded import RecordedGraph, RecordedResource

_HIDDEN = {"customData"}


def record_site(
    spec: ClusterSpec, site: str, catalog: Catalog, *, preview: bool = False
) -> RecordedGraph:
    """Return what the site's program asks for; needs no login. Raises RecordError."""
    run = program(spec, site, catalog)
    return record(run, project=f"gcluster-{spec.name}", stack=site, preview=preview)


def resource_graph(recorded: RecordedGraph, site: str) -> ResourceGraph:
    """Return what providers make in a recording, with their plain inputs."""
    names = {resource.urn: resource.name for resource in recorded.resources}
    return ResourceGraph(
        site=site,
        provider="azure",
        resources=tuple(
            Resource(
                kind=short_type(made.type),
                name=made.name,
                pool=_pool(made),
                properties=_plain(made),
                parent=names.get(made.parent),
            )
            for made in recorded.resources
            if made.custom and not made.type.startswith("pulumi:providers:")
        ),
    )


def _pool(made: RecordedResource) -> str | None:
    pool = tags_of(made).get(POOL)
    return pool if isinstance(pool, str) else None


def _plain(made: RecordedResource) -> dict[str, str | int | bool | None]:
    return {
        key: value
        for key, value in made.inputs.items()
        if isinstance(value, str | int | bool) and key not in _HIDDEN
    }
