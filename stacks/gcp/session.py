"""One site while it is worked on: its plan, its project, its keys, its stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ..provider import SiteContext
from ..pulumi.names import label_value
from ..pulumi.session import SiteSession
from .api import Api
from .hosts import ALIVE, Instance, host_keys, host_of, instances, to_hosts
from .plan.layout import SiteLayout, layout
from .plan.names import names_of

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog
    from ..pulumi.engine import Engine
    from ..pulumi.recorded import RecordedGraph

BOOT_LIMIT_S = 900.0
"""Longest wait for host keys, in seconds: our choice, Google names no time. Machines with 8 GPUs
test their memory before they boot."""


class Session(SiteSession):
    """What the calls of the provider share."""

    cloud = "gcp"
    title = "Google"

    def __init__(self, context: SiteContext, catalog: Catalog, api: Api | None = None) -> None:
        """Hold the context; `api` is for tests."""
        super().__init__(context, catalog)
        self._api = api

    @cached_property
    def plan(self) -> SiteLayout:
        """The site's plan."""
        return layout(self._context.spec, self._context.site, self._catalog)

    @cached_property
    def api(self) -> Api:
        """Google, in the site's project."""
        return self._api or Api(self.plan.project)

    def engine(self, total: int = 0) -> Engine:
        """Return the site's stack, its machines on the options that were taken."""
        from .program.site import program  # noqa: PLC0415  # 2 s, for the engine only

        context = self._context
        run = program(
            context.spec,
            context.site,
            self._catalog,
            login_key=self.authorized_key(),
            purchased=context.purchased,
        )
        return self._stack(run, total)

    def _record(self) -> RecordedGraph:
        from .program.site import record_site  # noqa: PLC0415  # 2 s

        return record_site(self._context.spec, self._context.site, self._catalog)

    def _data_names(self) -> Mapping[str, Iterable[str]]:
        plan, names = self.plan, names_of(self.plan)
        made = [item.name for item in plan.buckets if item.create]
        named = {names(f"bucket-{name}"): (name,) for name in made}
        return named | {names(f"lustre-{item.name}"): (item.name,) for item in plan.lustre}

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that exist; raises GoogleError."""
        return instances(self.api, self.plan)

    def hosts(
        self, machines: Sequence[Instance], *, of: Sequence[Instance] | None = None
    ) -> tuple[Host, ...]:
        """Return machines as hosts, each with its pinned host key; not GKE's nodes.

        Args:
            machines: all of the site: the way in is among them.
            of: those to wait for and to return; default: all.

        Raises:
            ProviderError: GC968, a machine tells no host key in time.
        """
        gke = self.plan.control_plane
        run = {label_value(name) for name in (() if gke is None else gke.pools)}
        asked = machines if of is None else of
        wanted = [m for m in asked if m.status in ALIVE and m.pool not in run]
        cache = self.folder / "host-keys.json"
        keys = host_keys(self.api, wanted, cache=cache, patience_s=BOOT_LIMIT_S)
        silent = [machine.name for machine in wanted if machine.id not in keys]
        self._refuse_silent(
            silent,
            where="",
            hint="look at one: gcloud compute instances get-serial-port-output NAME; then run "
            "the same command again",
        )
        hosts = to_hosts(
            self.plan,
            machines,
            key_file=str(self.private_key),
            keys=keys,
            way_in=self._site.ssh.via,
        )
        names = {host_of(self.plan, machine) for machine in wanted}
        return tuple(host for host in hosts if host.name in names)
