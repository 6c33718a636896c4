"""What stands in a stack, as `pulumi stack export` tells it: what is protected, and its needs.

Pure: JSON in, values or JSON out. Secrets in it are ciphertext, and stay so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from ...schemas.decoding import decode_json

_STACK = "pulumi:pulumi:Stack"


class StackResource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One resource of a stack; fields as the engine spells them (apitype.ResourceV3)."""

    urn: str
    type: str
    id: str = ""
    """The provider's id; "" for components."""
    protect: bool = False
    retain_on_delete: bool = False
    parent: str = ""
    provider: str = ""
    """URN of the provider and, behind "::", its id."""
    deleted_with: str = ""
    dependencies: tuple[str, ...] | None = None
    property_dependencies: dict[str, tuple[str, ...] | None] | None = None

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


class _Deployment(msgspec.Struct, frozen=True):
    resources: tuple[StackResource, ...] | None = None


class _Export(msgspec.Struct, frozen=True):
    deployment: _Deployment


def resource_key(urn: str) -> str:
    """Return the qualified type and name of a URN: urn:pulumi:STACK::PROJECT::KEY."""
    return urn.split("::", 2)[2]


def resources(exported: bytes) -> tuple[StackResource, ...]:
    """Return what is in an export, but for the stack itself."""
    found = decode_json(exported, _Export).deployment.resources or ()
    return tuple(resource for resource in found if resource.type != _STACK)


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
    """Return the export with protection of the keys set (True) or lifted; None: it is so already.

    A resource that is not protected is not retained either: else the stack would forget it, and
    the cloud would keep it.
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
