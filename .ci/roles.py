"""Write what follows from roles' meta files: defaults/main.yml, and the README's table of roles.

usage: python .ci/roles.py [--check]      --check: exit 1, and name what is out of date

A role is declared once: its variables in meta/argument_specs.yml, its sentence in meta/main.yml.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gcluster.inventory.compile.steps import PHASES

ROOT = Path(__file__).parents[1]
README = ROOT / "src/gcluster/ansible_collections/gcluster/cluster/README.md"
BEGIN, END = "<!-- roles: written by `make docs` -->\n\n", "\n<!-- /roles -->\n"
HEAD = "| role | what it does | phases |\n| --- | --- | --- |\n"


def read(path: Path) -> Any:
    """Return a YAML file's content."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def entry_points(role: Path) -> dict[str, dict[str, Any]]:
    """Return phase -> its variables, as the role declares them."""
    specs = read(role / "meta/argument_specs.yml")["argument_specs"]
    return {name: spec.get("options") or {} for name, spec in specs.items()}


def defaults(role: Path) -> dict[str, Any]:
    """Return the defaults of all variables that have one."""
    return {
        name: option["default"]
        for options in entry_points(role).values()
        for name, option in options.items()
        if "default" in option
    }


class _Indented(yaml.SafeDumper):
    """Writes items of lists further right than their key, as yamllint has them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Never leave an item in its key's column."""
        del indentless
        super().increase_indent(flow, False)


def row(role: Path) -> str:
    """Return a role's line of the table."""
    sentence = read(role / "meta/main.yml")["galaxy_info"]["description"]
    phases = " ".join(phase for phase in PHASES if phase in entry_points(role))
    return f"| {role.name} | {sentence} | {phases} |\n"


def outdated() -> Iterator[tuple[Path, str]]:
    """Yield the files that differ from what they follow from, with what they should hold.

    The text of defaults that hold the right values is left as it is: it may have comments.
    """
    roles = [path.parents[1] for path in sorted(ROOT.glob("roles/*/meta/argument_specs.yml"))]
    for role in roles:
        file = role / "defaults/main.yml"
        wanted = defaults(role)
        if not file.exists() or (read(file) or {}) != wanted:
            yield file, "---\n" + yaml.dump(wanted, Dumper=_Indented, sort_keys=False, width=120)
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = f"{before}{BEGIN}{HEAD}{''.join(map(row, roles))}{END}{after}"
    if text != table:
        yield README, table


def main(words: list[str]) -> int:
    """Write, or check."""
    status = 0
    for path, text in outdated():
        print(path.relative_to(ROOT))
        if "--check" in words:
            status = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
