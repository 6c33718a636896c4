"""One site while it is worked on: its plan, its subscription, its keys, its stack."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...schemas.catalog import Catalog
from ..provider import SiteContext
from ..pulumi.names import Names
from ..pulumi.session import SiteSession
from .api import Api
from .hosts import host_keys, nodes, to_hosts
from .plan.layout import layout
from .plan.storage import data_names
from .plan.types import LivePool, LiveState, SitePlan
from .scale_sets import ScaleSets

if TYPE_CHECKING:
    from ..pulumi.engine import Engine
    from ..pulumi.recorded import RecordedGraph


class Session(SiteSession):
    """What the calls of the provider share."""

    cloud = "azure"
    title = "Azure"
    shares_protected = True  # network, resource group and key identity are

    def __init__(self, context: SiteContext, catalog: Catalog, api: Api | None = None) -> None:
        """Hold the context; `api` is for tests."""
        super().__init__(context, catalog)
        self._given = api

    @cached_property
    def plan(self) -> SitePlan:
        """The site's plan."""
        return layout(self._context.spec, self._context.site, self._catalog)

    @cached_property
    def api(self) -> Api:
        """The site's subscription."""
        return self._given or Api(self.plan.subscription)

    def sets(self) -> ScaleSets:
        """Find the site's scale sets."""
        return ScaleSets(self.api, self.plan.cluster, self.plan.site)

    def moment(self) -> LiveState:
        """Return what the program can't know from the spec.

        Raises:
            ProviderError: GC968, the public key is not beside the private one; or Azure can't be
                asked for what runs now.
        """
        key = self.authorized_key()
        sets = self.sets()
        live = {}
        for part in sets.parts:
            seen = sets.look(part)
            live[part] = LivePool(capacity=seen.capacity, tags=seen.name_table.tags())
        month = datetime.now(UTC).strftime("%Y-%m-01")
        purchased = dict(self._context.purchased)
        return LiveState(public_key=key, month=month, live=live, purchased=purchased)

    def engine(self, total: int = 0) -> Engine:
        """Return the site's stack."""
        from .program.site import program  # noqa: PLC0415  # 1 s, for the engine

        context = self._context
        run = program(context.spec, context.site, self._catalog, self.moment())
        return self._stack(run, total)

    def _record(self) -> RecordedGraph:
        from .program.site import record_site  # noqa: PLC0415  # 1 s

        return record_site(self._context.spec, self._context.site, self._catalog)

    def _data_names(self) -> Mapping[str, Iterable[str]]:
        names = Names(cluster=self.plan.cluster, site=self.plan.site, cloud="azure")
        context = self._context
        return data_names(context.spec, context.site, self.plan.storage, names)

    def elastic_nodes(self) -> dict[str, str]:
        """Return name -> number of the machines that are there beyond the spec."""
        sets = self.sets()
        fixed = {name for pool in self.plan.pools for name in pool.names}
        name_tables = [sets.look(part).name_table.ids for part in sets.parts]
        return {n: number for ids in name_tables for n, number in ids.items() if n not in fixed}

    def hosts(self, of: Collection[str] | None = None) -> tuple[Host, ...]:
        """Return the machines that exist as hosts, each with its pinned host key; not AKS' nodes.

        Args:
            of: names of those to return; default: all.

        Raises:
            ProviderError: GC968, a machine shows no host key.
        """
        aks = self.plan.control_plane
        run = frozenset() if aks is None else aks.pools
        machines = [n for n in nodes(self.api, self.sets(), self.plan) if n.pool not in run]
        wanted = [node for node in machines if of is None or node.host in of]
        keys = host_keys(self.api, wanted, self.folder / "host-keys.json")
        silent = [node.host for node in wanted if not keys.get(node.vm_id)]
        self._refuse_silent(
            silent, where="", hint="their agent may still be starting: run the same command again"
        )
        via = self._site.ssh.via
        found = to_hosts(self.plan, machines, keys, key_file=str(self.private_key), via=via)
        names = {node.host for node in wanted}
        return tuple(host for host in found if host.name in names)
