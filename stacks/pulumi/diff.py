"""What differs between two recorded graphs, resource by resource."""

from __future__ import annotations

import msgspec

from .recorded import RecordedGraph, RecordedResource, Value


class ChangedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that both graphs have, and that is not the same in both."""

    urn: str
    inputs: tuple[str, ...]
    """Paths of inputs that differ, e.g. tags.owner or networkInterfaces[0].nicType."""
    options: bool = False
    """Options or what it depends on differ."""
    replaced: bool | None = None
    """True where the SDK itself asks for replacement; None: only the provider can say."""


class GraphDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What must happen to come from one graph to the other; empty for equal graphs."""

    added: tuple[RecordedResource, ...] = ()
    removed: tuple[RecordedResource, ...] = ()
    changed: tuple[ChangedResource, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


def diff(old: RecordedGraph, new: RecordedGraph) -> GraphDiff:
    """Compare two graphs by URN. Secrets are not recorded, so a changed secret is not seen."""
    before = {resource.urn: resource for resource in old.resources}
    after = {resource.urn: resource for resource in new.resources}
    changes = (_change(before[urn], after[urn]) for urn in before if urn in after)
    return GraphDiff(
        added=tuple(resource for urn, resource in after.items() if urn not in before),
        removed=tuple(resource for urn, resource in before.items() if urn not in after),
        changed=tuple(change for change in changes if change is not None),
    )


def _change(old: RecordedResource, new: RecordedResource) -> ChangedResource | None:
    inputs = tuple(differing(old.inputs, new.inputs))
    options = old.options != new.options or old.dependencies != new.dependencies
    if not inputs and not options:
        return None
    forced = any(_matches(path, rule) for path in inputs for rule in new.options.replace_on_changes)
    return ChangedResource(
        urn=new.urn, inputs=inputs, options=options, replaced=True if forced else None
    )


def differing(old: Value, new: Value, path: str = "") -> list[str]:
    """Return the paths at which two values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[str] = []
        for key in sorted(old.keys() | new.keys()):
            below = f"{path}.{key}" if path else key
            if key not in old or key not in new:
                found.append(below)
            else:
                found += differing(old[key], new[key], below)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [p for i, (a, b) in pairs for p in differing(a, b, f"{path}[{i}]")]
    return [] if old == new else [path]


def _matches(path: str, rule: str) -> bool:
    """Whether a rule such as `sku` or `*` covers a path."""
    return rule in {"*", path} or path.startswith((f"{rule}.", f"{rule}["))
