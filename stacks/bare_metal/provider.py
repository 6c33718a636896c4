"""Bare metal: returns the hosts that the spec names, and provisions nothing."""

from __future__ import annotations

from collections.abc import Iterable

from ...inventory.bare_metal import bare_metal_hosts
from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec
from ..provider import (
    Grown,
    Leftover,
    Provider,
    ProviderError,
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    SiteEvent,
    provider_error,
)


class BareMetalProvider(Provider):
    """The provider of sites with existing machines."""

    name = "bare-metal"
    kind = "bare metal"

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the hosts as resources that are only ever kept."""
        return ResourceGraph(
            site=site,
            provider=self.name,
            resources=tuple(
                Resource(
                    kind="host",
                    name=host.name,
                    pool=host.pool,
                    properties={"address": host.address, "machine": host.machine},
                )
                for host in bare_metal_hosts(spec, site)
            ),
        )

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the hosts that the spec names."""
        return bare_metal_hosts(spec, site)

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:  # noqa: ARG002  # nothing is made
        """Return nothing: whether the hosts are reachable is checked by SSH."""
        return ()

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Keep every host."""
        return tuple(
            ResourceChange(effect="keep", resource=resource)
            for resource in self.graph(context.spec, context.site).resources
        )

    def apply(self, context: SiteContext) -> None:
        """Report the hosts as existing; nothing is created."""
        hosts = len(self.hosts(context))
        context.emit(
            SiteEvent(
                site=context.site, done=hosts, total=hosts, what=f"{hosts} hosts named by the spec"
            )
        )

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the hosts that the spec names."""
        return bare_metal_hosts(context.spec, context.site)

    def destroy(self, context: SiteContext) -> None:
        """Leave the hosts as they are."""

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:  # noqa: ARG002  # nothing is made
        """Return nothing: no host here belongs to the cluster's ledger."""
        return ()

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:  # noqa: ARG002
        """Refuse: hosts can't be made here."""
        raise self._fixed(context.site)

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:  # noqa: ARG002
        """Refuse: hosts can't be given back here."""
        raise self._fixed(context.site)

    def _fixed(self, site: str) -> ProviderError:
        return provider_error(
            "GC917",
            f'site "{site}" is {self.kind}: its hosts can\'t be made or given back',
            hint="name the hosts in the pool's `hosts`, or use a site that makes machines",
        )
