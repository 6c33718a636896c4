"""A cluster of machines whose add-ons are small charts of ours, under the names of real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.lifecycle.publisher import Publisher, digest

from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts, kubernetes_facts
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.stacks.registry import provider

SPEC = """\
apiVersion: gcluster/v1
name: lab
sites:
  hall: {provider: bare-metal, ssh: {user: ops}}
pools:
  control: {site: hall, role: controller, hosts: [{name: cp1, address: 192.0.2.1}]}
  gpu:
    site: hall
    machine: hgx-h100-8
    hosts: [{name: "gpu[1-2]", address: "192.0.2.[11-12]"}]
    cpu: {sockets: 2, cores: 48, threads_per_core: 2}
    memory: 2048 GiB
scheduler: {type: kubernetes, addons: [widgets]}
software: {distribution: ubuntu-22.04, kubernetes: "1.35"}
smoke: {allreduce: {sizes: 8B..1GiB}}
catalog: [addons.yaml]
"""
NEEDED = ("cilium", "gpu-operator", "kueue")
"""Add-ons that the spec needs without naming them."""


def entry(publisher: Publisher, name: str, chart: bytes, version: str = "1.0.0") -> dict[str, Any]:
    """Publish a chart; return what a catalog says of it."""
    publisher.has_chart(name, version, chart)
    return {
        "name": name, "description": "a small chart", "kind": "helm", "chart": name,
        "repository": f"oci://{publisher.host}/charts", "version": version,
        "digest": digest(chart), "namespace": f"{name}-system", "source": "here",
        "date": "2026-11",
    }  # fmt: skip


def write(folder: Path, *addons: dict[str, Any], spec: str = SPEC) -> Path:
    """Write the spec and its catalog; return the spec's path."""
    answer = {"apiVersion": "gcluster/catalog/v1", "addons": list(addons)}
    (folder / "addons.yaml").write_bytes(msgspec.yaml.encode(answer))
    path = folder / "lab.yaml"
    path.write_text(spec, encoding="utf-8")
    return path


def hosts_of(path: Path) -> ClusterInventory:
    """Return the hosts of a spec."""
    loaded = load(path)
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    catalog = load_catalog(loaded.catalogs)
    return inventory(
        loaded.spec,
        [
            host
            for name, site in loaded.spec.sites.items()
            for host in provider(site.provider, catalog).planned_hosts(loaded.spec, name)
        ],
    )


def facts_of(path: Path, *without: str) -> KubernetesFacts:
    """Return the facts of a spec; `without` these add-ons."""
    loaded = load(path)
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    catalog = load_catalog(loaded.catalogs)
    return kubernetes_facts(loaded.spec, hosts_of(path), catalog, frozenset(without))
