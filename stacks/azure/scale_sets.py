"""Scale sets as they are in Azure now: their machines, their capacity, and who has which name.

Azure gives machines of a scale set numbers, which may be used again, and takes no tags for them
(an update with tags is answered with success and does nothing). So the scale set itself carries the
table of names, and the intents of growth that are not done yet.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.mgmt.compute.models import (
    Sku,
    VirtualMachineScaleSetUpdate,
    VirtualMachineScaleSetVMInstanceRequiredIDs,
)

from ...schemas.derived.hostlist import expand, fold
from ..provider import provider_error
from ..pulumi.names import CLUSTER, POOL, SITE
from .api import Api, refusals
from .plan.identifiers import SET, ArmId, parse
from .plan.types import SitePlan

_CHANGED_MEANWHILE = 412
_TYPE = "microsoft.compute/virtualmachinescalesets"
BROKEN = frozenset({"Failed", "Canceled"})


NAMES = "gcluster-names-"
INTENT = "gcluster-intent-"
_LONGEST = 256
"""Characters of a tag's value (Azure Resource Manager, limits of tags, November 2026)."""
_TARGET = 8
"""Room for an intent's target, in characters."""
_RUN = re.compile(r"^(?P<stem>.*?)(?P<first>\d+)(?:\.\.(?P<last>\d+))?:(?P<id>\d+)$")
_PLAIN = re.compile(r"^(?P<name>.+):(?P<id>\d+)$")


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Requested growth: capacity is a set-point, so its target is written with it."""

    token: str
    target: int
    """Capacity that the call requested."""
    names: tuple[str, ...]


class NameTable(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a scale set's tags."""

    ids: dict[str, str] = {}
    """Name -> number of the machine."""
    intents: tuple[Intent, ...] = ()

    def intent(self, token: str) -> Intent | None:
        """Return an intent by its token."""
        return next((intent for intent in self.intents if intent.token == token), None)

    def tags(self) -> dict[str, str]:
        """Return the book as tags."""
        tags = {f"{NAMES}{n}": text for n, text in enumerate(_packed(_runs(self.ids)))}
        for intent in self.intents:
            first, *rest = _ranges(intent.names)
            tags[f"{INTENT}{intent.token}"] = f"{intent.target} {first}"
            for number, text in enumerate(rest, start=1):
                tags[f"{INTENT}{intent.token}.{number}"] = text
        return tags


def read(tags: Mapping[str, str]) -> NameTable:
    """Return the book that is in these tags; ids of one that is not ours are left out."""
    runs = [run for key in sorted(tags, key=_natural) if key.startswith(NAMES)
            for run in tags[key].split()]  # fmt: skip
    tokens = [key.removeprefix(INTENT) for key in tags if key.startswith(INTENT) and "." not in key]
    return NameTable(
        ids={name: number for run in runs for name, number in _expanded(run)},
        intents=tuple(_intent(token, tags) for token in sorted(tokens)),
    )


def without(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that are not the book's."""
    return {k: v for k, v in tags.items() if not k.startswith((NAMES, INTENT))}


def settle(name_table: NameTable, machines: Iterable[str], planned: Iterable[str]) -> NameTable:
    """Return the name assignments for the existing machines: none loses its name.

    Machines without a name get those of intents first, in their order, then those that the spec
    wants; machines beyond both stay without. An intent whose names are all taken is done.
    """
    numbers = sorted(machines, key=int)
    there = set(numbers)
    ids = {name: number for name, number in name_table.ids.items() if number in there}
    purchased = set(ids.values())
    free = iter([number for number in numbers if number not in purchased])
    wanted = [name for intent in name_table.intents for name in intent.names]
    for name in [*wanted, *planned]:
        if name not in ids:
            number = next(free, None)
            if number is None:
                break
            ids[name] = number
    left = tuple(i for i in name_table.intents if not all(name in ids for name in i.names))
    return NameTable(ids=ids, intents=left)


def _runs(ids: Mapping[str, str]) -> Iterator[str]:
    """Yield gpu001..016:0 for names and numbers that both count up, else gpu001:7."""
    run: list[str] = []
    for name in sorted(ids, key=_natural):
        if run and not _follows(run[-1], name, ids):
            yield _run(run, ids)
            run = []
        run.append(name)
    if run:
        yield _run(run, ids)


def _follows(before: str, name: str, ids: Mapping[str, str]) -> bool:
    one, other = _parts(before), _parts(name)
    same = one[0] == other[0] and len(one[1]) == len(other[1]) and bool(one[1])
    return same and int(other[1]) == int(one[1]) + 1 and int(ids[name]) == int(ids[before]) + 1


def _run(names: list[str], ids: Mapping[str, str]) -> str:
    last = f"..{_parts(names[-1])[1]}" if len(names) > 1 else ""
    return f"{names[0]}{last}:{ids[names[0]]}"


def _expanded(run: str) -> Iterator[tuple[str, str]]:
    found = _RUN.match(run)
    if found is None:
        plain = _PLAIN.match(run)
        if plain is not None:
            yield plain["name"], plain["id"]
        return
    first, width = int(found["first"]), len(found["first"])
    for number in range(first, int(found["last"] or first) + 1):
        yield f"{found['stem']}{number:0{width}d}", str(int(found["id"]) + number - first)


def _intent(token: str, tags: Mapping[str, str]) -> Intent:
    target, _, first = tags[f"{INTENT}{token}"].partition(" ")
    rest = [tags[key] for key in sorted(tags, key=_natural) if key.startswith(f"{INTENT}{token}.")]
    names = [name for part in (first, *rest) for name in expand(part)]
    return Intent(token=token, target=int(target), names=tuple(names))


def _ranges(names: tuple[str, ...]) -> list[str]:
    """Return host ranges that each fit in a tag, with room for a target."""
    text = fold(names)
    if len(text) <= _LONGEST - _TARGET or len(names) == 1:
        return [text]
    middle = len(names) // 2
    return [*_ranges(names[:middle]), *_ranges(names[middle:])]


def _packed(parts: Iterable[str]) -> list[str]:
    """Return texts that fit in a tag, of parts with a blank between."""
    texts = [""]
    for part in parts:
        if texts[-1] and len(texts[-1]) + 1 + len(part) > _LONGEST:
            texts.append("")
        texts[-1] = f"{texts[-1]} {part}".strip()
    return texts if texts != [""] else []


def _parts(name: str) -> tuple[str, str]:
    stem = name.rstrip("0123456789")
    return stem, name[len(stem) :]


def _natural(name: str) -> tuple[str, int, str]:
    stem, digits = _parts(name)
    return stem, int(digits) if digits else -1, name


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
        """Find them by their tags: no stack is read, so none is locked."""
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
        """Query one scale set and its machines; raises ProviderError."""
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
        """Poll until Azure no longer changes it, or time is up; raises ProviderError."""
        end = time.monotonic() + patience_s
        while True:
            seen = self.observe(part)
            if seen.state not in {"Updating", "Creating", "Migrating"} or time.monotonic() > end:
                return seen
            time.sleep(self._api.interval_s)

    def write(self, seen: Seen, name_table: NameTable, *, capacity: int | None = None) -> bool:
        """Write the name assignments, and a capacity with it in the same call.

        Returns:
            False: it was changed since it was read; read it again.

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
