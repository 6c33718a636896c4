"""The Google Cloud provider: what stays is Pulumi's, what bursts is bulkInsert's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.inventory.hosts import Host, SshTarget, pool_host_names
from gcluster.stacks.bursts import burst
from gcluster.stacks.provider import Grown, Leftover, Offer, Resource, ResourceChange, ResourceGraph
from gcluster.stacks.pulumi.labels import label_value
from gcluster.stacks.pulumi.site_graph import site_graph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.gcp.api import Api
    from gcluster.stacks.gcp.session import Session
    from gcluster.stacks.laddered import Purchase, RungOffer
    from gcluster.stacks.provider import SiteContext
    from gcluster.stacks.pulumi.recorded import RecordedGraph

_STACK = "stack"
"""Kind under which the ledger knows a site's stack: Pulumi's checkpoint owns what is in it."""


class GcpProvider:
    """Provider of sites on Google Cloud. What is heavy is imported when it is asked to act."""

    name = "gcp"

    def __init__(self, catalog: Catalog | None = None, api: Api | None = None) -> None:
        """Use a catalog, default: gcluster's own; `api` is for tests."""
        self._given = catalog
        self._api = api

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the resources of the recorded program; raises ProviderError without the extra."""
        return site_graph(self.record(spec, site), provider=self.name, site=site)

    def record(self, spec: ClusterSpec, site: str, *, preview: bool = False) -> RecordedGraph:
        """Return the site's program as recorded offline, with its components and inputs."""
        from gcluster.stacks.pulumi.extras import require  # noqa: PLC0415  # only here

        require("gcp")
        from gcluster.stacks.gcp.recording import record_site  # noqa: PLC0415  # 2 s

        return record_site(spec, site, self._catalog(), preview=preview)

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the nodes that are always there, without addresses."""
        from gcluster.stacks.gcp.layout import login_user  # noqa: PLC0415  # only here
        from gcluster.stacks.gcp.pools import machine_of  # noqa: PLC0415  # as above

        ssh = SshTarget(user=login_user(spec, site))
        return tuple(
            Host(name=node, site=site, pool=name, role=pool.role, machine=machine_of(pool), ssh=ssh)
            for name, pool in spec.pools.items()
            if pool.site == site
            for node in pool_host_names(name, pool)
        )

    def graph_taken(self, context: SiteContext) -> ResourceGraph:
        """Return the resources with nodes on the rungs that were taken; raises ProviderError."""
        from gcluster.stacks.pulumi.extras import require  # noqa: PLC0415  # beside the next

        require("gcp")
        from gcluster.stacks.gcp.recording import record_site  # noqa: PLC0415  # an SDK

        recorded = record_site(
            context.spec,
            context.site,
            self._catalog(),
            taken=context.taken,
        )
        return site_graph(recorded, provider=self.name, site=context.site)

    def rungs(self, spec: ClusterSpec, site: str, pool: str) -> tuple[RungOffer, ...]:
        """Return the rungs of a pool, each in all its zones before the next, by the catalog."""
        from gcluster.stacks.gcp.ladder import rungs  # noqa: PLC0415  # only here

        return rungs(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the machines and queued requests of the program buy."""
        from gcluster.stacks.gcp.ladder import purchases  # noqa: PLC0415  # only here

        return purchases(spec, site)

    def equip(self) -> None:
        """Find the engine: GC965 where it isn't, GC967 without the extra."""
        from gcluster.stacks.pulumi.command import equip  # noqa: PLC0415  # imports the engine's SDK

        equip(self.name)

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Ask Google what stands in the way of `up`."""
        from gcluster.stacks.gcp.preflight import preflight  # noqa: PLC0415  # only here

        session = self._session(context)
        return preflight(session.api, context.spec, session.plan, self._catalog())

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Ask the engine what it would do."""
        session = self._session(context)
        return session.preview(lambda: self.graph_taken(context))

    def apply(self, context: SiteContext) -> None:
        """Read back what is there, then make it so; raises ProviderError."""
        from gcluster.stacks.gcp.queued import name_queued  # noqa: PLC0415  # only here

        resource = Resource(kind=_STACK, name=context.site)
        intent = context.ledger.intend(context.site, resource)
        session = self._session(context)
        session.bring_up(len(self.graph(context.spec, context.site).resources))
        name_queued(session.api, session.plan, session.machines())
        context.ledger.created(intent, f"{context.cluster_id}/{context.site}")

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that exist, with the keys that they told."""
        from gcluster.stacks.gcp.queued import name_queued  # noqa: PLC0415  # only here

        session = self._session(context)
        machines = session.machines()
        if name_queued(session.api, session.plan, machines):
            machines = session.machines()
        return session.hosts(machines)

    def refresh(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return everything with the site's marks."""
        return self.sweep(context)

    def destroy(self, context: SiteContext) -> None:
        """End elastic nodes, then the stack but for data that isn't named in `delete_data`."""
        from gcluster.stacks.gcp.elastic import delete  # noqa: PLC0415  # only here

        session = self._session(context)
        delete(session.api, [machine for machine in session.machines() if machine.token])
        session.take_down()
        stack = f"{context.cluster_id}/{context.site}"
        context.ledger.deleted(context.site, f"{_STACK}/{context.site}", stack)

    def cancel(self, context: SiteContext) -> bool:
        """Free the stack of a run that was killed."""
        return self._session(context).cancel()

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return whatever carries the site's marks."""
        from gcluster.stacks.gcp.leftovers import leftovers  # noqa: PLC0415  # only here

        session = self._session(context)
        return session.told_apart(leftovers(session.api, session.plan, self._catalog()))

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Make elastic nodes by one bulk call; `token` finds them again after a kill."""
        from gcluster.stacks.gcp.elastic import grow  # noqa: PLC0415  # only here

        session = self._session(context)
        wanted = list(names)
        intents = context.ledger.intend_many(context.site, _missing(session, pool, wanted))
        label = label_value(token)
        with burst(
            context.ledger,
            intents.values(),
            is_left=lambda: any(machine.token == label for machine in session.machines()),
        ):
            made = grow(session.api, session.plan, session.plan.pool(pool), wanted, token)
        ids = {f"node/{name}": machine.id for name, machine in zip(wanted, made, strict=False)}
        context.ledger.created_many({intents[key]: ids[key] for key in intents if key in ids})
        return Grown(hosts=session.hosts(session.machines(), of=made))

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """End elastic nodes; raises ProviderError for nodes of the spec."""
        from gcluster.stacks.gcp.elastic import shrink  # noqa: PLC0415  # only here

        session = self._session(context)
        for name, machine in shrink(session.api, session.plan, names).items():
            context.ledger.deleted(context.site, f"node/{name}", machine)

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return each rung's price and what a reservation has left."""
        from gcluster.stacks.gcp.offers import offers  # noqa: PLC0415  # only here

        session = self._session(context)
        return offers(session.api, session.plan, session.plan.pool(pool), self._catalog())

    def _session(self, context: SiteContext) -> Session:
        from gcluster.stacks.gcp.session import Session  # noqa: PLC0415  # only here
        from gcluster.stacks.pulumi.extras import require  # noqa: PLC0415  # as above

        require("gcp")
        return Session(context, self._catalog(), self._api)

    def _catalog(self) -> Catalog:
        if self._given is None:
            from gcluster.schemas.catalog import load_catalog  # noqa: PLC0415  # where it is needed

            self._given = load_catalog()
        return self._given


def _missing(session: Session, pool: str, names: Iterable[str]) -> list[Resource]:
    """Return the nodes that don't exist: only those are intended."""
    from gcluster.stacks.gcp.hosts import host_of  # noqa: PLC0415  # only here

    there = {host_of(session.plan, machine) for machine in session.machines()}
    return [Resource(kind="node", name=name, pool=pool) for name in names if name not in there]
