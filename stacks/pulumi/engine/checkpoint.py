"""The content of a stack, from `pulumi stack export`: protected resources, and dependencies.

Pure: JSON in, values or JSON out. Secrets in it are ciphertext, and stay so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from ....schemas.structure.decoding import decode_json
from ...provider import ControlPlaneAt, Leftover, SiteOutputs
from ..names import FABRIC_NETWORKS, FILE_SYSTEMS
from ..recording.graph import RecordedGraph, RecordedResource

_STACK = "pulumi:pulumi:Stack"


class StackResource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One resource of a stack; fields as the engine spells them (apitype.ResourceV3)."""

    urn: str
    type: str
    id: str = ""
    """The provider's id; "" for components."""
    inputs: dict[str, Any] = {}
    """The program's inputs; secrets in them are ciphertext."""
    protect: bool = False
    retain_on_delete: bool = False
    parent: str = ""
    provider: str = ""
    """URN of the provider and, behind "::", its id."""
    deleted_with: str = ""
    dependencies: tuple[str, ...] | None = None
    property_dependencies: dict[str, tuple[str, ...] | None] | None = None

    @property
    def name(self) -> str:
        """What the program calls it."""
        return self.urn.rpartition("::")[2]

    @property
    def key(self) -> str:
        """Name it without stack and project: the same in a recording and in a stack."""
        return resource_key(self.urn)

    def needs(self) -> Iterator[str]:
        """Yield the URNs of all that must stay as long as this does."""
        yield from self.dependencies or ()
        for urns in (self.property_dependencies or {}).values():
            yield from urns or ()
        yield from (urn for urn in (self.parent, self.deleted_with) if urn)
        if self.provider:
            yield self.provider.rpartition("::")[0]


class _Operation(msgspec.Struct, frozen=True):
    """What a run that was killed was at (apitype.OperationV2)."""

    resource: StackResource
    type: str


class _Deployment(msgspec.Struct, frozen=True):
    resources: tuple[StackResource, ...] | None = None
    pending_operations: tuple[_Operation, ...] | None = None


class _Export(msgspec.Struct, frozen=True):
    deployment: _Deployment


MACHINES = frozenset({
    "aws:ec2/instance:Instance",
    *(f"azure-native:compute:VirtualMachine{many}" for many in ("", "ScaleSet")),
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate",
    "oci:Core/instance:Instance",
})  # fmt: skip
"""Types of machines; those of profiles, templates and Lustre have the same prefixes."""


def is_machine(resource: StackResource) -> bool:
    """Return whether it is one: records and addresses of a machine may have its name."""
    return resource.type in MACHINES


def resource_key(urn: str) -> str:
    """Return the qualified type and name of a URN: urn:pulumi:STACK::PROJECT::KEY."""
    return urn.split("::", 2)[2]


def resources(exported: bytes) -> tuple[StackResource, ...]:
    """Return what is in an export, but for the stack itself."""
    found = decode_json(exported, _Export).deployment.resources or ()
    return tuple(resource for resource in found if resource.type != _STACK)


Begun: TypeAlias = tuple[StackResource, ...]
"""What a killed run had begun to create: its existence and id are unknown."""


def begun(exported: bytes) -> Begun:
    """Return what was begun and not written down."""
    pending = decode_json(exported, _Export).deployment.pending_operations or ()
    return tuple(one.resource for one in pending if one.type == "creating")


def taken_up(exported: bytes, ids: Mapping[str, str]) -> bytes:
    """Return the export with what was begun as made: URN -> the provider's id.

    What is known of it beyond its id the next refresh reads. What it replaces goes, as the engine
    would have it. The engine drops all that is pending from what it imports (pulumi/pulumi, `stack
    import`, November 2026).
    """
    raw = decode_json(exported, dict[str, Any])
    deployment = raw["deployment"]
    made = {
        one["resource"]["urn"]: {**one["resource"], "id": ids[one["resource"]["urn"]]}
        for one in deployment.pop("pending_operations")
        if one["type"] == "creating" and one["resource"]["urn"] in ids
    }
    there = deployment.get("resources") or []
    for old in there:
        if old["urn"] in made:
            old["delete"] = True
    deployment["resources"] = [*there, *made.values()]
    return msgspec.json.encode(raw)


def staying(found: Iterable[StackResource], freed: Collection[str] = ()) -> frozenset[str]:
    """Return the keys of what `destroy --exclude-protected` leaves: the protected and their needs.

    `freed` are keys that count as if they were not protected.
    """
    by_urn = {resource.urn: resource for resource in found}
    open_ = [r for r in by_urn.values() if r.protect and r.key not in freed]
    kept: dict[str, str] = {}
    while open_:
        resource = open_.pop()
        if resource.urn not in kept:
            kept[resource.urn] = resource.key
            open_ += [by_urn[urn] for urn in resource.needs() if urn in by_urn]
    return frozenset(kept.values())


