"""One site while it is worked on: its plan, its region, its keys, its stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...schemas.catalog import Catalog
from ..provider import SiteContext
from ..pulumi.session import SiteSession
from .api import Api
from .hosts import Instance, host_keys, instances, places, to_hosts
from .plan.layout import site_plan
from .plan.purchase import bought_blocks
from .plan.types import SitePlan

if TYPE_CHECKING:
    from ..pulumi.engine import Engine
    from ..pulumi.recorded import RecordedGraph

BOOT_LIMIT_S = 900.0
"""Longest wait for host keys on consoles, in seconds: our choice, AWS names no time. Machines with
8 GPUs test their memory before they boot."""


class Session(SiteSession):
    """What the calls of the provider share."""

    cloud = "aws"
    title = "AWS"

    def __init__(self, context: SiteContext, catalog: Catalog, api: Api | None = None) -> None:
        """Hold the context; `api` is for tests."""
        super().__init__(context, catalog)
        self._api = api

    @cached_property
    def plan(self) -> SitePlan:
        """The site's plan."""
        return site_plan(self._context.spec, self._context.site, self._catalog)

    @cached_property
    def api(self) -> Api:
        """AWS in the site's region."""
        return self._api or Api(self.plan.region)

    def engine(self, total: int = 0) -> Engine:
        """Return the site's stack."""
        from .program.site import program  # noqa: PLC0415  # 0.7 s, for the engine only

        context = self._context
        run = program(
            context.spec,
            context.site,
            self._catalog,
            authorized_key=self.authorized_key(),
            purchased=context.purchased,
            blocks=bought_blocks(self.api, self.plan, context.purchased),
            buys=context.buys,
        )
        return self._stack(run, total)

    def _record(self) -> RecordedGraph:
        from .program.site import record_site  # noqa: PLC0415  # 0.7 s

        return record_site(self._context.spec, self._context.site, self._catalog)

    def _data_names(self) -> Mapping[str, Iterable[str]]:
        plan = self.plan
        named = {plan.names(f"lustre-{item.name}"): (item.name,) for item in plan.lustre}
        return named | {plan.names(f"bucket-{item.name}"): (item.name,) for item in plan.buckets}

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that exist."""
        return instances(self.api, self.plan)

    def hosts(
        self, machines: Sequence[Instance], *, of: Sequence[Instance] | None = None
    ) -> tuple[Host, ...]:
        """Return machines as hosts, each with its pinned host key; not those that EKS runs.

        Args:
            machines: all of the site: the way in is among them.
            of: those to wait for and to return; default: all.

        Raises:
            ProviderError: GC968, a console shows no host key in time.
        """
        joined = {pool.name for pool in self.plan.pools if pool.joins_eks}
        wanted = [m for m in (machines if of is None else of) if m.pool not in joined]
        keys = host_keys(
            self.api, wanted, cache=self.folder / "host-keys.json", patience_s=BOOT_LIMIT_S
        )
        silent = [machine.host for machine in wanted if machine.instance_id not in keys]
        self._refuse_silent(
            silent,
            where=" on their console",
            hint="look at one: aws ec2 get-console-output --latest --instance-id ID; "
            "then run the same command again",
        )
        hosts = to_hosts(
            self.plan,
            machines,
            key_file=str(self.private_key),
            keys=keys,
            placements=places(self.api, wanted),
            way_in=self._site.ssh.via,
        )
        names = {machine.host for machine in wanted}
        return tuple(host for host in hosts if host.name in names)
