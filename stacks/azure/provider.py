"""The Azure provider: Pulumi makes what stays, scale sets burst, what exists is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.inventory.hosts import Host, SshTarget, pool_host_names
from gcluster.stacks.bursts import burst
from gcluster.stacks.provider import Grown, Leftover, Offer, Resource, ResourceChange, ResourceGraph
from gcluster.stacks.pulumi.site_graph import site_graph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.azure.session import Session
    from gcluster.stacks.laddered import Purchase, RungOffer
    from gcluster.stacks.provider import SiteContext
    from gcluster.stacks.pulumi.recorded import RecordedGraph

_STACK = "stack"
"""Kind under which the ledger knows a site's stack: Pulumi's checkpoint owns what is in it."""


class AzureProvider:
    """Provider of sites on Azure. What is heavy is imported when it is asked to act."""

    name = "azure"

    def __init__(self, catalog: Catalog | None = None) -> None:
        """Use a catalog; default: gcluster's own."""
        self._given = catalog

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the resources of the recorded program; raises ProviderError without the extra."""
        return site_graph(self.record(spec, site), provider=self.name, site=site)

    def record(self, spec: ClusterSpec, site: str, *, preview: bool = False) -> RecordedGraph:
        """Return the site's program as recorded offline, with its components and inputs."""
        from gcluster.stacks.pulumi.extras import require  # noqa: PLC0415  # beside the next

        require("azure")
        from gcluster.stacks.azure.recording import record_site  # noqa: PLC0415  # 1 s

        return record_site(spec, site, self._catalog(), preview=preview)

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the nodes that are always there, without addresses."""
        from gcluster.stacks.azure.facts import facts  # noqa: PLC0415  # only here
        from gcluster.stacks.azure.layout import described  # noqa: PLC0415  # only here

        user = described(spec, site).ssh.user or facts().user
        return tuple(
            Host(
                name=node,
                site=site,
                pool=name,
                role=pool.role,
                machine=pool.machine or facts().machine,
                ssh=SshTarget(user=user),
            )
            for name, pool in spec.pools.items()
            if pool.site == site
            for node in pool_host_names(name, pool)
        )

    def graph_taken(self, context: SiteContext) -> ResourceGraph:
        """Return the resources with nodes on the rungs that were taken; raises ProviderError."""
        from gcluster.stacks.pulumi.extras import require  # noqa: PLC0415  # beside the next

        require("azure")
        from gcluster.stacks.azure.recording import record_site  # noqa: PLC0415  # an SDK

        recorded = record_site(
            context.spec,
            context.site,
            self._catalog(),
            taken=context.taken,
        )
        return site_graph(recorded, provider=self.name, site=context.site)

    def rungs(self, spec: ClusterSpec, site: str, pool: str) -> tuple[RungOffer, ...]:
        """Return the rungs of a pool, each in all its zones before the next, by the catalog."""
        from gcluster.stacks.azure.ladder import rungs  # noqa: PLC0415  # only here

        return rungs(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the scale sets and machines of the program buy."""
        from gcluster.stacks.azure.ladder import purchases  # noqa: PLC0415  # only here

        return purchases(spec, site, self._catalog())

    def equip(self) -> None:
        """Find the engine: GC965 where it isn't, GC967 without the extra."""
        from gcluster.stacks.pulumi.command import equip  # noqa: PLC0415  # imports the engine's SDK

        equip(self.name)

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Ask Azure what stands in the way of `up`."""
        session = self._session(context)
        from gcluster.stacks.azure.preflight import preflight  # noqa: PLC0415  # the SDK

        return preflight(session.api, context.spec, session.plan, self._catalog())

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Ask the engine what it would do."""
        session = self._session(context)
        return session.preview(lambda: self.graph_taken(context))

    def apply(self, context: SiteContext) -> None:
        """Read back what is there, then make it so; raises ProviderError.

        Machines beyond the spec go first, by name: Azure would choose for itself.
        """
        session = self._session(context)
        from gcluster.stacks.azure.elastic import fill, trim  # noqa: PLC0415  # the SDK

        resource = Resource(kind=_STACK, name=context.site)
        intent = context.ledger.intend(context.site, resource)
        sets = session.sets()
        for pool in session.plan.pools:
            trim(sets, pool)
        session.bring_up(len(self.graph(context.spec, context.site).resources))
        sets = session.sets()
        without = {node for node, rung in context.taken.items() if not rung}
        for pool in session.plan.pools:
            for part in pool.sets:
                fill(sets, pool, part.name, without)
        context.ledger.created(intent, f"{context.cluster_id}/{context.site}")

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that exist, with the keys that they told through run-command."""
        return self._session(context).hosts()

    def refresh(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return everything with the site's tags."""
        return self.sweep(context)

    def destroy(self, context: SiteContext) -> None:
        """Take the stack down but for data that isn't named in `delete_data`."""
        session = self._session(context)
        elastic = session.elastic_nodes()
        session.take_down()
        for name, number in elastic.items():
            context.ledger.deleted(context.site, f"node/{name}", number)
        stack = f"{context.cluster_id}/{context.site}"
        context.ledger.deleted(context.site, f"{_STACK}/{context.site}", stack)

    def cancel(self, context: SiteContext) -> bool:
        """Free the stack of a run that was killed."""
        return self._session(context).cancel()

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return whatever carries the site's tags."""
        session = self._session(context)
        from gcluster.stacks.azure.leftovers import leftovers  # noqa: PLC0415  # the SDK

        return session.told_apart(leftovers(session.api, session.plan))

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Add elastic nodes by one change of capacity; `token` finds them again after a kill."""
        session = self._session(context)
        from gcluster.stacks.azure.elastic import grow, is_left  # noqa: PLC0415  # the SDK

        wanted = list(names)
        sets = session.sets()
        there = sets.look(sets.of_pool(pool)).book.ids
        nodes = [Resource(kind="node", name=n, pool=pool) for n in wanted if n not in there]
        intents = context.ledger.intend_many(context.site, nodes)
        missing = [node.name for node in nodes]
        with burst(
            context.ledger,
            intents.values(),
            is_left=lambda: is_left(session.sets(), pool, missing, token),
        ):
            came = grow(sets, session.plan.pool(pool), wanted, token)
        created = {intents[f"node/{n}"]: came[n] for n in came if f"node/{n}" in intents}
        context.ledger.created_many(created)
        return Grown(hosts=session.hosts(came))

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """End elastic nodes; raises ProviderError for nodes of the spec."""
        session = self._session(context)
        from gcluster.stacks.azure.elastic import shrink  # noqa: PLC0415  # the SDK
        from gcluster.stacks.provider import provider_error  # noqa: PLC0415  # beside it

        wanted = set(names)
        for pool in session.plan.pools:
            kept = wanted.intersection(pool.names)
            if kept:
                raise provider_error("GC917", f"node {min(kept)} belongs to the spec, not elastic")
        sets = session.sets()
        for pool in session.plan.pools:
            if not pool.elastic:
                continue
            for name, number in shrink(sets, pool, wanted).items():
                context.ledger.deleted(context.site, f"node/{name}", number)

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return each rung's price, asked now."""
        session = self._session(context)
        from gcluster.stacks.azure.offers import offers  # noqa: PLC0415  # only here

        return offers(session.plan, session.plan.pool(pool))

    def _session(self, context: SiteContext) -> Session:
        from gcluster.stacks.pulumi.extras import require  # noqa: PLC0415  # beside the next

        require("azure")
        from gcluster.stacks.azure.session import Session  # noqa: PLC0415  # the SDK

        return Session(context, self._catalog())

    def _catalog(self) -> Catalog:
        if self._given is None:
            from gcluster.schemas.catalog import load_catalog  # noqa: PLC0415  # where it is needed

            self._given = load_catalog()
        return self._given
