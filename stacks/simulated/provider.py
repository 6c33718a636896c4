"""The simulated provider: the whole contract over a file, with bulk calls, retries and tokens."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping

import msgspec

from ...inventory.hosts import Host, SshTarget, pool_host_names
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec, PoolRole
from ...schemas.structure.decoding import convert
from ..provider import (
    Grown,
    Leftover,
    Offer,
    Provider,
    ProviderError,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    SiteEvent,
    provider_error,
)
from . import fleet, stamps

_TRIES = 4
"""Create calls for one node before it is given up."""


class SimulatedProvider(Provider):
    """Provider of sites that exist only in a file."""

    name = "simulated"
    replaces_nodes = True

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the nodes."""
        nodes = (
            fleet.resource(spec, name, node)
            for name, pool in spec.pools.items()
            if pool.site == site
            for node in pool_host_names(name, pool)
        )
        return ResourceGraph(site=site, provider=self.name, resources=tuple(nodes))

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the nodes, without addresses."""
        return tuple(
            _host(
                site,
                name=node.name,
                pool=node.pool,
                role=spec.pools[node.pool].role,
                machine=spec.pools[node.pool].machine,
            )
            for node in self.graph(spec, site).resources
            if node.pool is not None
        )

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Return whether the site has room for the spec."""
        most = fleet.described(context).max_nodes
        wanted = len(self.graph(context.spec, context.site).resources)
        if most is None or wanted <= most:
            return ()
        return provider_error(
            "GC918", f'site "{context.site}" has {most} nodes, the spec requests {wanted}'
        ).diagnostics

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Compare the graph, but for what shall not be there, with the file."""
        graph = self.graph(context.spec, context.site)
        wanted = (r for r in graph.resources if context.purchased.get(r.name) != "")
        graph = msgspec.structs.replace(graph, resources=tuple(wanted))
        return fleet.changes(graph, fleet.cloud(context).list(), context.purchased)

    def apply(self, context: SiteContext) -> None:
        """Create what is missing in bulk, again where a call failed; replace what never booted.

        Raises:
            ProviderError: one finding for each node that could not be had.
        """
        cloud = fleet.cloud(context)
        wanted = {r.name for r in self.graph(context.spec, context.site).resources}
        others = fleet.elastic(context.spec, context.site)
        fleet.settle(context, cloud, mine=lambda name: name not in others, wanted=wanted)
        for _ in range(_TRIES):
            acts = [c for c in self.preview(context) if c.effect != "keep"]
            gone = [c.resource.name for c in acts if c.effect in {"replace", "delete"}]
            left = fleet.delete(context, cloud, gone)
            made = [c.resource for c in acts if c.effect in {"create", "replace"}]
            missing = [resource for resource in made if resource.name not in left]
            if not missing and not left:
                return
            fleet.create(context, cloud, missing)
        failed = [c for c in self.preview(context) if c.effect != "keep"]
        if failed:
            raise ProviderError(*(fleet.finding(c) for c in failed))

    def replace(self, context: SiteContext, names: Iterable[str]) -> None:
        """Delete these nodes, then create what is missing."""
        fleet.delete(context, fleet.cloud(context), names)
        self.apply(context)

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that booted, in spec order; elastic ones last."""
        nodes = fleet.cloud(context).list()
        order = [r.name for r in self.graph(context.spec, context.site).resources]
        order += sorted(nodes.keys() - set(order))
        return tuple(
            _host(
                context.site,
                name=name,
                pool=nodes[name].pool,
                role=convert(nodes[name].role, PoolRole),
                machine=nodes[name].machine,
                address=nodes[name].address,
            )
            for name in order
            if name in nodes and nodes[name].booted
        )

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return every node, booted or not."""
        return tuple(
            Leftover(kind="node", name=n.name, provider_id=n.id, usd_per_hour=0.0)
            for n in fleet.cloud(context).list().values()
        )

    def destroy(self, context: SiteContext) -> None:
        """Delete every node, and the files when all are gone."""
        cloud = fleet.cloud(context)
        fleet.settle(context, cloud)
        gone = list(cloud.list())
        fleet.delete(context, cloud, gone)
        if not cloud.list():
            shutil.rmtree(fleet.directory(context), ignore_errors=True)
        if gone:
            what = f"{len(gone)} simulated nodes are gone"
            event = SiteEvent(site=context.site, done=len(gone), total=len(gone), what=what)
            context.emit(event)

    def kept_stamps(
        self, context: SiteContext, hosts: Iterable[str]
    ) -> Mapping[str, Mapping[str, str]]:
        """Return what is in the file; a node that was never stamped carries nothing."""
        stored = stamps.read_stamps(context)
        return {host: stored.get(host, {}) for host in hosts}

    def keep_stamps(self, context: SiteContext, done: Mapping[str, Mapping[str, str]]) -> None:
        """Write them into the file."""
        stamps.write_stamps(context, done)

    def listing_lag_s(self, context: SiteContext) -> float:
        """Return the spec's faults."""
        return fleet.cloud(context).listing_lag_s

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Create elastic nodes in one bulk call; those that exist are not created again."""
        wanted = list(names)
        cloud = fleet.cloud(context)
        fleet.settle(context, cloud, mine=frozenset(wanted).__contains__, wanted=wanted)
        there = cloud.list()
        missing = [fleet.resource(context.spec, pool, n) for n in wanted if n not in there]
        fleet.create(context, cloud, missing, elastic=token)
        return Grown(hosts=tuple(h for h in self.hosts(context) if h.name in set(wanted)))

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """Delete elastic nodes; raises ProviderError for nodes of the spec, and for those left."""
        wanted = set(names)
        fixed = [r.name for r in self.graph(context.spec, context.site).resources]
        kept = wanted.intersection(fixed)
        if kept:
            raise provider_error("GC917", f"node {min(kept)} belongs to the spec, not elastic")
        left = fleet.delete(context, fleet.cloud(context), wanted)
        if left:
            raise provider_error(
                "GC918", f"node {left[0]} is still there", hint="run the same command again"
            )

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return what is left of the site's nodes."""
        most = fleet.described(context).max_nodes
        left = None if most is None else most - len(fleet.cloud(context).list())
        return (Offer(pool=pool, available=left, usd_per_hour=0.0, source="simulated", age_s=0),)


def _host(
    site: str,
    *,
    name: str,
    pool: str,
    role: PoolRole,
    machine: str | None,
    address: str = "",
) -> Host:
    return Host(
        name=name,
        site=site,
        pool=pool,
        role=role,
        machine=machine,
        address=address,
        ssh=SshTarget(user="nobody"),
        connection="simulated",
    )
