"""The cases of compiled Kubernetes objects; run as a script it writes their golden files again.

    python -m tests.inventory.kubernetes_objects.compiled

Then read the diff: it is what would change on every cluster of that kind.
"""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts, kubernetes_facts
from gcluster.inventory.compile.kubernetes_objects.tree import kubernetes_files
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.lifecycle.smoke.launching.kubernetes import kubernetes_runs
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.registry import provider

CASES = Path(__file__).parents[2] / "cases" / "kubernetes"
EXPECTED = CASES / "expected"
NAMES = sorted(path.stem for path in (CASES / "specs").glob("*.yaml"))
REVIEWED = ("campus/", "local/devices/simulated.yaml")
"""What is kept and read: one whole tree and what it lacks. The rest is held by laws and schemas."""
_NO_OBJECTS = frozenset({"nodes.yaml", "order.yaml", "unknown.yaml"})
Object: TypeAlias = dict[str, Any]


@lru_cache(maxsize=16)
def spec_of(case: str) -> ClusterSpec:
    """Return the spec of a case; it must pass its checks."""
    loaded = load(CASES / "specs" / f"{case}.yaml")
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    return loaded.spec


@lru_cache(maxsize=16)
def files_of(case: str) -> dict[str, bytes]:
    """Return the compiled files below kubernetes/."""
    spec = spec_of(case)
    return kubernetes_files(spec, hosts_of(spec), load_catalog(), kubernetes_runs)


def hosts_of(spec: ClusterSpec) -> ClusterInventory:
    """Return the hosts that are planned."""
    catalog = load_catalog()
    planned = [
        host
        for name, site in spec.sites.items()
        for host in provider(site.provider, catalog).planned_hosts(spec, name)
    ]
    return inventory(spec, planned)


def facts_of(spec: ClusterSpec) -> KubernetesFacts:
    """Return what the compiler starts from, with the hosts that are planned."""
    return kubernetes_facts(spec, hosts_of(spec), load_catalog())


def objects_of(case: str) -> list[tuple[str, Object]]:
    """Return (file, object) for every object of a case, kustomizations left out."""
    return [
        (name, made)
        for name, text in sorted(files_of(case).items())
        if not _holds_no_objects(name)
        for made in yaml.load_all(text, Loader=yaml.CSafeLoader)
    ]


def of_kind(case: str, kind: str) -> list[Object]:
    """Return all objects of one kind."""
    return [made for _, made in objects_of(case) if made["kind"] == kind]


def _holds_no_objects(name: str) -> bool:
    is_values = name.startswith(("addons/", "templates/"))
    return is_values or name in _NO_OBJECTS or name.endswith("kustomization.yaml")


def reviewed() -> dict[str, bytes]:
    """Return the files of REVIEWED, by CASE/PATH."""
    found = {
        f"{case}/{name}": content
        for case in sorted({path.partition("/")[0] for path in REVIEWED})
        for name, content in files_of(case).items()
    }
    return {path: content for path, content in found.items() if path.startswith(REVIEWED)}


def main() -> None:
    """Write the golden files."""
    shutil.rmtree(EXPECTED, ignore_errors=True)
    for name, content in reviewed().items():
        path = EXPECTED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main()
