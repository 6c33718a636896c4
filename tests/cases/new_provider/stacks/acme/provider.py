"""Plans machines of Acme; it has no machines to give."""

# ruff: noqa: ARG002  # who has nothing to give needs to know nothing

from __future__ import annotations

from collections.abc import Iterable

from gcluster.inventory.hosts import Host, SshTarget, pool_host_names
from gcluster.schemas.catalog import Catalog, load_catalog
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.provider import (
    Grown,
    Leftover,
    Provider,
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    provider_error,
)


class AcmeProvider(Provider):
    """Implements the contract; what would make a machine says that it can't."""

    name = "acme"

    def __init__(self, catalog: Catalog | None = None) -> None:
        """Use a catalog; default: gcluster's own."""
        self.catalog = catalog or load_catalog()

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return a node for each host."""
        nodes = (
            Resource(kind="node", name=host.name, pool=host.pool)
            for host in self.planned_hosts(spec, site)
        )
        return ResourceGraph(site=site, provider=self.name, resources=tuple(nodes))

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the hosts of the site's pools."""
        return tuple(
            Host(
                name=host, site=site, pool=name, role=pool.role, machine=pool.machine,
                ssh=SshTarget(user="acme"),
            )
            for name, pool in spec.pools.items()
            if pool.site == site
            for host in pool_host_names(name, pool)
        )  # fmt: skip

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Return nothing."""
        return ()

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Make all."""
        graph = self.graph(context.spec, context.site)
        return tuple(ResourceChange(effect="create", resource=r) for r in graph.resources)

    def apply(self, context: SiteContext) -> None:
        """Refuse."""
        raise provider_error("GC960", "Acme has no machines")

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return nothing."""
        return ()

    def destroy(self, context: SiteContext) -> None:
        """Do nothing."""

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return nothing."""
        return ()

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Refuse."""
        raise provider_error("GC960", "Acme has no machines")

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """Do nothing."""
