"""One site while it is worked on: its plan, its project, its keys, its stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import FilestoreStorage
from ..provider import Leftover, Offer
from ..pulumi.engine.checkpoint import Begun
from ..pulumi.hosts import Machine
from ..pulumi.names import label_value
from ..pulumi.plan import ManagedStorage, data_names
from ..pulumi.session import ListingSession
from .api import Answer, Api
from .elastic import delete, grow, name_queued, shrink
from .hosts import ALIVE, Instance, guest_keys, host_of, instances, seen, serial_port
from .leftovers import leftovers
from .offers import offers
from .plan.layout import SitePlan, site_plan
from .preflight.questions import preflight


class _FileSystem(Answer, frozen=True):
    mount_point: str


class _Network(Answer, frozen=True):
    ip_addresses: tuple[str, ...]


class _FileShare(Answer, frozen=True):
    name: str


class _Filestore(Answer, frozen=True):
    networks: tuple[_Network, ...]
    file_shares: tuple[_FileShare, ...]


class _Role(Answer, frozen=True):
    name: str
    deleted: bool = False


class Session(ListingSession[Instance]):
    """A site on Google Cloud while it is worked on."""

    cloud = "gcp"
    title = "Google"
    keys_at_once = 16

    @cached_property
    def plan(self) -> SitePlan:
        """The site's plan."""
        return site_plan(self._context.spec, self._context.site, self._catalog)

    @cached_property
    def api(self) -> Api:
        """Google, in the site's project."""
        return self._given or Api(self.plan.project)

    def preflight(self) -> tuple[Diagnostic, ...]:
        """Check with Google what blocks `up`."""
        return preflight(self.api, self._context.spec, self.plan, self._catalog)

    def offers(self, pool: str) -> tuple[Offer, ...]:
        """Return each option's price and what a reservation has left."""
        return offers(self.api, self.plan, self.plan.pool(pool), self._catalog)

    def leftovers(self) -> tuple[Leftover, ...]:
        """List all resources with the site's labels."""
        return leftovers(self.api, self.plan, self._catalog)

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that exist; raises GoogleError."""
        return instances(self.api, self.plan)

    def host_name(self, machine: Instance) -> str:
        """Return its label, or what follows from the name of one that was made in bulk."""
        return host_of(self.plan, machine)

    def hosts(self) -> tuple[Host, ...]:
        """Return the nodes that exist; those that came by a queued request are named first."""
        self.after_up()
        return super().hosts()

    def grow(self, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        """Make what is missing by bulkInsert."""
        made = grow(self.api, self.plan, self.plan.pool(pool), wanted, token)
        return {name: machine.id for name, machine in zip(wanted, made, strict=False)}

    def shrink(self, names: set[str]) -> dict[str, str]:
        """End elastic machines."""
        return shrink(self.api, self.plan, names)

    def after_up(self) -> None:
        """Name the machines that came by a queued request."""
        name_queued(self.api, self.plan, self.machines())

    def _settle(self, begun: Begun, known: Collection[str]) -> dict[str, str]:
        """Import a role, too: the provider doesn't adopt an existing one.

        It adopts all other existing names (service accounts, records), or they are random.
        """
        super()._settle(begun, known)
        roles = {
            one.urn: f"projects/{one.inputs['project']}/roles/{one.inputs['roleId']}"
            for one in begun
            if one.type == "gcp:projects/iAMCustomRole:IAMCustomRole"
        }
        there = {urn: self.api.find(_Role, role, service="iam") for urn, role in roles.items()}
        return {urn: role.name for urn, role in there.items() if role and not role.deleted}

    def _program(self) -> Callable[[], None]:
        from .program.site import program  # noqa: PLC0415  # 2 s, for the engine only

        context = self._context
        return program(
            context.spec,
            context.site,
            self._catalog,
            login_key=self.authorized_key(),
            purchased=context.purchased,
        )

    def _data_names(self) -> Mapping[str, Iterable[str]]:
        plan = self.plan
        lustre, buckets = (f.name for f in plan.lustre), (b.name for b in plan.buckets if b.create)
        services = (instance.name for instance in plan.filestore)
        return data_names(plan, lustre=lustre, buckets=buckets, services=services)

    def _gives_pods_networks(self) -> bool:
        return self.plan.control_plane is not None and bool(self.plan.fabric_networks)

    def _existing_device(self, storage: ManagedStorage) -> str:
        identifier = str(storage.existing)
        if not isinstance(storage, FilestoreStorage):
            return self.api.call(_FileSystem, identifier, service="lustre").mount_point
        found = self.api.call(_Filestore, identifier, service="filestore")
        return f"{found.networks[0].ip_addresses[0]}:/{found.file_shares[0].name}"

    def _is_node(self, machine: Instance) -> bool:
        gke = self.plan.control_plane
        run = {label_value(name) for name in (() if gke is None else gke.pools)}
        return machine.status in ALIVE and machine.pool not in run

    def _read_keys(self, machine: Instance) -> tuple[str, ...]:
        return guest_keys(self.api, machine)

    def _console(self, machine: Instance) -> str:
        return serial_port(self.api, machine)

    def _seen(self, machines: Sequence[Instance], wanted: Sequence[Instance]) -> Iterable[Machine]:
        del wanted
        tunnel = self._site.tunnel is not None
        return [seen(self.plan, machine, tunnel=tunnel) for machine in machines]

    def _token(self, token: str) -> str:
        return label_value(token)

    def _end(self, machines: Sequence[Instance]) -> None:
        delete(self.api, machines)
