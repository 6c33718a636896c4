"""What gcluster generates for an adopted blueprint next to what the blueprint's own tool does.

`python -m tests.schemas.adopt.generated` writes docs/generated-compared.md and its pages again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
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
from gcluster.stacks.pulumi.recording.graph import RecordedResource
from gcluster.stacks.registry import provider

from . import published

FOLDER = published.ROOT / "tests/cases/adopt/generated"
DOCS = published.ROOT / "docs"
PAGE = "generated-compared.md"
CLOUDS = {"aws": "AWS", "azure": "Azure", "gcp": "Google Cloud", "oci": "OCI"}
"""Clouds that have a page each, and their names there."""
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
    written = case(name)
    ours = generated(name)
    return [
        Compared(file, setting, answer[0], ours[file].get(setting, NOTHING), *(answer[1:] or [""]))
        for file, sources in written["settings"].items()
        for source, settings in sources.items()
        for setting, answer in settings.items()
        if source in written["files"]
    ]


def case(name: str) -> dict[str, Any]:
    """Return a case; it has a `spec` where no importer reads its tool's files."""
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return found


@cache
def generated(name: str) -> dict[str, dict[str, str]]:
    """Return file -> setting -> value, compiled from the adopted or re-expressed blueprint."""
    answer = case(name)
    pool = answer["pool"]
    text = answer.get("spec") or spec_text(published.adopted(published.read_case(name)), "a test")
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
    nodes = pool.replace("_", "-")
    assert spec.sites[site].provider == answer["cloud"]
    return {
        "slurm.conf": _settings(conf),
        "cgroup.conf": _settings(files["/etc/slurm/cgroup.conf"]),
        "node line": _words(conf, f"NodeName={nodes}"),
        "partition line": _words(conf, f"PartitionName={answer.get('partition', pool)}"),
        "gres.conf": _words(files["/etc/slurm/gres.conf"], f"NodeName={nodes}"),
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
    if cloud == "oci":
        return _oci(resources)
    if cloud == "azure":
        return _azure(resources)
    templates = [r for r in resources if re.search(r":(Instance|Launch)Template$", r.type)]
    nodes = pool.replace("_", "-")
    (template,) = (r.inputs for r in templates if f"-{nodes}-" in r.name)
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


def _oci(resources: Sequence[RecordedResource]) -> dict[str, dict[str, str]]:
    """Return the RDMA network that the machines are made in, and where."""
    (made,) = (r.inputs for r in resources if r.type.endswith(":ClusterNetwork"))
    (pool,) = made["instancePools"]
    return {
        "network": {"cluster networks": "1", "machines of its instance pool": str(pool["size"])},
        "placement": {"availability domain": made["placementConfiguration"]["availabilityDomain"]},
    }


def _azure(resources: Sequence[RecordedResource]) -> dict[str, dict[str, str]]:
    """Return the scale set that the machines are made in."""
    (made,) = (r.inputs for r in resources if r.type.endswith(":VirtualMachineScaleSet"))
    return {
        "placement": {
            "scale sets of one placement group": str(int(made["singlePlacementGroup"])),
            "zone": ", ".join(made["zones"]),
        },
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


def pages() -> dict[str, str]:
    """Return the pages as they would be written now, by file name."""
    before, _, rest = (DOCS / PAGE).read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    found = {PAGE: f"{before}{_BEGIN}\n\n{_summary()}\n\n{_END}{after}"}
    for cloud, title in CLOUDS.items():
        tables = "\n\n".join(f"## {name}\n\n{table(name)}" for name in _of_cloud(cloud))
        found[_page(cloud)] = (
            f"# What gcluster generates next to tools for {title}\n\n"
            f"How it is compared, and where else: [{PAGE}]({PAGE}).\n\n{tables}\n"
        )
    return found


def _summary() -> str:
    lines = [
        "| cluster | sources of the other side | settings | alike | differ, with the reason |",
        "| --- | --- | --: | --: | --: |",
    ]
    for cloud in CLOUDS:
        for name in _of_cloud(cloud):
            rows = compared(name)
            same = sum(row.theirs == row.ours for row in rows)
            repositories = dict.fromkeys(of["repository"] for of in case(name)["files"].values())
            lines.append(
                f"| [{name}]({_page(cloud)}#{name}) | {', '.join(repositories)} "
                f"| {len(rows)} | {same} | {len(rows) - same} |"
            )
    return "\n".join(lines)


def _of_cloud(cloud: str) -> list[str]:
    return [name for name in names() if case(name)["cloud"] == cloud]


def _page(cloud: str) -> str:
    return f"generated-compared-{cloud}.md"


if __name__ == "__main__":
    for page, text in pages().items():
        (DOCS / page).write_text(text, encoding="utf-8")
