"""Published definitions of clusters, adopted: what became of their settings, as docs/adopt.md says.

`python -m tests.schemas.adopt.published` rewrites the table there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from gcluster.lifecycle.cluster.adopt import ansible_inventory
from gcluster.schemas.adopt.aws.eksctl import adopt_eksctl
from gcluster.schemas.adopt.aws.hyperpod import adopt_hyperpod
from gcluster.schemas.adopt.aws.parallelcluster import adopt_parallelcluster
from gcluster.schemas.adopt.aws.place import AwsPlace
from gcluster.schemas.adopt.draft import Adopted
from gcluster.schemas.adopt.fleets.dstack import adopt_dstack
from gcluster.schemas.adopt.fleets.skypilot import adopt_skypilot
from gcluster.schemas.adopt.gcp.toolkit import adopt_toolkit
from gcluster.schemas.adopt.inventories.ansible import adopt_ansible
from gcluster.schemas.adopt.inventories.kubespray import adopt_kubespray
from gcluster.schemas.adopt.node_lists.openhpc import adopt_openhpc
from gcluster.schemas.adopt.node_lists.warewulf import adopt_warewulf

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "cases" / "adopt" / "published"
PAGE = ROOT / "docs" / "adopt.md"
_BEGIN, _END = "<!-- table of published files -->", "<!-- end of the table -->"
_DATE = "2026-11-27"


class Case(NamedTuple):
    """A published file."""

    name: str
    tool: str
    source: dict[str, str]
    given: dict[str, Any]
    provisioning: Any
    data: Any
    """What the tool's importer reads: YAML's data, an inventory's JSON, or text."""
    lifecycle: dict[str, str] | None = None
    """Files of HyperPod's folder of scripts, by their names."""


def names() -> list[str]:
    """Return the cases by name."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def read_case(name: str) -> Case:
    """Read a case."""
    found = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    text, tool = found["text"], found["tool"]
    data: Any = text
    if tool in {"ansible", "kubespray"}:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "hosts.ini"
            file.write_text(text)
            data = ansible_inventory(file)
    elif tool != "openhpc":
        data = yaml.safe_load(text)
    return Case(
        name,
        tool,
        found["source"],
        found.get("given") or {},
        found.get("provisioning"),
        data,
        found.get("lifecycle"),
    )


def adopted(found: Case, data: Any = None) -> Adopted:
    """Adopt a case, or the same with other data."""
    data = found.data if data is None else data
    given = found.given
    about: dict[str, Any] = {"origin": found.name, "date": _DATE}
    place = AwsPlace(**given) if found.tool in {"parallelcluster", "eksctl", "hyperpod"} else None
    on_aws = {"place": place or AwsPlace(), **about}
    makers: dict[str, Callable[[], Adopted]] = {
        "parallelcluster": lambda: adopt_parallelcluster(data, name=found.name, **on_aws),
        "eksctl": lambda: adopt_eksctl(data, name="", **on_aws),
        "hyperpod": lambda: adopt_hyperpod(
            data, found.provisioning, name="", lifecycle=found.lifecycle, **on_aws
        ),
        "cluster-toolkit": lambda: adopt_toolkit(data, given=given, name="", **about),
        "ansible": lambda: adopt_ansible(data, name="", roles={}, **about),
        "kubespray": lambda: adopt_kubespray(data, name=found.name, **about),
        "skypilot": lambda: adopt_skypilot(data, name="", given=given, **about),
        "dstack": lambda: adopt_dstack(data, name="", given=given, **about),
        "warewulf": lambda: adopt_warewulf(data, name=found.name, user="root", **given, **about),
        "openhpc": lambda: adopt_openhpc(data, name=found.name, user="root", **about),
    }
    return makers[found.tool]()


class Row(NamedTuple):
    """What became of a file's settings."""

    found: Case
    carried: int
    replaced: int
    lost: int
    unfinished: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.carried + self.replaced + self.lost + self.unfinished

    @property
    def unsaid(self) -> float:
        """Percent that can't be said."""
        return 100 * (self.lost + self.unfinished) / (self.total or 1)


@cache
def rows() -> tuple[Row, ...]:
    """Return a row for each case."""
    made = []
    for name in names():
        found = read_case(name)
        count = adopted(found).settings
        made.append(Row(found, count.carried, count.replaced, count.lost, count.unfinished))
    return tuple(made)


def table() -> str:
    """Return the table as Markdown."""
    lines = [
        "| published file | tool | settings | carried | own way | lost | unfinished | unset |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows():
        source = row.found.source
        link = f"https://github.com/{source['repository']}/blob/{source['commit']}/{source['path']}"
        lines.append(
            f"| [{row.found.name}]({link}) | {row.found.tool} | {row.total} | {row.carried} | "
            f"{row.replaced} | {row.lost} | {row.unfinished} | {row.unsaid:.0f} % |"
        )
    middle = median(row.unsaid for row in rows())
    lines += ["", f"Median of what can't be said: {middle:.0f} %."]
    return "\n".join(lines)


def page_with_table(page: str) -> str:
    """Return a page with the table between its two marks."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{table()}\n\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
