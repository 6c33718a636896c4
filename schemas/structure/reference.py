"""The reference of the spec language, written from its types: docs/spec*.md.

`python -m gcluster.schemas.structure.reference examples docs` writes it again. The examples
in it are cut out of the specs under examples/, which the tests validate.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .json_schema import Schema, cluster_schema

SHOWN: Mapping[str, tuple[str, ...]] = {
    "sites": ("hybrid", "gcp-a3-mega-slurm", "azure-ndv5-slurm", "local", "simulated-2000"),
    "links": ("hybrid",),
    "pools": ("hybrid", "superpod-127"),
    "storage": ("hybrid", "gcp-a3-mega-slurm", "home-efs"),
    "scheduler": ("superpod-127", "kubernetes-h200"),
    "workloads": ("training",),
    "users": ("aws-p5-slurm", "superpod-127"),
    "ssh_authorities": ("bare-metal",),
    "software": ("hybrid",),
    "hooks": ("hooks",),
    "monitoring": ("superpod-127",),
    "checkpointing": ("gcp-a3-mega-slurm",),
    "smoke": ("hybrid",),
    "secrets": ("hybrid",),
    "state": ("hybrid",),
    "budget": ("hybrid",),
    "tags": ("aws-p5-slurm",),
    "hardening": ("superpod-127",),
    "converge": ("superpod-127",),
}
"""Root key -> examples (by file name without .yaml) that its section is shown from."""

_INTRODUCTION = """\
# The spec language

<!-- Written by `make docs` from the types in schemas/spec; edit those. -->

One YAML file describes one cluster. Unknown keys are errors with a suggestion. Plain scalars are
read by YAML 1.2: only `true` and `false` are booleans. Sizes carry their unit (`12000 GiB`,
`400 GB/s`, `30m`), prices are USD per hour, host ranges are Slurm's (`gpu[001-512]`). `gcluster
schema` prints the same as a JSON Schema, which gives completion and hover texts in editors.
`apiVersion: gcluster/v1` is a promise: a file that loads today keeps loading.

A required key is marked **bold**.
"""


_INDEX = "spec.md"
_PAGES = ("sites", "pools", "storage", "scheduler", "users", "software", "hooks", "workloads")
"""Root keys with a page of their own."""
_WITH_PARTS = ("sites", "pools", "scheduler")
"""Those of which the parts of values have another one."""
_ON_PAGES = """\
<!-- Written by `make docs` from the types in schemas/spec; edit those. -->

How to read it: [the spec language](spec.md). A required key is marked **bold**.
"""


def reference(examples: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each page by its file name below docs/.

    Args:
        examples: text of each example by its file name without .yaml.
    """
    definitions = _definitions()
    root = definitions["ClusterSpec"]
    pages = {_INDEX: [_INTRODUCTION, "## The root", "", *_table(root, _INDEX)]}
    for key, value in root["properties"].items():
        if not _structs(value, definitions) and key not in SHOWN:
            continue
        page = _page_of(key)
        heading = [f"# `{key}`", "", _ON_PAGES] if key in _PAGES else ["", f"## `{key}`", ""]
        lines = pages.setdefault(page, [])
        lines += [*heading, _text(value)]
        for example in SHOWN.get(key, ()):
            lines += [
                "",
                f"From [examples/{example}.yaml](../examples/{example}.yaml):",
                "",
                "```yaml",
                *_section(examples[example], key),
                "```",
            ]
        if key in _WITH_PARTS:
            parts = pages.setdefault(_page_of(key, parts=True), [])
            parts += [f"# Parts of `{key}`", "", _ON_PAGES]
        for name, (home, of) in _homes().items():
            if of == key:
                pages[home] += _definition(name, definitions[name], home)
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in pages.items()}


