"""What a Pulumi program asks for, as data: the same program gives the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ...schemas.decoding import convert, decode_json

MARK = "$"
"""Key that tells a marker (`Unknown` and the others) from an object of the program."""


class Unknown(msgspec.Struct, frozen=True, tag_field=MARK, tag="unknown"):
    """A value that only the provider knows, once the resource exists."""


class Secret(msgspec.Struct, frozen=True, tag_field=MARK, tag="secret"):
    """A value that must not be seen: it is not kept, not even as a hash."""


class Asset(msgspec.Struct, frozen=True, tag_field=MARK, tag="asset"):
    """A file or text; `sha256` is of its content, or of the address where it is fetched later."""

    sha256: str


class Archive(msgspec.Struct, frozen=True, tag_field=MARK, tag="archive"):
    """A folder or packed file; `sha256` is of its names and contents, or of its address."""

    sha256: str


class Reference(msgspec.Struct, frozen=True, tag_field=MARK, tag="resource"):
    """Another resource of the graph, passed whole."""

    urn: str


Marker: TypeAlias = Unknown | Secret | Asset | Archive | Reference
if TYPE_CHECKING:
    Value: TypeAlias = bool | int | float | str | list["Value"] | dict[str, "Value"] | Marker | None
else:
    Value = Any  # msgspec can't define a struct over a recursive union
"""Plain JSON in which a marker stands where there is no plain value."""
Values: TypeAlias = dict[str, Value]

_MARKERS: dict[str, type[Marker]] = {
    "unknown": Unknown,
    "secret": Secret,
    "asset": Asset,
    "archive": Archive,
    "resource": Reference,
}


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long the provider may take, in Pulumi's words ("30m"); "" is the provider's default."""

    create: str = ""
    update: str = ""
    delete: str = ""


NO_TIMEOUTS = Timeouts()


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Resource options, as the engine gets them."""

    protect: bool = False
    retain_on_delete: bool = False
    delete_before_replace: bool | None = None
    """None: the provider decides."""
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    secret_outputs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """URNs, or "name=... parent=..." for aliases by their parts."""
    timeouts: Timeouts = NO_TIMEOUTS
    import_id: str = ""
    read_id: str = ""
    """Id of a resource that exists and is only read."""
    deleted_with: str = ""
    """URN of the resource whose end is this one's too."""
    provider: str = ""
    """URN of an explicit provider; "": the default one."""


NO_OPTIONS = Options()


class RecordedResource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One resource, with inputs in the provider's spelling (camelCase)."""

    type: str
    """Type token, e.g. aws:ec2/vpc:Vpc."""
    name: str
    urn: str
    parent: str = ""
    """URN of the component it sits in; "" below the stack."""
    custom: bool = True
    """A provider makes it; False for components."""
    dependencies: tuple[str, ...] = ()
    """URNs of all that must exist before."""
    property_dependencies: dict[str, tuple[str, ...]] = {}
    """Input -> URNs that its value comes from."""
    options: Options = NO_OPTIONS
    inputs: Values = {}
    outputs: Values | None = None
    """What a component registered; None: it never did."""
    takes_tags: str = ""
    """Input that takes tags ("tags", "labels" ...), by its class in the SDK; "": it takes none."""


class RecordedInvoke(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A question the program asked its provider, e.g. for an image."""

    token: str
    arguments: str
    """JSON, keys sorted."""


class RecordedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """All that a program asked for, sorted by URN."""

    project: str
    stack: str
    preview: bool
    """Recorded as a preview: ids and computed outputs are unknown."""
    packages: dict[str, str] = {}
    """Package -> version of its SDK."""
    resources: tuple[RecordedResource, ...] = ()
    invokes: tuple[RecordedInvoke, ...] = ()
    outputs: Values = {}
    """Stack outputs."""
    warnings: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return the graph as indented JSON; same graph, same bytes."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n"


def from_json(data: bytes) -> RecordedGraph:
    """Read what `RecordedGraph.to_json` wrote.

    Raises:
        msgspec.ValidationError: it is something else.
    """
    raw = decode_json(data, dict[str, object])
    for resource in _dicts(raw.get("resources")):
        for part in ("inputs", "outputs"):
            if part in resource:
                resource[part] = revive(resource[part])
    raw["outputs"] = revive(raw.get("outputs"))
    return convert(raw, RecordedGraph)


def revive(value: object) -> object:
    """Turn decoded JSON into values: objects with the mark become markers again."""
    if isinstance(value, list):
        return [revive(item) for item in value]
    if isinstance(value, dict):
        marker = _MARKERS.get(str(value.get(MARK)))
        if marker is not None:
            return convert(value, marker)
        return {key: revive(item) for key, item in value.items()}
    return value


def _dicts(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
