"""The Google Cloud provider: what stays is Pulumi's, what bursts is bulkInsert's."""

# ruff: noqa: PLC0415  # plans and SDKs are imported by what needs them

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec, Pool
from ..provider import Leftover, Offer, Purchase, PurchaseOption, SiteContext
from ..pulumi.command import require
from ..pulumi.names import label_value
from ..pulumi.provider import CloudProvider
from ..pulumi.recorded import RecordedGraph
from .plan.layout import login_user
from .plan.pools import machine_of
from .plan.purchase import purchase_options, purchases

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog
    from .api import Api
    from .session import Session


class GcpProvider(CloudProvider["Session"]):
    """Provider of sites on Google Cloud."""

    name = "gcp"

    def __init__(self, catalog: Catalog | None = None, api: Api | None = None) -> None:
        """Use a catalog, default: gcluster's own; `api` is for tests."""
        super().__init__(catalog)
        self._api = api

    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        return login_user(spec, spec.pools[pool].site)

    def _machine_of(self, pool: Pool) -> str:
        return machine_of(pool)

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return the options of a pool, each in all its zones before the next, by the catalog."""
        return purchase_options(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the machines and queued requests of the program buy."""
        return purchases(spec, site)

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Ask Google what stands in the way of `up`."""
        from .preflight.questions import preflight

        session = self._session(context)
        return preflight(session.api, context.spec, session.plan, self._catalog())

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that exist, with the keys that they told."""
        from .elastic import name_queued

        session = self._session(context)
        machines = session.machines()
        if name_queued(session.api, session.plan, machines):
            machines = session.machines()
        return session.hosts(machines)

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return each option's price and what a reservation has left."""
        from .offers import offers

        session = self._session(context)
        return offers(session.api, session.plan, session.plan.pool(pool), self._catalog())

    def _session(self, context: SiteContext) -> Session:
        require(self.name)
        from .session import Session

        return Session(context, self._catalog(), self._api)

    def _record(
        self,
        spec: ClusterSpec,
        site: str,
        *,
        preview: bool = False,
        purchased: Mapping[str, str] | None = None,
        buys: Collection[str] | None = None,
    ) -> RecordedGraph:
        from .program.site import record_site

        del buys  # no option of this cloud is bought ahead
        return record_site(spec, site, self._catalog(), preview=preview, purchased=purchased)

    def _bring_up(self, session: Session, context: SiteContext, total: int) -> None:
        from .elastic import name_queued

        super()._bring_up(session, context, total)
        name_queued(session.api, session.plan, session.machines())

    def _leftovers(self, session: Session) -> tuple[Leftover, ...]:
        from .leftovers import leftovers

        return leftovers(session.api, session.plan, self._catalog())

    def _end_elastic(self, session: Session) -> dict[str, str]:
        from .elastic import delete
        from .hosts import host_of

        elastic = [machine for machine in session.machines() if machine.token]
        delete(session.api, elastic)
        return {host_of(session.plan, machine): machine.id for machine in elastic}

    def _existing_hosts(self, session: Session, pool: str) -> Collection[str]:
        from .hosts import host_of

        del pool
        return {host_of(session.plan, machine) for machine in session.machines()}

    def _grow(self, session: Session, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        from .elastic import grow

        made = grow(session.api, session.plan, session.plan.pool(pool), wanted, token)
        return {name: machine.id for name, machine in zip(wanted, made, strict=False)}

    def _is_left(self, session: Session, pool: str, missing: list[str], token: str) -> bool:
        del pool, missing
        label = label_value(token)
        return any(machine.token == label for machine in session.machines())

    def _hosts_of(self, session: Session, machines: Mapping[str, str]) -> tuple[Host, ...]:
        there, ids = session.machines(), set(machines.values())
        return session.hosts(there, of=[machine for machine in there if machine.id in ids])

    def _shrink(self, session: Session, names: set[str]) -> dict[str, str]:
        from .elastic import shrink

        return dict(shrink(session.api, session.plan, names))
