"""The local provider: the contract of stacks/provider.py, spelled with containers."""

from __future__ import annotations

from collections.abc import Iterable

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec
from ..provider import (
    Grown,
    Leftover,
    Offer,
    Provider,
    ResourceChange,
    ResourceGraph,
    SiteContext,
)
from . import apply, faults, preflight, survey
from .image import base_image, golden


class LocalProvider(Provider):
    """Provider of sites on this machine."""

    name = "local"
    ready_limit_s = 300.0
    replaces_nodes = True
    bakes_images = True

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the network and the nodes."""
        return survey.graph(spec, site)

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the nodes, without addresses."""
        return survey.planned_hosts(spec, site)

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Return what this machine lacks: engine, tools, subnet, memory, disk; or a namesake."""
        return preflight.findings(context)

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Compare the graph with the containers and networks that carry the cluster's labels."""
        return survey.changes(context, survey.survey(context))

    def apply(self, context: SiteContext) -> None:
        """Make, start and remove until the containers are those of the graph."""
        apply.apply(context)

    def power_on(self, context: SiteContext, names: Iterable[str]) -> None:
        """Start these nodes' containers: one that restarts stops."""
        apply.power_on(context, names)

    def replace(self, context: SiteContext, names: Iterable[str]) -> None:
        """Remove these nodes' containers, then make what is missing."""
        apply.replace(context, names)

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that have answered once, running or not."""
        return survey.hosts(context, survey.survey(context))

    def destroy(self, context: SiteContext) -> None:
        """Remove everything with the cluster's name and id on this site, and its keys."""
        apply.destroy(context)

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return everything with the cluster's labels."""
        return apply.existing(context)

    def ids_in_use(self, context: SiteContext) -> frozenset[str]:
        """Return the ids that this machine's containers and networks of the name carry."""
        return survey.ids_in_use(context)

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Make elastic nodes; the names, which are unique, make it idempotent."""
        return Grown(hosts=apply.grow(context, pool, names, token))

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """Remove elastic nodes."""
        apply.shrink(context, names)

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:  # noqa: ARG002  # no market
        """Report that a node costs nothing and that capacity is not limited."""
        usd = faults.injected().usd_per_hour
        return (Offer(pool=pool, available=None, usd_per_hour=usd, source="this machine", age_s=0),)

    def base_digest(self, spec: ClusterSpec, site: str) -> str:  # noqa: ARG002  # one base for all
        """Return the hash of the base image's inputs."""
        return base_image.base_digest()

    def has_image(self, context: SiteContext, key: str) -> bool:
        """Return whether an image was baked under this key on this machine."""
        return golden.has_image(context, key)

    def start_builder(self, context: SiteContext, key: str) -> Host:
        """Start one node from the base image, built where it is missing."""
        return golden.start_builder(context, key)

    def commit_builder(self, context: SiteContext, key: str) -> None:
        """Make the builder's disk the image `key`."""
        golden.commit_builder(context, key)

    def discard_builder(self, context: SiteContext, key: str) -> None:  # noqa: ARG002  # one a site
        """Remove the site's builder, where there is one."""
        golden.discard_builder(context)
