"""A recorded program as the provider contract's graph: what the cloud is asked to make."""

from __future__ import annotations

from ..provider import Resource, ResourceGraph
from .graph import short_type, tags_of
from .labels import POOL
from .recorded import RecordedGraph, RecordedResource

_SCRIPTS = frozenset({"customData", "userData"})
"""First-boot scripts: long, encoded, and no property that a plan compares by eye."""


def site_graph(recorded: RecordedGraph, *, provider: str, site: str) -> ResourceGraph:
    """Return what providers make in a recording, with their plain inputs."""
    names = {resource.urn: resource.name for resource in recorded.resources}
    return ResourceGraph(
        site=site,
        provider=provider,
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
        if isinstance(value, str | int | bool) and key not in _SCRIPTS
    }
