"""Scale sets as they are in Azure now: their machines, capacity and book of names."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.mgmt.compute.models import (
    Sku,
    VirtualMachineScaleSetUpdate,
    VirtualMachineScaleSetVMInstanceRequiredIDs,
)

from ..provider import provider_error
from ..pulumi.names import CLUSTER, POOL, SITE
from .api import Api, refusals
from .naming import NameTable, read, without
from .plan.identifiers import SET, ArmId, parse
from .plan.types import SitePlan

_CHANGED_MEANWHILE = 412
_TYPE = "microsoft.compute/virtualmachinescalesets"
BROKEN = frozenset({"Failed", "Canceled"})


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine of a scale set."""

    number: str
    """Its instance id; used again after it is gone."""
    vm_id: str
    """Unique for ever."""
    state: str
    """Provisioning state: Succeeded, Creating, Failed ..."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A scale set at one moment."""

    pool: str
    part: str
    """Its name in the plan."""
    capacity: int
    state: str
    etag: str | None
    tags: dict[str, str]
    machines: tuple[Machine, ...]

    @property
    def name_table(self) -> NameTable:
        """The names that its tags hold."""
        return read(self.tags)

    @property
    def numbers(self) -> list[str]:
        """Numbers of the machines that are there."""
        return [machine.number for machine in self.machines]


class ScaleSets:
    """The scale sets of one site."""

    def __init__(self, api: Api, cluster: str, site: str) -> None:
        """Find them by their tags: no stack is asked, so none is locked."""
        self._api = api
        self._ids = {}
        for found in api.tagged(CLUSTER, cluster):
            if found.type.casefold() == _TYPE and found.tags.get(SITE) == site:
                self._ids[found.tags.get(SET, found.name)] = (_arm(found.id), found.tags)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the scale sets in the plan."""
        return tuple(sorted(self._ids))

    def of_pool(self, pool: str) -> str:
        """Return the scale set of an elastic pool; raises ProviderError where there is none."""
        for part, (_, tags) in sorted(self._ids.items()):
            if tags.get(POOL) == pool:
                return part
        raise provider_error(
            "GC968",
            f'pool "{pool}" has no scale set in Azure',
            hint="`gcluster up` makes it, with no machines where none are always there",
        )

    def observe(self, part: str) -> Seen:
        """Ask for one scale set and its machines; raises ProviderError."""
        where, tags = self._ids[part]
        with refusals(f"scale set {part}"):
            found = self._api.compute.virtual_machine_scale_sets.get(where.group, where.name)
            listed = self._api.compute.virtual_machine_scale_set_vms.list(where.group, where.name)
            machines = tuple(
                Machine(
                    number=str(vm.instance_id),
                    vm_id=(vm.properties.vm_id if vm.properties else None) or "",
                    state=(vm.properties.provisioning_state if vm.properties else None) or "",
                )
                for vm in listed
            )
        state = found.properties.provisioning_state if found.properties else None
        return Seen(
            pool=tags.get(POOL, part),
            part=part,
            capacity=int((found.sku.capacity if found.sku else None) or 0),
            state=state or "",
            etag=found.etag,
            tags=dict(found.tags or {}),
            machines=machines,
        )

    def settled(self, part: str, *, patience_s: float) -> Seen:
        """Look until Azure no longer changes it, or patience ends; raises ProviderError."""
        end = time.monotonic() + patience_s
        while True:
            seen = self.observe(part)
            if seen.state not in {"Updating", "Creating", "Migrating"} or time.monotonic() > end:
                return seen
            time.sleep(self._api.interval_s)

    def write(self, seen: Seen, name_table: NameTable, *, capacity: int | None = None) -> bool:
        """Write the book, and a capacity with it in the same call.

        Returns:
            False: somebody changed it since it was seen; look again.

        Raises:
            ProviderError: Azure refused; with a capacity, mostly for want of machines.
        """
        tags = {**without(seen.tags), **name_table.tags()}
        if tags == seen.tags and capacity in {None, seen.capacity}:
            return True
        where, _ = self._ids[seen.part]
        change = VirtualMachineScaleSetUpdate(tags=tags)
        if capacity is not None and capacity != seen.capacity:
            change.sku = Sku(capacity=capacity)
        match = MatchConditions.IfNotModified if seen.etag else None
        with refusals(f"scale set {seen.part}"):
            try:
                self._api.compute.virtual_machine_scale_sets.begin_update(
                    where.group, where.name, change, etag=seen.etag, match_condition=match
                ).result()
            except HttpResponseError as error:
                if error.status_code == _CHANGED_MEANWHILE:
                    return False
                raise
        return True

    def delete(self, part: str, numbers: Iterable[str]) -> None:
        """End machines; Azure lowers the capacity by as many. Raises ProviderError."""
        gone = sorted(numbers, key=int)
        if not gone:
            return
        where, _ = self._ids[part]
        with refusals(f"scale set {part}"):
            self._api.compute.virtual_machine_scale_sets.begin_delete_instances(
                where.group,
                where.name,
                VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=gone),
            ).result()

    def where(self, part: str) -> ArmId:
        """Return the scale set's id."""
        return self._ids[part][0]


def _arm(text: str) -> ArmId:
    found = parse(text)
    if found is None:
        message = f"Azure answered an id of another form: {text}"
        raise ValueError(message)
    return found


_MACHINE = "microsoft.compute/virtualmachines"


def existing_pools(api: Api, plan: SitePlan) -> Iterator[str]:
    """Yield the pool of each machine that exists; raises ProviderError."""
    sets = ScaleSets(api, plan.cluster, plan.site)
    for part in sets.parts:
        seen = sets.observe(part)
        yield from (seen.pool for machine in seen.machines if machine.state not in BROKEN)
    for found in api.tagged(CLUSTER, plan.cluster):
        if found.type.casefold() == _MACHINE and found.tags.get(SITE) == plan.site:
            yield found.tags.get(POOL, "")
