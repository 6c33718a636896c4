"""One site while it is worked on: its plan, its region, its keys, its stack."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...schemas.catalog import Catalog
from ..provider import SiteContext, provider_error
from ..pulumi.checkpoint import Owners, owners
from ..pulumi.session import SiteSession
from .api import Api
from .hosts import Instance, host_keys, instances, places, to_hosts
from .plan.layout import site_plan
from .plan.purchase import bought_blocks
from .plan.types import SitePlan

if TYPE_CHECKING:
    from ..pulumi.engine import Engine

BOOT_LIMIT_S = 900.0
"""Longest wait for host keys on consoles, in seconds: our choice, AWS names no time. Machines with
8 GPUs test their memory before they boot."""


class Session(SiteSession):
    """What the calls of the provider share."""

    cloud = "aws"

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

    def owners(self) -> Owners:
        """Return which storage each protected resource is there for."""
        plan, context = self.plan, self._context
        named = {plan.names(f"lustre-{item.name}"): (item.name,) for item in plan.lustre}
        named |= {plan.names(f"bucket-{item.name}"): (item.name,) for item in plan.buckets}
        if not named:
            return {}
        from .program.site import record_site  # noqa: PLC0415  # 0.7 s

        return owners(record_site(context.spec, context.site, self._catalog), named)

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
        if silent:
            raise provider_error(
                "GC968",
                f"{len(silent)} nodes show no host key on their console: {', '.join(silent[:5])}",
                detail="Nobody logs in to a node whose key was not read through AWS itself.",
                hint="look at one: aws ec2 get-console-output --latest --instance-id ID; then run "
                "the same command again",
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
