"""What a spec has on a cloud: resources that its recorded program registers, key and state."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ....schemas.derived.state_url import parse_state_url
from ....stacks.aws.plan.layout import partition
from ....stacks.pulumi.permissions import kind_of
from ....stacks.registry import provider
from ...cluster.cluster import open_cluster
from ...cluster.outcome import failure

_NOT_MADE = ("gcluster:", "pulumi:")
"""Types that group others, and the engine's own."""


class Needs(NamedTuple):
    """What a spec has on one cloud."""

    kinds: frozenset[str]
    """Of resources."""
    state: tuple[str, str] | None = None
    """ARN of the bucket of AWS that its state is in, and the prefix there."""


def needs_of(spec: Path, cloud: str) -> Needs:
    """Return what a spec has on a cloud. Nothing is contacted.

    Raises:
        LifecycleError: the spec has errors, or neither a site nor its state on that cloud (GC908).
        ProviderError: the cloud's extra isn't installed.
    """
    cluster = open_cluster(str(spec))
    sites = [name for name, site in cluster.spec.sites.items() if site.provider == cloud]
    state = _bucket(cluster.state_url) if cloud == "aws" else None
    if not sites and state:
        return Needs(frozenset(), state)
    if not sites:
        raise failure("GC908", f"{spec} has no site of provider {cloud}")
    recorder = provider(cloud, cluster.catalog)
    types = {
        resource.type
        for site in sites
        if (recorded := recorder.record(cluster.spec, site)) is not None
        for resource in recorded.resources
    }
    kinds = frozenset(kind_of(token) for token in types if not token.startswith(_NOT_MADE))
    return Needs(kinds, state)


def _bucket(url: str) -> tuple[str, str] | None:
    """Return the bucket's ARN and the prefix, where it is one of AWS's own."""
    place = parse_state_url(url)
    if place.scheme != "s3" or "endpoint" in place.options:
        return None
    arn = f"arn:{partition(place.options.get('region', ''))}:s3:::{place.bucket}"
    return arn, place.path
