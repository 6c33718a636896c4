"""The OCI provider: what stays is Pulumi's, what bursts is launched, what exists is asked."""

# ruff: noqa: PLC0415  # plans and SDKs are imported by what needs them

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec
from ..provider import Leftover, Offer, Purchase, PurchaseOption, SiteContext
from ..pulumi.command import require
from ..pulumi.provider import CloudProvider
from ..pulumi.recorded import RecordedGraph
from .api import Api

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog
    from .session import Session


class OciProvider(CloudProvider["Session"]):
    """Provider of sites on OCI."""

    name = "oci"

    def __init__(self, catalog: Catalog | None = None, api: Api | None = None) -> None:
        """Use a catalog; default: gcluster's own. `api` is asked instead of OCI, for tests."""
        super().__init__(catalog)
        self._api = api

    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        from .plan.pools import pool_plan

        return pool_plan(spec, pool, self._catalog()).image.user

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return the options of a pool, each in all its domains before the next, by the catalog."""
        from .plan.purchase import purchase_options

        return purchase_options(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the instances, cluster networks and memory clusters of the program buy."""
        from .plan.purchase import purchases

        return purchases(spec, site, self._catalog())

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Ask OCI what stands in the way of `up`."""
        from .preflight.questions import preflight

        session = self._session(context)
        return preflight(session.api, context.spec, session.plan, self._catalog())

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that exist, with the keys on their consoles."""
        session = self._session(context)
        return session.hosts(session.machines())

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return each option's price by the catalog, and what a reservation has left."""
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

    def _leftovers(self, session: Session) -> tuple[Leftover, ...]:
        from .leftovers import leftovers

        return leftovers(session.api, session.plan, self._catalog())

    def _end_elastic(self, session: Session) -> dict[str, str]:
        from .elastic import terminate

        elastic = {m.host: m.id for m in session.machines() if m.token}
        terminate(session.api, list(elastic.values()))
        return elastic

    def _existing_hosts(self, session: Session, pool: str) -> Collection[str]:
        del pool
        return {machine.host for machine in session.machines()}

    def _grow(self, session: Session, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        from .elastic import grow

        started = grow(session.api, session.plan, session.plan.pool(pool), wanted, token)
        return {machine.host: machine.id for machine in started}

    def _is_left(self, session: Session, pool: str, missing: list[str], token: str) -> bool:
        del pool, missing
        return any(machine.token == token for machine in session.machines())

    def _hosts_of(self, session: Session, machines: Mapping[str, str]) -> tuple[Host, ...]:
        there, ids = session.machines(), set(machines.values())
        return session.hosts(there, of=[machine for machine in there if machine.id in ids])

    def _shrink(self, session: Session, names: set[str]) -> dict[str, str]:
        from .elastic import shrink

        return dict(shrink(session.api, session.plan, names))