def _page_of(key: str, *, parts: bool = False) -> str:
    """Return the page of a root key, or of the parts of its values."""
    suffix = "-parts" if parts and key in _WITH_PARTS else ""
    return f"spec-{key}{suffix}.md" if key in _PAGES else _INDEX


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Return struct -> the page that has its table, and the root key below which it is."""
    definitions, homes = _definitions(), dict[str, tuple[str, str]]()
    for key, value in definitions["ClusterSpec"]["properties"].items():
        direct = _structs(value, definitions, deep=False)
        for name in _structs(value, definitions):
            homes.setdefault(name, (_page_of(key, parts=name not in direct), key))
    return homes


@cache
def _definitions() -> Schema:
    definitions: Schema = cluster_schema()["$defs"]
    return definitions


def _definition(name: str, definition: Schema, page: str) -> Iterator[str]:
    """Yield the heading and table of one struct."""
    tag = _tag(definition)
    yield from ("", f"### {name}" + (f": `{tag[0]}: {tag[1]}`" if tag else ""), "")
    yield from (_text(definition), "", *_table(definition, page))


def _table(definition: Schema, page: str) -> Iterator[str]:
    """Yield a table of the keys of one struct, with links as from this page."""
    yield "| key | value | default | meaning |"
    yield "| --- | --- | --- | --- |"
    required = definition.get("required", ())
    for key, value in definition.get("properties", {}).items():
        shown = f"**`{key}`**" if key in required else f"`{key}`"
        if page == _INDEX and definition is _definitions()["ClusterSpec"] and key in SHOWN:
            shown = f"[{shown}]({_page_of(key) if key in _PAGES else f'#{key}'})"
        default = "" if key in required else _default(value)
        cells = (shown, *map(_cell, (_kind(value, page), default, _text(value))))
        yield f"| {' | '.join(cells)} |"


def _default(value: Schema) -> str:
    default = value.get("default")
    if "default" not in value or default is None or default in ([], {}):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "" if isinstance(default, dict) else f"`{default}`"


def _kind(value: Schema, page: str) -> str:
    """Say in words what may be written."""
    if "$ref" in value:
        name = _name(value["$ref"])
        home = _homes()[name][0]
        return f"[{name}]({'' if home == page else home}#{_anchor(name)})"
    if "enum" in value:
        return " or ".join(f"`{option}`" for option in value["enum"])
    if "anyOf" in value:
        kinds = [_kind(branch, page) for branch in value["anyOf"] if branch.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if value.get("type") == "array":
        return f"list of {_kind(value['items'], page) if value.get('items') else 'anything'}"
    if value.get("type") == "object":
        others = value.get("additionalProperties")
        return f"name → {_kind(others, page) if others else 'anything'}"
    return _scalar(value)


def _scalar(value: Schema) -> str:
    kind = {"boolean": "true or false", "integer": "whole number", "number": "number"}.get(
        value.get("type", ""), "text"
    )
    least, most = value.get("minimum"), value.get("maximum")
    if least is not None and most is not None:
        kind += f" from {least} to {most}"
    elif least is not None:
        kind += f" ≥ {least}"
    examples = value.get("examples", ())
    return f"{kind}, such as `{examples[0]}`" if examples else kind


def _structs(value: Any, definitions: Schema, *, deep: bool = True) -> list[str]:
    """Return the structs that a value is made of; with `deep` those within them too, after them."""
    found: dict[str, None] = {}
    waiting = [value]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            name = _name(node["$ref"]) if "$ref" in node else ""
            if name and name not in found:
                found[name] = None
                waiting += [definitions[name].get("properties", {})] if deep else []
            waiting += [part for key, part in node.items() if key not in ("$ref", "discriminator")]
    return list(found)


def _section(text: str, key: str) -> list[str]:
    """Return the lines of one root key of an example."""
    match = re.search(rf"^{key}:.*\n(?:(?:[ #].*|)\n)*", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"the example has no {key}")
    return match[0].rstrip().splitlines()


def _tag(definition: Schema) -> tuple[str, str] | None:
    for key in ("provider", "type", "framework", "source"):
        options = definition.get("properties", {}).get(key, {}).get("enum", ())
        if len(options) == 1:
            return key, options[0]
    return None


def _name(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def _anchor(name: str) -> str:
    """Return the anchor of a noun's heading as Markdown renderers make it."""
    tag = _tag(_definitions()[name])
    heading = f"{name}: {tag[0]}: {tag[1]}" if tag else name
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def _text(value: Schema) -> str:
    return " ".join(str(value.get("description", "")).split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write the pages: the folder of the examples, then the folder of the pages."""
    folder, out = map(Path, arguments)
    examples = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    for name, text in reference(examples).items():
        (out / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
