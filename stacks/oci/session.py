"""One site while it is worked on: its plan, its region, its keys, its stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import OciFileStorage
from ..provider import Leftover, Offer, SiteEvent, provider_error
from ..pulumi.engine.checkpoint import Begun
from ..pulumi.hosts import Machine
from ..pulumi.plan import ManagedStorage, data_names
from ..pulumi.session import ListingSession
from .api import Answer, Api, engine_login
from .elastic import grow, shrink, terminate
from .hosts import Instance, addresses, instances, places, read_console, seen
from .leftovers import await_made, begun_ids, is_group, leftovers
from .naming import await_groups, give_back, name_nodes
from .offers import offers
from .plan.layout import site_plan
from .plan.types import SitePlan
from .preflight.questions import preflight


class _FileSystem(Answer, frozen=True):
    management_service_address: str
    lnet: str
    file_system_name: str


class _NfsSystem(Answer, frozen=True):
    compartment_id: str
    availability_domain: str


class _Export(Answer, frozen=True):
    path: str
    export_set_id: str


class _MountTarget(Answer, frozen=True):
    private_ip_ids: tuple[str, ...]
    lifecycle_state: str = "ACTIVE"


class _PrivateIp(Answer, frozen=True):
    ip_address: str


class Session(ListingSession[Instance]):
    """A site on OCI while it is worked on."""

    cloud = "oci"
    title = "OCI"
    boot_limit_s = 1800.0  # bare metal tests its memory before it boots

    @cached_property
    def plan(self) -> SitePlan:
        """The site's plan."""
        return site_plan(self._context.spec, self._context.site, self._catalog)

    @cached_property
    def api(self) -> Api:
        """OCI in the site's region."""
        return self._given or Api(self.plan.region)

    def preflight(self) -> tuple[Diagnostic, ...]:
        """Check with OCI what blocks `up`."""
        return preflight(self.api, self._context.spec, self.plan, self._catalog)

    def offers(self, pool: str) -> tuple[Offer, ...]:
        """Return each option's price by the catalog, and what a reservation has left."""
        return offers(self.api, self.plan, self.plan.pool(pool), self._catalog)

    def leftovers(self) -> tuple[Leftover, ...]:
        """List all resources with the site's tags."""
        return leftovers(self.api, self.plan, self._catalog)

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that exist."""
        return instances(self.api, self.plan)

    def grow(self, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        """Launch what is missing, one call a machine."""
        started = grow(self.api, self.plan, self.plan.pool(pool), wanted, token)
        return {machine.host: machine.id for machine in started}

    def shrink(self, names: set[str]) -> dict[str, str]:
        """End elastic machines."""
        return shrink(self.api, self.plan, names)

    def before_up(self) -> None:
        """Let go of the nodes that leave, in pools where OCI would choose for itself."""
        if self.has_stack:
            give_back(self.api, self.plan)

    def after_up(self) -> None:
        """Name the nodes that OCI only numbers, once they are there."""
        await_groups(self.api, self.plan, self._report)
        name_nodes(self.api, self.plan)

    def _report(self, what: str) -> None:
        self._context.emit(SiteEvent(site=self._context.site, done=0, total=0, what=what))

    def _engine_login(self) -> Mapping[str, str]:
        """Return what the engine's provider reads of the login; it is found otherwise than ours."""
        return engine_login()

    def _settle(self, begun: Begun, known: Collection[str]) -> dict[str, str]:
        """Take up all that is there, once it is made; `after_up` waits for groups of machines."""
        found = begun_ids(self.api, self.plan, begun, known)
        made = tuple(one for one in begun if one.urn in found and not is_group(one))
        await_made(self.api, self.plan, made, self._report)
        return found

    def _program(self) -> Callable[[], None]:
        from .program.site import program  # noqa: PLC0415  # for the engine only

        context = self._context
        return program(
            context.spec,
            context.site,
            self._catalog,
            authorized_key=self.authorized_key(),
            purchased=context.purchased,
        )

    def _data_names(self) -> Mapping[str, Iterable[str]]:
        plan = self.plan
        lustre, buckets = (f.name for f in plan.lustre), (b.name for b in plan.buckets)
        services = (system.name for system in plan.file_storage)
        return data_names(plan, lustre=lustre, buckets=buckets, services=services)

    def _existing_device(self, storage: ManagedStorage) -> str:
        identifier = str(storage.existing)
        if isinstance(storage, OciFileStorage):
            return _mount_target_device(self.api, identifier)
        there = self.api.call(_FileSystem, "lustre", "get_lustre_file_system", identifier)
        return f"{there.management_service_address}@{there.lnet}:/{there.file_system_name}"

    def _is_node(self, machine: Instance) -> bool:
        return bool(machine.host)

    def _console(self, machine: Instance) -> str:
        return read_console(self.api, machine.id)

    def _seen(self, machines: Sequence[Instance], wanted: Sequence[Instance]) -> Iterable[Machine]:
        del wanted
        where, there = addresses(self.api, self.plan, machines), places(self.api, self.plan)
        return [seen(self.plan, one, where[one.id], there.get(one.id)) for one in machines]

    def _end(self, machines: Sequence[Instance]) -> None:
        terminate(self.api, [machine.id for machine in machines])


def _mount_target_device(api: Api, identifier: str) -> str:
    """Return ADDRESS:/PATH of the first mount target that exports a file system.

    Raises:
        ProviderError: OCI can't be queried, or no mount target exports it (GC1185).
    """
    system = api.call(_NfsSystem, "files", "get_file_system", identifier)
    where = (system.compartment_id, system.availability_domain)
    exports = api.call(
        tuple[_Export, ...],
        "files",
        "list_exports",
        compartment_id=system.compartment_id,
        file_system_id=identifier,
    )
    for export in exports:
        requested = {"export_set_id": export.export_set_id}
        for target in api.call(
            tuple[_MountTarget, ...], "files", "list_mount_targets", *where, **requested
        ):
            if target.lifecycle_state == "ACTIVE" and target.private_ip_ids:
                address = api.call(
                    _PrivateIp, "network", "get_private_ip", target.private_ip_ids[0]
                )
                return f"{address.ip_address}:{export.path}"
    raise provider_error(
        "GC1185",
        f"no mount target of its compartment exports {identifier}: no node reaches it",
        hint="make a mount target in the nodes' subnet, and an export of the file system in it",
    )
