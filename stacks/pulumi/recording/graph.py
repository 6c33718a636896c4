"""The resources of a Pulumi program, as data and as a picture: same program, same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ....schemas.structure.decoding import convert, decode_json
from ...provider import Resource, ResourceGraph
from ..names import POOL

MARK = "$"
"""Key that distinguishes a marker (`Unknown` and the others) from an object of the program."""


class Unknown(msgspec.Struct, frozen=True, tag_field=MARK, tag="unknown"):
    """A value that only the provider has, once the resource exists."""


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
"""Plain JSON with markers where there is no plain value."""
Values: TypeAlias = dict[str, Value]

_MARKERS: dict[str, type[Marker]] = {
    "unknown": Unknown,
    "secret": Secret,
    "asset": Asset,
    "archive": Archive,
    "resource": Reference,
}


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The resource's timeout, in Pulumi's form ("30m"); "" is the provider's default."""

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
    """A function call of the program to its provider, e.g. for an image."""

    token: str
    arguments: str
    """JSON, keys sorted."""


class RecordedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """All resources and calls of a program, sorted by URN."""

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


def tags_of(resource: RecordedResource) -> dict[str, Value]:
    """Return the tags or labels of a resource, {} where it has none; lists of pairs as a map."""
    tags = resource.inputs.get(resource.takes_tags) if resource.takes_tags else None
    if isinstance(tags, list):
        pairs = (pair for pair in tags if isinstance(pair, dict))
        return {str(pair.get("key")): pair.get("value") for pair in pairs}
    return dict(tags) if isinstance(tags, dict) else {}


def short_type(type_: str) -> str:
    """Return the last part of a type token: aws:ec2/vpc:Vpc -> Vpc."""
    return type_.rpartition(":")[2]


def natural(name: str) -> tuple[str, int, str]:
    """Return a sort key that puts gpu-10 after gpu-9."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    return stem, int(number) if number else -1, name


_SCRIPTS = frozenset({"customData", "userData"})
"""First-boot scripts: long, encoded, and no property that a plan compares by eye."""


def site_graph(recorded: RecordedGraph, *, provider: str, site: str) -> ResourceGraph:
    """Return what providers make in a recording, with their plain inputs."""
    names = {resource.urn: resource.name for resource in recorded.resources}
    return ResourceGraph(
        site=site,
        provider=provider,
        resources=tuple(
            Resource(
                kind=short_type(made.type),
                name=made.name,
                pool=_pool(made),
                properties=_plain(made),
                parent=names.get(made.parent),
            )
            for made in recorded.resources
            if made.custom and not made.type.startswith("pulumi:providers:")
        ),
    )


def _pool(made: RecordedResource) -> str | None:
    pool = tags_of(made).get(POOL)
    return pool if isinstance(pool, str) else None


def _plain(made: RecordedResource) -> dict[str, str | int | bool | None]:
    return {
        key: value
        for key, value in made.inputs.items()
        if isinstance(value, str | int | bool) and key not in _SCRIPTS
    }


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of the tree and what sits in it."""

    type: str
    name: str
    urn: str
    custom: bool
    children: tuple[Branch, ...] = ()


def tree(graph: RecordedGraph) -> tuple[Branch, ...]:
    """Return the stack's resources as a tree: components before the others, by name."""
    below: dict[str, list[RecordedResource]] = {}
    for resource in graph.resources:
        below.setdefault(resource.parent, []).append(resource)

    def branches(urn: str) -> tuple[Branch, ...]:
        return tuple(
            Branch(type=r.type, name=r.name, urn=r.urn, custom=r.custom, children=branches(r.urn))
            for r in sorted(below.get(urn, []), key=lambda r: (r.custom, natural(r.name), r.type))
        )

    return branches("")


FOLD_ABOVE = 3
"""More siblings of one type than this are drawn as one box with their number."""


def mermaid(graph: RecordedGraph) -> str:
    """Return the graph as a flowchart: components are frames, arrows go to what is needed.

    Same graph, same text. Siblings of one type are folded, so that 64 nodes are one box.
    """
    boxes: dict[str, str] = {}
    lines = ["flowchart TD"]
    lines += _boxes(tree(graph), boxes, "  ")
    arrows = {
        (boxes[resource.urn], boxes[needed])
        for resource in graph.resources
        for needed in resource.dependencies
        if needed in boxes and boxes[needed] != boxes[resource.urn]
    }
    lines += [f"  {start} --> {end}" for start, end in sorted(arrows, key=_numbers)]
    return "\n".join(lines) + "\n"


def _boxes(branches: tuple[Branch, ...], boxes: dict[str, str], indent: str) -> Iterator[str]:
    by_type: dict[str, list[Branch]] = {}
    for branch in branches:
        by_type.setdefault(branch.type, []).append(branch)
    for type_, same in by_type.items():
        if len(same) > FOLD_ABOVE:
            yield _folded(type_, same, boxes, indent)
            continue
        for branch in same:
            box = boxes[branch.urn] = _new(boxes)
            if branch.children:
                yield f'{indent}subgraph {box}["{_quoted(branch.name)}"]'
                yield from _boxes(branch.children, boxes, indent + "  ")
                yield f"{indent}end"
            else:
                yield f'{indent}{box}["{short_type(type_)}<br>{_quoted(branch.name)}"]'


def _folded(type_: str, same: list[Branch], boxes: dict[str, str], indent: str) -> str:
    box = _new(boxes)
    for branch in same:
        _take(branch, box, boxes)
    names = f"{_quoted(same[0].name)} ... {_quoted(same[-1].name)}"
    return f'{indent}{box}["{len(same)} {short_type(type_)}<br>{names}"]'


def _take(branch: Branch, box: str, boxes: dict[str, str]) -> None:
    boxes[branch.urn] = box
    for child in branch.children:
        _take(child, box, boxes)


def _new(boxes: dict[str, str]) -> str:
    return f"n{len(boxes)}"


def _numbers(arrow: tuple[str, str]) -> tuple[int, int]:
    return int(arrow[0][1:]), int(arrow[1][1:])


def _quoted(name: str) -> str:
    return name.replace('"', "#quot;")
