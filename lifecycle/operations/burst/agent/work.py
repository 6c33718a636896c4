"""The calls that make, join and remove rented nodes: a provider's grow and shrink, and converge."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from .....inventory.compile import CompiledCluster, compile_cluster
from .....inventory.hosts import ClusterInventory, Host, elastic_nodes
from .....schemas.catalog import Catalog
from .....schemas.spec import ClusterSpec, Count, KubernetesScheduler
from .....stacks.provider import ProviderError
from ....cluster.cluster import Cluster
from ....cluster.open_site import OpenSite, at_each, inventory, site_outputs
from ....cluster.outcome import LifecycleError
from ....cluster.progress import silent
from ....nodes.converge.pending import pending_steps, refuse_unknown_addresses
from ....nodes.converge.run import converge, keep_stamps
from ....nodes.converge.stamps import read_stamps
from ....nodes.converge.watch import reasons
from ....nodes.images.golden import baker, compile_for_images, image_key, install_group
from ....nodes.ssh import SshSession, Unreachable
from ..policy.spec_rules import purchase_options

_UNSURE = frozenset({"GC964", "GC966"})
"""Codes after which a cloud may have made something (as stacks.provider has it)."""


class CreateResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call that makes nodes."""

    exist: frozenset[str] = frozenset()
    refusal: str = ""
    """Why others can't be created, with the cloud's message."""
    unsure: bool = False
    """Something may exist that wasn't seen: the same call must be repeated."""


