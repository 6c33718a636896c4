"""The OCI provider: what stays is Pulumi's, what bursts is launched, what exists is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.inventory.hosts import Host, SshTarget, pool_host_names
from gcluster.stacks.provider import (
    Grown,
    Leftover,
    Offer,
    ProviderError,
    Resource,
    ResourceChange,
    ResourceGraph,
)
from gcluster.stacks.pulumi.extras import require
from gcluster.stacks.pulumi.site_graph import site_graph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.laddered import Purchase, RungOffer
    from gcluster.stacks.oci.api import Api
    from gcluster.stacks.oci.session import Session
    from gcluster.stacks.provider import SiteContext
    from gcluster.stacks.pulumi.recorded import RecordedGraph


class OciProvider:
    """Provider of sites on OCI. What is heavy is imported when it is asked to act."""

    name = "oci"

    def __init__(self, catalog: Catalog | None = None, api: Api | None = None) -> None:
        """Use a catalog; default: gcluster's own. `api` is asked instead of OCI, for tests."""
        self._given = catalog
        self._api = api

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the resources of the recorded program; raises ProviderError without the extra."""
        return site_graph(self.record(spec, site), provider=self.name, site=site)

    def record(self, spec: ClusterSpec, site: str, *, preview: bool = False) -> RecordedGraph:
        """Return the site's program as recorded offline, with its components and inputs."""
        require(self.name)
        from gcluster.stacks.oci.recording import record_site  # noqa: PLC0415  # 1 s

        return record_site(spec, site, self._catalog(), preview=preview)

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the nodes that are always there, without addresses."""
        from gcluster.stacks.oci.pools import pool_plan  # noqa: PLC0415  # only here

        found: list[Host] = []
        for name, pool in spec.pools.items():
            if pool.site == site:
                ssh = SshTarget(user=pool_plan(spec, name, self._catalog()).image.user)
                found += [
                    Host(
                        name=n, site=site, pool=name, role=pool.role, machine=pool.machine, ssh=ssh
                    )
                    for n in pool_host_names(name, pool)
                ]
        return tuple(found)

    def rungs(self, spec: ClusterSpec, site: str, pool: str) -> tuple[RungOffer, ...]:
        """Return the rungs of a pool, each in all its domains before the next, by the catalog."""
        from gcluster.stacks.oci.ladder import rungs  # noqa: PLC0415  # only here

        return rungs(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the instances, cluster networks and memory clusters of the program buy."""
        from gcluster.stacks.oci.ladder import purchases  # noqa: PLC0415  # only here

        return purchases(spec, site, self._catalog())

    def equip(self) -> None:
        """Find the engine: GC965 where it isn't, GC967 without the extra."""
        from gcluster.stacks.pulumi.command import equip  # noqa: PLC0415  # imports the engine's SDK

        equip(self.name)

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Ask OCI what stands in the way of `up`."""
        from gcluster.stacks.oci.preflight import preflight  # noqa: PLC0415  # the SDK

        session = self._session(context)
        return preflight(session.api, context.spec, session.plan, self._catalog())

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Ask the engine what it would do."""
        graph = self.graph
        return self._session(context).preview(lambda: graph(context.spec, context.site))

    def apply(self, context: SiteContext) -> None:
        """Read back what is there, then make it so; raises ProviderError."""
        total = len(self.graph(context.spec, context.site).resources)
        intent = context.ledger.intend(context.site, Resource(kind="stack", name=context.site))
        self._session(context).bring_up(total)
        context.ledger.created(intent, _stack_id(context))

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that exist, with the keys on their consoles."""
        session = self._session(context)
        return session.hosts(session.machines())

    def refresh(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return everything with the site's tags."""
        return self.sweep(context)

    def destroy(self, context: SiteContext) -> None:
        """End elastic nodes, then the stack but for data that isn't named in `delete_data`."""
        from gcluster.stacks.oci.elastic import terminate  # noqa: PLC0415  # the SDK

        session = self._session(context)
        terminate(session.api, [m.id for m in session.machines() if m.token])
        session.take_down()
        context.ledger.deleted(context.site, f"stack/{context.site}", _stack_id(context))

    def cancel(self, context: SiteContext) -> bool:
        """Free the stack of a run that was killed."""
        return self._session(context).cancel()

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return whatever carries the site's tags."""
        from gcluster.stacks.oci.leftovers import leftovers  # noqa: PLC0415  # the SDK

        session = self._session(context)
        return session.told_apart(leftovers(session.api, session.plan, self._catalog()))

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Launch elastic nodes, all or none; `token` finds them again after a kill."""
        from gcluster.stacks.oci.elastic import grow  # noqa: PLC0415  # the SDK

        session, wanted = self._session(context), list(names)
        there = {machine.host for machine in session.machines()}
        missing = [Resource(kind="node", name=n, pool=pool) for n in wanted if n not in there]
        intents = context.ledger.intend_many(context.site, missing)
        try:
            started = grow(session.api, session.plan, session.plan.pool(pool), wanted, token)
        except ProviderError as error:
            if not any(machine.token == token for machine in session.machines()):
                for intent in intents.values():
                    context.ledger.failed(intent, str(error))
            raise  # what is left keeps its intent open: the next call with the token goes on
        made = {f"node/{machine.host}": machine.id for machine in started}
        context.ledger.created_many({i: made[key] for key, i in intents.items() if key in made})
        return Grown(hosts=session.hosts(session.machines(), of=started))

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """End elastic nodes; raises ProviderError for nodes of the spec."""
        from gcluster.stacks.oci.elastic import shrink  # noqa: PLC0415  # the SDK

        session = self._session(context)
        for name, instance in shrink(session.api, session.plan, names).items():
            context.ledger.deleted(context.site, f"node/{name}", instance)

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return each rung's price by the catalog, and what a reservation has left."""
        from gcluster.stacks.oci.offers import offers  # noqa: PLC0415  # the SDK

        session = self._session(context)
        return offers(session.api, session.plan, session.plan.pool(pool), self._catalog())

    def _session(self, context: SiteContext) -> Session:
        from gcluster.stacks.oci.session import Session  # noqa: PLC0415  # the SDK

        return Session(context, self._catalog(), self._api)

    def _catalog(self) -> Catalog:
        if self._given is None:
            from gcluster.schemas.catalog import load_catalog  # noqa: PLC0415  # where it is needed

            self._given = load_catalog()
        return self._given


def _stack_id(context: SiteContext) -> str:
    return f"{context.cluster_id}/{context.site}"
