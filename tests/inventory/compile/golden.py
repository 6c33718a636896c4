"""Compile the golden cases; run as a script it writes what they compile to now.

    python -m tests.inventory.compile.golden

Then read the diff: it is what every cluster of that kind would run differently.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import msgspec
from tests.golden_files import as_yaml

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.inventory.compile.kubernetes import KubernetesAt
from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget, pool_host_names
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.spec import BareMetalSite, ClusterSpec, KubernetesScheduler
from gcluster.schemas.stack.bundle import decode_kubernetes

CASES = Path(__file__).parents[2] / "cases" / "compile"
NAMES = sorted(path.stem for path in (CASES / "specs").glob("*.yaml"))


def spec_of(case: str) -> ClusterSpec:
    """Return the spec of a case; it must pass its checks."""
    loaded = load(CASES / "specs" / f"{case}.yaml")
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    return loaded.spec


def inventory_of(spec: ClusterSpec) -> ClusterInventory:
    """Return the hosts; those that a provider would make get addresses from 10.210.0.2 on."""
    hosts: list[Host] = []
    for site, described in spec.sites.items():
        if isinstance(described, BareMetalSite):
            hosts.extend(bare_metal_hosts(spec, site))
            continue
        for name, pool in spec.pools.items():
            hosts.extend(
                Host(
                    name=host,
                    site=site,
                    pool=name,
                    role=pool.role,
                    machine=pool.machine,
                    address=str(IPv4Address("10.210.0.2") + 256 * _rank(spec, name) + place),
                    ssh=SshTarget(user="root"),
                )
                for place, host in enumerate(pool_host_names(name, pool))
                if pool.site == site
            )
    return ClusterInventory(cluster=spec.name, hosts=tuple(hosts))


def compiled(spec: ClusterSpec) -> CompiledCluster:
    """Compile a spec with the hosts above."""
    return compile_cluster(spec, inventory_of(spec), load_catalog(), kubernetes=bundle_of(spec))


def bundle_of(spec: ClusterSpec) -> KubernetesAt | None:
    """Return the bundle of Kubernetes next to the case of local nodes; else None."""
    if not isinstance(spec.scheduler, KubernetesScheduler) or not all(
        site.is_made_here for site in spec.sites.values()
    ):
        return None
    written = (CASES / "specs/kubernetes-local.bundle.json").read_bytes()
    return KubernetesAt(manifest=decode_kubernetes(written), root="file:///srv/kubernetes")


def written(cluster: CompiledCluster) -> str:
    """Return the compiled cluster as the golden files hold it: each step where it comes first."""
    seen: dict[str, tuple[str, dict[str, Any]]] = {}
    groups: dict[str, Any] = {}
    for group in cluster.groups:
        steps: dict[str, Any] = {}
        for step in group.steps:
            row = {key: value for key, value in msgspec.to_builtins(step).items() if value}
            row = {key: row[key] for key in row if key not in {"role", "phase"}}
            first, same = seen.setdefault(step.key, (group.name, row))
            assert step.key not in steps
            steps[step.key] = row if first == group.name or same != row else f"as {first}"
        groups[group.name] = {"hosts": list(group.hosts), "steps": steps}
    return as_yaml({"cluster": cluster.cluster, "groups": groups})


def _rank(spec: ClusterSpec, pool: str) -> int:
    return sorted(spec.pools).index(pool)


if __name__ == "__main__":
    for case in NAMES:
        (CASES / f"{case}.yaml").write_text(written(compiled(spec_of(case))))
