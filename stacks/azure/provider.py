"""The Azure provider: Pulumi makes what stays, scale sets burst, what exists is asked."""

# ruff: noqa: PLC0415  # plans and SDKs are imported by what needs them

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec, Pool
from ..provider import Leftover, Offer, Purchase, PurchaseOption, SiteContext, provider_error
from ..pulumi.command import require
from ..pulumi.provider import CloudProvider
from ..pulumi.recorded import RecordedGraph
from .leftovers import leftovers
from .plan.facts import facts

if TYPE_CHECKING:
    from .session import Session


class AzureProvider(CloudProvider["Session"]):
    """Provider of sites on Azure."""

    name = "azure"

    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        from .plan.layout import described

        return described(spec, spec.pools[pool].site).ssh.user or facts().user

    def _machine_of(self, pool: Pool) -> str:
        return pool.machine or facts().machine

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return the options of a pool, each in all its zones before the next, by the catalog."""
        from .plan.purchase import purchase_options

        return purchase_options(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the scale sets and machines of the program buy."""
        from .plan.purchase import purchases

        return purchases(spec, site, self._catalog())

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Ask Azure what stands in the way of `up`."""
        session = self._session(context)
        from .preflight.questions import preflight

        return preflight(session.api, context.spec, session.plan, self._catalog())

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the nodes that exist, with the keys that they told through run-command."""
        return self._session(context).hosts()

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return each option's price, asked now."""
        session = self._session(context)
        from .offers import offers

        return offers(session.plan, session.plan.pool(pool))

    def _session(self, context: SiteContext) -> Session:
        require(self.name)
        from .session import Session

        return Session(context, self._catalog())

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
        """Let machines beyond the spec go first, by name: Azure would choose for itself."""
        from .elastic import fill, trim

        sets = session.sets()
        for pool in session.plan.pools:
            trim(sets, pool)
        super()._bring_up(session, context, total)
        sets = session.sets()
        without = {node for node, option in context.purchased.items() if not option}
        for pool in session.plan.pools:
            for part in pool.sets:
                fill(sets, pool, part.name, without)

    def _leftovers(self, session: Session) -> tuple[Leftover, ...]:

        return leftovers(session.api, session.plan, self._catalog())

    def _end_elastic(self, session: Session) -> dict[str, str]:
        """Name them only: they go with their scale sets, which are the stack's."""
        return session.elastic_nodes()

    def _existing_hosts(self, session: Session, pool: str) -> Collection[str]:
        sets = session.sets()
        return sets.look(sets.of_pool(pool)).name_table.ids.keys()

    def _grow(self, session: Session, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        from .elastic import grow

        return grow(session.sets(), session.plan.pool(pool), wanted, token)

    def _is_left(self, session: Session, pool: str, missing: list[str], token: str) -> bool:
        from .elastic import is_left

        return is_left(session.sets(), pool, missing, token)

    def _hosts_of(self, session: Session, machines: Mapping[str, str]) -> tuple[Host, ...]:
        return session.hosts(machines)

    def _shrink(self, session: Session, names: set[str]) -> dict[str, str]:
        from .elastic import shrink

        for pool in session.plan.pools:
            if kept := names.intersection(pool.names):
                raise provider_error("GC917", f"node {min(kept)} belongs to the spec, not elastic")
        sets, gone = session.sets(), dict[str, str]()
        for pool in session.plan.pools:
            if pool.elastic:
                gone |= shrink(sets, pool, names)
        return gone
