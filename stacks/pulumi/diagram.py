"""A recorded graph as a Mermaid flowchart, for documents and reviews."""

from __future__ import annotations

from collections.abc import Iterator

from .graph import Branch, Graph, short_type
from .recorded import RecordedGraph

FOLD_ABOVE = 3
"""More siblings of one type than this are drawn as one box with their number."""


def mermaid(graph: RecordedGraph) -> str:
    """Return the graph as a flowchart: components are frames, arrows go to what is needed.

    Same graph, same text. Siblings of one type are folded, so that 64 nodes are one box.
    """
    boxes: dict[str, str] = {}
    lines = ["flowchart TD"]
    lines += _boxes(Graph(graph).tree(), boxes, "  ")
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
