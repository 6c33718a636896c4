"""What gcluster generates for an adopted blueprint next to what the blueprint's own tool does.

`python -m tests.schemas.adopt.generated` writes docs/generated-compared.md again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from gcluster.lifecycle.bundle.role_tasks import FACTS, filled_tasks, loaded, role_variables
from gcluster.lifecycle.planning.compile_tree import compile_tree
from gcluster.schemas.adopt.draft import spec_text
from gcluster.schemas.load import load_text
from gcluster.stacks.pulumi.provider import CloudProvider
from gcluster.stacks.registry import provider

from . import published

FOLDER = published.ROOT / "tests/cases/adopt/generated"
PAGE = published.ROOT / "docs/generated-compared.md"
_BEGIN, _END = "<!-- table of what is generated -->", "<!-- end of the table -->"
NOTHING = "\N{EN DASH}"
"""Marks a setting that isn't written."""


class Compared(NamedTuple):
    """One setting."""

    file: str
    name: str
    theirs: str
    ours: str
    why: str
    """Why they differ; "" where they don't."""


def names() -> list[str]:
    """Return the blueprints by name."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def compared(name: str) -> list[Compared]:
    """Return the settings of a blueprint in the order of its case."""
    case = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    ours = generated(name, case["pool"])
    return [
        Compared(file, setting, said[0], ours[file].get(setting, NOTHING), *(said[1:] or [""]))
        for file, sources in case["settings"].items()
        for source, settings in sources.items()
        for setting, said in settings.items()
        if source in case["files"]
    ]


@cache
def generated(name: str, pool: str) -> dict[str, dict[str, str]]:
    """Return file -> setting -> value, compiled from the adopted blueprint."""
    text = spec_text(published.adopted(published.read_case(name)), "a test")
    spec = load_text(text).spec
    assert spec is not None
    with TemporaryDirectory() as folder:
        (Path(folder) / "spec.yaml").write_text(text)
        compile_tree(Path(folder) / "spec.yaml", Path(folder) / "out")
        groups = {
            path.stem: json.loads(path.read_text())
            for path in (Path(folder) / "out/groups").glob("*.json")
        }
    files = dict(_slurm_files(groups["head"], spec.software.distribution))
    conf = files["/etc/slurm/slurm.conf"]
    site = spec.pools[pool].site
    return {
        "slurm.conf": _settings(conf),
        "node line": _words(conf, f"NodeName={pool}"),
        "partition line": _words(conf, f"PartitionName={pool}"),
        "gres.conf": _words(files["/etc/slurm/gres.conf"], f"NodeName={pool}"),
        "NCCL environment": _environment(groups[pool]),
        **_cloud(spec.sites[site].provider, text, site, pool),
    }


def _slurm_files(group: dict[str, Any], distribution: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of what the controllers' role writes first: Slurm's own files."""
    role = published.ROOT / "roles/slurm"
    (step,) = (s for s in group["steps"] if (s["role"], s["phase"]) == ("slurm", "configure"))
    # What later tasks read of the node; no file depends on it.
    answers = {"slurm_runs": {"rc": 1}, "slurm_rest_ended": {"stdout": ""}}
    variables = role_variables(role, {**step["variables"], **answers}, FACTS[distribution])
    for task in loaded(role / "tasks/configure.yml"):
        if "gcluster.cluster.managed_files" not in task or "slurm_texts" not in str(task):
            continue
        for filled in filled_tasks([task], variables, role):
            yield from filled["gcluster.cluster.managed_files"]["files"].items()


def _settings(text: str) -> dict[str, str]:
    """Return the settings of a file that have a line of their own."""
    return dict(
        re.findall(r"^(?!NodeName|PartitionName)([A-Z][A-Za-z]+)=(.*)$", text, re.MULTILINE)
    )


def _words(text: str, start: str) -> dict[str, str]:
    """Return the words of the first line that starts so."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return dict(word.split("=", 1) for word in line.split())


def _environment(group: dict[str, Any]) -> dict[str, str]:
    """Return what jobs on a pool get of NCCL's variables."""
    found = (step["variables"].get("nccl_environment") for step in group["steps"])
    return next((each for each in found if each), {})


def _cloud(cloud: str, text: str, site: str, pool: str) -> dict[str, dict[str, str]]:
    """Return networks and placement as the site's program makes them."""
    spec = load_text(text).spec
    made = provider(cloud)
    assert spec is not None
    assert isinstance(made, CloudProvider)
    resources = made.record(spec, site).resources
    templates = [r for r in resources if re.search(r":(Instance|Launch)Template$", r.type)]
    (template,) = (r.inputs for r in templates if f"-{pool}-" in r.name)
    if cloud == "aws":
        return _aws(template)
    policies = [r for r in resources if r.type.endswith(":ResourcePolicy")]
    mtus = {r.name: r.inputs["mtu"] for r in resources if r.type.endswith("network:Network")}
    fabric = {name: mtu for name, mtu in mtus.items() if not name.endswith("-nodes")}
    (own,) = (mtu for name, mtu in mtus.items() if name.endswith("-nodes"))
    interfaces = template["networkInterfaces"]
    return {
        "network": {
            "interfaces of a node": str(len(interfaces)),
            "fabric networks": str(len(fabric)),
            "MTU of fabric networks": ", ".join(sorted({str(mtu) for mtu in fabric.values()})),
            "MTU of the nodes' network": str(own),
            "NIC type": ", ".join(sorted({nic["nicType"] for nic in interfaces})),
        },
        "placement": {"compact placement policies": str(len(policies) or "none")},
    }


def _aws(template: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the interfaces and the placement of a launch template."""
    kinds = [nic["interfaceType"] for nic in template["networkInterfaces"]]
    group = (template.get("placement") or {}).get("groupName", "none")
    return {
        "network": {
            "EFA interfaces": str(sum(kind.startswith("efa") for kind in kinds)),
            "interfaces with an address": str(sum(kind != "efa-only" for kind in kinds)),
        },
        "placement": {"placement group": str(group)},
    }


def table(name: str) -> str:
    """Return the table of a blueprint."""
    rows = compared(name)
    same = [row for row in rows if row.theirs == row.ours]
    lines = [
        f"{len(rows)} settings, {len(same)} alike: "
        + ", ".join(f"`{row.name}`" for row in same)
        + ".",
        "",
        "| where | setting | the blueprint's tool | gcluster | why |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if row.theirs != row.ours:
            values = (_cell(row.theirs), _cell(row.ours))
            lines.append(f"| {row.file} | `{row.name}` | {' | '.join(values)} | {row.why} |")
    return "\n".join(lines)


def _cell(value: str) -> str:
    return value if value in {NOTHING, "none"} else f"`{value}`"


def page_with_tables() -> str:
    """Return the page with what is generated now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    tables = "\n\n".join(f"## {name}\n\n{table(name)}" for name in names())
    return f"{before}{_BEGIN}\n\n{tables}\n\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(), encoding="utf-8")
