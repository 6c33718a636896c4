"""What a spec has on a cloud: the resources that its recorded program registers, and a KMS key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.cluster import open_cluster
from gcluster.lifecycle.outcome import failure
from gcluster.lifecycle.sites import provider_name
from gcluster.schemas.kms_key import cloud_of_key
from gcluster.schemas.spec import KmsSecrets
from gcluster.stacks.permissions import kind_of
from gcluster.stacks.provider import Recorder
from gcluster.stacks.registry import provider

if TYPE_CHECKING:
    from pathlib import Path

_NOT_MADE = ("gcluster:", "pulumi:")
"""Types that group others, and the engine's own."""


def needs_of(spec: Path, cloud: str) -> tuple[frozenset[str], bool]:
    """Return the kinds of resources of a spec's sites on a cloud, and whether its key is there.

    Nothing is contacted.

    Raises:
        LifecycleError: the spec has errors, or neither site nor key on that cloud (GC908).
        ProviderError: the cloud's extra isn't installed.
    """
    cluster = open_cluster(str(spec))
    sites = [name for name, site in cluster.spec.sites.items() if provider_name(site) == cloud]
    secrets = cluster.spec.secrets
    has_key = isinstance(secrets, KmsSecrets) and cloud_of_key(secrets.key) == cloud
    if not sites and has_key:
        return frozenset(), True
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
    kinds = frozenset(kind_of(token) for token in types if not token.startswith(_NOT_MADE))
    return kinds, has_key