class ProviderWork:
    """The real calls. Every one is safe to repeat, and safe to make from several threads."""

    def __init__(
        self, cluster: Cluster, sites: Collection[OpenSite], session: SshSession, run_dir: Path
    ) -> None:
        """Start without a query."""
        self._cluster = cluster
        self._sites = {site.name: site for site in sites}
        self._session = session
        self._run_dir = run_dir
        self._images: dict[str, str | None] = {}
        """Site -> key of its image, None where it has no steps to bake."""

    def grow(
        self, site: str, pool: str, nodes: Collection[str], option: str, token: str
    ) -> CreateResult:
        """Make the nodes in one call, bought in this way alone; never raises for a refusal."""
        here = self._booting(self._sites[site])
        spec = bought_by(self._cluster.spec, self._cluster.catalog, pool, option)
        context = msgspec.structs.replace(here.context, spec=spec)
        refusal = "the provider created fewer than requested"
        try:
            here.provider.grow(context, pool, sorted(nodes), token)
        except ProviderError as error:
            refusal = str(error)
            if any(found.code in _UNSURE for found in error.diagnostics):
                return CreateResult(refusal=refusal, unsure=True)
        try:
            exist = self._exist(here, nodes)
        except ProviderError as error:
            return CreateResult(refusal=str(error), unsure=True)
        self._settle(here, frozenset(nodes) - exist, refusal)
        return CreateResult(exist=exist, refusal="" if exist >= set(nodes) else refusal)

    def shrink(self, site: str, nodes: Collection[str]) -> bool:
        """Remove the nodes, and check for leftovers; return whether there are none."""
        here = self._sites[site]
        spec = with_room_for(self._cluster.spec, nodes)
        here = msgspec.structs.replace(
            here, context=msgspec.structs.replace(here.context, spec=spec)
        )
        here.provider.shrink(here.context, sorted(nodes))
        left = self._exist(here, nodes)
        self._settle(here, frozenset(nodes) - left, "given back before it was recorded")
        return not left

    def addresses(self, site: str, nodes: Collection[str]) -> dict[str, str]:
        """Return the addresses of those of the nodes that have answered once."""
        here = self._sites[site]
        found = here.provider.hosts(here.context)
        answered = [host for host in found if host.address and not host.silent]
        return {host.name: host.address for host in answered if host.name in nodes}

    def price(self, site: str, pool: str, option: str) -> float | None:
        """Return the highest of the provider's current prices for a node; None: unknown."""
        here = self._sites[site]
        spec = bought_by(self._cluster.spec, self._cluster.catalog, pool, option)
        try:
            offers = here.provider.offers(msgspec.structs.replace(here.context, spec=spec), pool)
        except ProviderError:
            return None
        return max((o.usd_per_hour for o in offers if o.usd_per_hour is not None), default=None)

    def join(self, site: str, nodes: Collection[str]) -> dict[str, str]:
        """Converge the nodes; return node -> reason of those that are not done."""
        new = [h for h in self._hosts(site) if h.name in nodes]
        compiled = self._steps_for(new)
        versions = self._cluster.make_secrets(compiled)
        real = [host for host in new if host.connection == "ssh"]
        answers = dict(read_stamps(self._session, real))
        silent_ones = {n: a.reason for n, a in answers.items() if isinstance(a, Unreachable)}
        stamps = {n: a for n, a in answers.items() if not isinstance(a, Unreachable)}
        pending = pending_steps(compiled, stamps, versions)
        try:
            refuse_unknown_addresses(pending)
        except LifecycleError as error:
            return dict.fromkeys(nodes, str(error))
        keep_stamps(pending, self._sites[site], new, silent)
        ready = tuple(host for host in real if host.name not in silent_ones)
        with self._cluster.vault.materialise(compiled.secrets) as secret_files:
            done = converge(
                pending,
                ClusterInventory(
                    cluster=self._cluster.name, hosts=(*self._control_planes(ready), *ready)
                ),
                self._session,
                secret_files=secret_files,
                run_dir=self._run_dir / f"join-{min(nodes)}",
                report=silent,
            )
        return silent_ones | reasons(done)

    def _control_planes(self, new: Collection[Host]) -> tuple[Host, ...]:
        """Return the hosts that give nodes of Kubernetes what they join by; nothing runs there."""
        if not new or not isinstance(self._cluster.spec.scheduler, KubernetesScheduler):
            return ()
        sites = at_each(self._sites.values(), lambda site: site.provider.hosts(site.context))
        there = (host for hosts in sites.values() for host in hosts)
        return tuple(host for host in there if host.role == "controller" and host.address)

    def _hosts(self, site: str) -> tuple[Host, ...]:
        here = self._sites[site]
        return here.provider.hosts(here.context)

    def _steps_for(self, new: Collection[Host]) -> CompiledCluster:
        """Return what new hosts must run: that of their pools, which holds no host list."""
        compiled = self._compiled()
        pools = {host.pool for host in new}
        groups = tuple(
            msgspec.structs.replace(
                group, hosts=tuple(host.name for host in new if host.pool == group.name)
            )
            for group in compiled.groups
            if group.name in pools
        )
        return msgspec.structs.replace(compiled, groups=groups)

    def _compiled(self) -> CompiledCluster:
        cluster, sites = self._cluster, self._sites.values()
        there = {
            host.name: host
            for hosts in at_each(sites, lambda site: site.provider.hosts(site.context)).values()
            for host in hosts
        }
        planned = (h for s in sites for h in s.provider.planned_hosts(cluster.spec, s.name))
        everyone = (there.get(host.name, host) for host in planned)
        hosts = inventory(cluster.spec, everyone, site_outputs(sites))
        return compile_cluster(
            cluster.spec, hosts, cluster.catalog, cluster.bundle, cluster.kubernetes
        )

    def _booting(self, site: OpenSite) -> OpenSite:
        """Return the site whose new nodes boot from the baked image, where there is one."""
        provider = baker(site)
        if provider is None:
            return site
        if site.name not in self._images:
            spec, sites = self._cluster.spec, self._sites.values()
            planned = (h for s in sites for h in s.provider.planned_hosts(spec, s.name))
            group = install_group(compile_for_images(self._cluster, planned), site)
            base = provider.base_digest(site.context.spec, site.name)
            self._images[site.name] = None if group is None else image_key(base, group)
        key = self._images[site.name]
        there = key is not None and provider.has_image(site.context, key)
        return site.booting(key if there else None)

    @staticmethod
    def _exist(site: OpenSite, nodes: Collection[str]) -> frozenset[str]:
        """Return those of the nodes that there is a machine of, whether it answers or not."""
        wanted = frozenset(nodes)
        there = {host.name for host in site.provider.hosts(site.context)}
        there |= {left.name for left in site.provider.refresh(site.context) if left.kind == "node"}
        return wanted & there

    def _settle(self, site: OpenSite, absent: Collection[str], reason: str) -> None:
        """Close what the ledger has of nodes that there is nothing of.

        A run that was killed between removing a machine and recording that left it open.
        """
        ledger = self._cluster.ledger
        keys = {f"node/{name}" for name in absent}
        for intent in ledger.open_intents(site.name):
            if intent.resource_key in keys:
                ledger.failed(intent.id, reason)
        for gone in ledger.existing(site.name):
            if gone.key in keys:
                ledger.deleted(site.name, gone.key, gone.provider_id)


def with_room_for(spec: ClusterSpec, nodes: Collection[str]) -> ClusterSpec:
    """Return the spec with elastic pools as large as they were when they had these nodes.

    Some providers find a node by the names that the spec has.
    """
    pools = dict(spec.pools)
    for name, names in elastic_nodes(spec).items():
        stem = names[0].rstrip("0123456789")
        numbers = (node.removeprefix(stem) for node in nodes if node.startswith(stem))
        most = max((int(number) for number in numbers if number.isdecimal()), default=0)
        count = pools[name].count
        if isinstance(count, Count) and most > count.max:
            larger = msgspec.structs.replace(count, max=most)
            pools[name] = msgspec.structs.replace(pools[name], count=larger)
    return msgspec.structs.replace(spec, pools=pools)


def bought_by(spec: ClusterSpec, catalog: Catalog, pool: str, option: str) -> ClusterSpec:
    """Return the spec with one way alone to buy a pool; where there is one, the spec itself."""
    pool_spec = spec.pools[pool]
    keys = [each.key for each in purchase_options(spec, catalog, pool_spec)]
    if len(keys) < 2 or pool_spec.market is None or option not in keys:  # noqa: PLR2004  # a choice
        return spec
    only = msgspec.structs.replace(pool_spec, market=[pool_spec.market[keys.index(option)]])
    return msgspec.structs.replace(spec, pools={**spec.pools, pool: only})