def guarded(exported: bytes, guard: Mapping[str, bool]) -> bytes | None:
    """Return the export with protection of the keys set (True) or lifted; None: no change.

    A resource that is not protected is not retained either: else the stack would drop it, and the
    cloud would keep it.
    """
    raw = decode_json(exported, dict[str, object])
    deployment = raw.get("deployment")
    items = deployment.get("resources") if isinstance(deployment, dict) else None
    changed = False
    for item in items or ():
        wanted = guard.get(resource_key(str(item["urn"])))
        flags = {"protect": wanted, "retainOnDelete": wanted}
        if wanted is not None and any(bool(item.get(k)) is not v for k, v in flags.items()):
            item.update(flags)
            changed = True
    return msgspec.json.encode(raw) if changed else None


Owners: TypeAlias = dict[str, frozenset[str]]
"""Key of a protected resource -> the storage that needs it: it may go when all of that goes."""


def owners(
    graph: RecordedGraph, named: Mapping[str, Iterable[str]], *, others: Iterable[str] = ()
) -> Owners:
    """Return the owners of what is protected in a program.

    Args:
        graph: the program, recorded.
        named: name of a resource or component -> the storage it is made for; the nearest counts.
        others: owners of what is in none of these; () leaves it out, and it stays protected.
    """
    by_urn = {resource.urn: resource for resource in graph.resources}
    found: Owners = {}
    for resource in graph.resources:
        if resource.options.protect:
            mine = frozenset(_nearest(resource, by_urn, named) or others)
            if mine:
                found[resource_key(resource.urn)] = mine
    return found


def _nearest(
    resource: RecordedResource,
    by_urn: Mapping[str, RecordedResource],
    named: Mapping[str, Iterable[str]],
) -> Iterable[str]:
    here: RecordedResource | None = resource
    while here is not None:
        if here.name in named:
            return named[here.name]
        here = by_urn.get(here.parent)
    return ()


def freed(owned: Owners, delete: Collection[str]) -> frozenset[str]:
    """Return the keys of what may go with the named storage: nothing else needs it."""
    return frozenset(key for key, names in owned.items() if names <= frozenset(delete))


def mark_protected(
    found: Iterable[Leftover],
    stack: Collection[StackResource],
    owned: Owners,
    delete: Collection[str],
) -> tuple[Leftover, ...]:
    """Mark what is kept: the protected resources of the stack, and those that contain them.

    What the stack lacks is left unchanged.
    """
    kept = staying(stack, freed(owned, delete))
    ids = {_plain(resource.id): resource for resource in stack if resource.id}
    return tuple(_marked(item, ids, kept, owned) for item in found)


def known_ids(found: Iterable[Leftover], stack: Collection[StackResource]) -> frozenset[str]:
    """Return the provider ids of the stack's resources, by id or by their own name."""
    ids = {_plain(resource.id) for resource in stack if resource.id}
    return frozenset(
        item.provider_id for item in found if ids & {_plain(item.provider_id), _plain(item.name)}
    )


def _marked(
    item: Leftover, ids: Mapping[str, StackResource], kept: Collection[str], owned: Owners
) -> Leftover:
    resource = ids.get(_plain(item.provider_id)) or ids.get(_plain(item.name))
    if resource is None:
        return item
    storage = tuple(sorted(owned.get(resource.key, ()))) if item.kept_data else ()
    return msgspec.structs.replace(item, kept_data=resource.key in kept, storage=storage)


def _plain(identifier: str) -> str:
    """Return an id as all services spell it: Azure mixes cases, Google's links lead with a host."""
    return identifier.casefold().partition("/compute/v1/")[2] or identifier.casefold()


OUTPUT = "control-plane"
"""The output of a site's stack; of the same form in every cloud."""
TYPES = frozenset(
    {
        "aws:eks/cluster:Cluster",
        "gcp:container/cluster:Cluster",
        "azure-native:containerservice:ManagedCluster",
    }
)
"""What a control plane is in a stack, as the engine spells types."""
KINDS = frozenset(type_.rpartition(":")[2] for type_ in TYPES)
"""The same as plans name it."""


def read_output(outputs: Mapping[str, Any], region: str) -> ControlPlaneAt | None:
    """Read it out of a stack's outputs; None where it has none, or not all of it yet."""
    answer = outputs.get(OUTPUT)
    if not isinstance(answer, dict):
        return None
    name, endpoint, authority = (
        str(answer.get(k) or "") for k in ("name", "endpoint", "authority")
    )
    if not (name and endpoint and authority):
        return None
    # Google returns an address where the others return a URL.
    url = endpoint if endpoint.startswith("https://") else f"https://{endpoint}"
    return ControlPlaneAt(name=name, endpoint=url, authority=authority, region=region)


def read_made(
    outputs: Mapping[str, Any], storage: Iterable[str], existing: Mapping[str, str]
) -> SiteOutputs:
    """Read what nodes are given out of a stack's outputs; what is not there yet is left out.

    Args:
        outputs: the stack's.
        storage: names of the spec's storage that the stack makes.
        existing: storage that the stack does not make -> what is mounted of it.
    """
    devices, pools = outputs.get(FILE_SYSTEMS), outputs.get(FABRIC_NETWORKS)
    made = devices if isinstance(devices, dict) else {}
    networks = pools if isinstance(pools, dict) else {}
    return SiteOutputs(
        file_systems={name: str(made[name]) for name in storage if made.get(name)} | {**existing},
        fabric_networks={
            str(pool): tuple(str(nic) for nic in nics)
            for pool, nics in networks.items()
            if isinstance(nics, list)
        },
    )
