"""Which kinds of resources a spec has on a cloud: what its recorded program registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.cluster import open_cluster
from gcluster.lifecycle.outcome import failure
from gcluster.lifecycle.sites import provider_name
from gcluster.stacks.permissions import kind_of
from gcluster.stacks.provider import Recorder
from gcluster.stacks.registry import provider

if TYPE_CHECKING:
    from pathlib import Path

_NOT_MADE = ("gcluster:", "pulumi:")
"""Types that group others, and the engine's own."""


def kinds_of(spec: Path, cloud: str) -> frozenset[str]:
    """Return the kinds of resources of a spec's sites on a cloud; nothing is contacted.

    Raises:
        LifecycleError: the spec has errors, or no site on that cloud (GC908).
        ProviderError: the cloud's extra isn't installed.
    """
    cluster = open_cluster(str(spec))
    sites = [name for name, site in cluster.spec.sites.items() if provider_name(site) == cloud]
    if not sites:
        raise failure("GC908", f"{spec} has no site of provider {cloud}")
    recorder = provider(cloud, cluster.catalog)
    if not isinstance(recorder, Recorder):
        raise TypeError(cloud)
    types = {
        resource.type
        for site in sites
        for resource in recorder.record(cluster.spec, site).resources
    }
    return frozenset(kind_of(token) for token in types if not token.startswith(_NOT_MADE))
