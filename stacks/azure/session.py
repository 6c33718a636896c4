"""One site while it is worked on: its plan, its subscription, its keys, its stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import AzureFilesStorage
from ..provider import Leftover, Offer, provider_error
from ..pulumi.elastic import refuse_fixed
from ..pulumi.engine.checkpoint import Begun
from ..pulumi.plan import ManagedStorage
from ..pulumi.session import SiteSession
from .api import Answer, Api
from .elastic import fill, grow, is_left, shrink, trim
from .hosts import host_keys, nodes, seen
from .leftovers import begun_ids, leftovers
from .offers import offers
from .plan.layout import site_plan
from .plan.storage import FSNAME, data_names
from .plan.types import LivePool, LiveState, SitePlan
from .preflight.questions import preflight
from .scale_sets import ScaleSets

_STORAGE_CACHE = "2024-07-01"
"""Version of the Microsoft.StorageCache API."""


_STORAGE = "2023-05-01"
"""Version of the Microsoft.Storage API."""


class _ClientInfo(Answer, frozen=True):
    mgs_address: str


class _Properties(Answer, frozen=True):
    client_info: _ClientInfo


class _FileSystem(Answer, frozen=True):
    properties: _Properties


class _ShareProperties(Answer, frozen=True):
    enabled_protocols: str = "SMB"


class _Share(Answer, frozen=True):
    name: str
    properties: _ShareProperties


class Session(SiteSession):
    """A site on Azure while it is worked on."""

    cloud = "azure"
    title = "Azure"
    keys_at_once = 32  # each command takes half a minute
    shares_protected = True  # network, resource group and key identity are

    @cached_property
    def plan(self) -> SitePlan:
        """The site's plan."""
        return site_plan(self._context.spec, self._context.site, self._catalog)

    @cached_property
    def api(self) -> Api:
        """The site's subscription."""
        return self._given or Api(self.plan.subscription)

    def _engine_login(self) -> Mapping[str, str]:
        """Have the engine's provider log in by the credentials that `Api` takes.

        It tries ARM_* variables and `az login` alone (pulumi-azure-native, auth_azidentity.go,
        November 2026): no AZURE_* variables, and no identity of the machine.
        """
        return {"ARM_USE_DEFAULT_AZURE_CREDENTIAL": "true"}

    def sets(self) -> ScaleSets:
        """Find the site's scale sets."""
        return ScaleSets(self.api, self.plan.cluster, self.plan.site)

    def live_state(self) -> LiveState:
        """Return what the program can't know from the spec.

        Raises:
            ProviderError: GC968, the public key is not next to the private one; or Azure can't be
                queried for what runs now.
        """
        key = self.authorized_key()
        sets = self.sets()
        live = {}
        for part in sets.parts:
            seen = sets.observe(part)
            live[part] = LivePool(capacity=seen.capacity, tags=seen.name_table.tags())
        month = datetime.now(UTC).strftime("%Y-%m-01")
        purchased = dict(self._context.purchased)
        return LiveState(public_key=key, month=month, live=live, purchased=purchased)

    def preflight(self) -> tuple[Diagnostic, ...]:
        """Check with Azure what blocks `up`."""
        return preflight(self.api, self._context.spec, self.plan, self._catalog)

    def offers(self, pool: str) -> tuple[Offer, ...]:
        """Return each option's current price."""
        return offers(self.plan, self.plan.pool(pool))

    def leftovers(self) -> tuple[Leftover, ...]:
        """List all resources with the site's tags."""
        return leftovers(self.api, self.plan, self._catalog)

    def before_up(self) -> None:
        """Let machines beyond the spec go first, by name: Azure would choose for itself.

        A scale set that a killed run left would be taken for the one that the stack has.
        """
        if self.has_stack:
            self._bare_engine().settle(self._settle)
        sets = self.sets()
        for pool in self.plan.pools:
            trim(sets, pool)

    def after_up(self) -> None:
        """Fill the scale sets with the machines that are bought, by name."""
        sets, purchased = self.sets(), self._context.purchased
        without = {node for node, option in purchased.items() if not option}
        for pool in self.plan.pools:
            for part in pool.sets:
                fill(sets, pool, part.name, without)

    def _settle(self, begun: Begun, known: Collection[str]) -> dict[str, str]:
        return begun_ids(self.api, self.plan, begun, known)

    def _program(self) -> Callable[[], None]:
        from .program.site import program  # noqa: PLC0415  # 1 s, for the engine

        context = self._context
        return program(context.spec, context.site, self._catalog, self.live_state())

    def _data_names(self) -> Mapping[str, Iterable[str]]:
        return data_names(self._context.spec, self.plan)

    def _existing_device(self, storage: ManagedStorage) -> str:
        if isinstance(storage, AzureFilesStorage):
            return self._existing_share(str(storage.existing))
        found = self.api.get(_FileSystem, str(storage.existing), _STORAGE_CACHE)
        return f"{found.properties.client_info.mgs_address}@tcp:/{FSNAME}"

    def _existing_share(self, identifier: str) -> str:
        """Return what is mounted of a share; raises ProviderError, GC1185: it has no NFS."""
        share = self.api.get(_Share, identifier, _STORAGE)
        _, _, rest = identifier.partition("/storageAccounts/")
        account = rest.partition("/")[0]
        if share.properties.enabled_protocols != "NFS":
            raise provider_error(
                "GC1185",
                f"the share {share.name} of {account} serves SMB and not NFS",
                hint="only a premium account's share that was made for NFS can be mounted",
            )
        return f"{account}.file.core.windows.net:/{account}/{share.name}"

    def end_elastic(self) -> dict[str, str]:
        """Name the machines beyond the spec only: they go with their scale sets, the stack's."""
        sets = self.sets()
        fixed = self.plan.fixed_nodes
        name_tables = [sets.observe(part).name_table.ids for part in sets.parts]
        return {n: number for ids in name_tables for n, number in ids.items() if n not in fixed}

    def existing_hosts(self, pool: str) -> Collection[str]:
        """Return the names in the pool's scale set."""
        sets = self.sets()
        return sets.observe(sets.of_pool(pool)).name_table.ids.keys()

    def grow(self, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        """Enlarge the pool's scale set."""
        return grow(self.sets(), self.plan.pool(pool), wanted, token)

    def is_left(self, pool: str, missing: list[str], token: str) -> bool:
        """Query the scale set."""
        return is_left(self.sets(), pool, missing, token)

    def shrink(self, names: set[str]) -> dict[str, str]:
        """End elastic machines; raises ProviderError (GC917) for nodes of the spec."""
        refuse_fixed(self.plan, names)
        sets, gone = self.sets(), dict[str, str]()
        for pool in self.plan.pools:
            if pool.elastic:
                gone |= shrink(sets, pool, names)
        return gone

    def hosts(self) -> tuple[Host, ...]:
        """Return the existing machines, with host keys read through run-command."""
        return self._hosts(None)

    def hosts_of(self, machines: Mapping[str, str]) -> tuple[Host, ...]:
        """Return these machines alone."""
        return self._hosts(machines)

    def _hosts(self, of: Collection[str] | None) -> tuple[Host, ...]:
        aks = self.plan.control_plane
        run = frozenset() if aks is None else aks.pools
        machines = [n for n in nodes(self.api, self.sets(), self.plan) if n.pool not in run]
        wanted = {n.vm_id: n for n in machines if of is None or n.host in of}
        keys = self._await_host_keys(wanted, lambda id_: host_keys(self.api, wanted[id_]))
        return self._as_hosts([seen(self.plan, node) for node in machines], keys, wanted)
