"""`gcluster compile`: the whole result as a tree of files that a person can read, diff and commit.

Works offline and without a running cluster; the same spec writes the same bytes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from ...inventory.compile import CompiledCluster, compile_cluster
from ...inventory.compile.kubernetes import KubernetesAt
from ...inventory.compile.kubernetes_objects import kubernetes_files
from ...inventory.compile.kubernetes_objects.facts import kubernetes_facts
from ...inventory.dashboards.grafana import grafana_files
from ...inventory.hosts import ClusterInventory
from ...inventory.workloads import batch_scripts
from ...inventory.workloads.kubernetes import workload_objects, workload_text
from ...schemas.catalog import Catalog, load_catalog
from ...schemas.load import load
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ...stacks.pulumi.recording.graph import mermaid
from ...stacks.registry import provider
from ..cluster.cluster import SpecError
from ..cluster.open_site import inventory
from ..cluster.outcome import Exit, failure
from ..kubernetes.objects import left_out
from ..kubernetes.release.source import planned_at
from ..nodes.converge.pending import pending_steps
from ..nodes.converge.playbook import playbook_yaml
from ..nodes.converge.user_roles import user_role_files
from ..scheduler.workloads.kubernetes import checkpoint_program
from ..smoke.launching.kubernetes import kubernetes_runs
from .preflight.offline import refuse_unmakeable

MARKER = ".gcluster-compiled"
"""A marker file: this folder was generated and may be overwritten."""


def compile_tree(spec_path: Path, out: Path, *, diagram: bool = False) -> tuple[Path, ...]:
    """Compile a spec into `out` and return the files written, sorted.

    Args:
        spec_path: the spec.
        out: a folder that is new, empty or compiled before.
        diagram: draw the resources of cloud sites too, as Mermaid flowcharts.

    Raises:
        LifecycleError: the spec has errors, or `out` holds files that are not from here.
    """
    loaded = load(spec_path)
    if loaded.spec is None:
        raise SpecError(loaded)
    refuse_unmakeable(loaded)
    if _is_foreign(out):
        raise failure(
            "GC944",
            f"{out} is not empty and was not written by gcluster compile",
            hint="name an empty or a new folder",
            exit_code=Exit.USAGE,
        )
    files = compiled_files(loaded.spec, load_catalog(loaded.catalogs), diagram=diagram)
    _replace(out.resolve(), files)
    return tuple(out / name for name in sorted(files) if name != MARKER)


def _is_foreign(out: Path) -> bool:
    """Whether something is there that is not ours to remove."""
    if out.is_dir():
        return any(out.iterdir()) and not (out / MARKER).exists()
    return out.exists() or out.is_symlink()


def _replace(out: Path, files: dict[str, bytes]) -> None:
    """Write the tree to a temporary folder next to `out` and move it there when complete."""
    building, old = (out.with_name(f".{out.name}.gcluster-{part}") for part in ("new", "old"))
    for stale in (building, old):
        shutil.rmtree(stale, ignore_errors=True)
    for name, content in files.items():
        path = building / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if out.exists():
        out.rename(old)
    building.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def compiled_files(
    spec: ClusterSpec, catalog: Catalog, *, diagram: bool = False
) -> dict[str, bytes]:
    """Return path -> content of the compiled tree (pure but for reading the roles)."""
    providers = {name: provider(site.provider, catalog) for name, site in spec.sites.items()}
    graphs = {name: made_by.graph(spec, name) for name, made_by in providers.items()}
    planned = (made_by.planned_hosts(spec, name) for name, made_by in providers.items())
    hosts = inventory(spec, (host for found in planned for host in found))
    files = {MARKER: b"", "hosts.json": _json(hosts)}
    files |= {f"graph/{name}.json": _json(graph) for name, graph in graphs.items()}
    kubernetes: KubernetesAt | None = None
    if isinstance(spec.scheduler, KubernetesScheduler):
        kubernetes = _planned_bundle(spec)
        files |= _kubernetes(spec, hosts, catalog)
        files |= _workload_files(spec, hosts, catalog)
    compiled = compile_cluster(spec, hosts, catalog, kubernetes=kubernetes)
    files["site.yml"] = _playbook(compiled)
    files |= {f"groups/{group.name}.json": _json(group) for group in compiled.groups}
    for group in compiled.groups:
        files |= {f"roles/{name}": content for name, content in user_role_files(group.steps)}
    for name, made_by in providers.items():
        recorded = made_by.record(spec, name)
        if recorded is not None:
            files[f"graph/{name}.pulumi.json"] = recorded.to_json()
            if diagram:
                files[f"graph/{name}.mmd"] = mermaid(recorded).encode()
    scripts = batch_scripts(spec, catalog)
    files |= {f"workloads/{name}.sbatch": text.encode() for name, text in scripts.items()}
    files |= {f"grafana/{name}": content for name, content in grafana_files(compiled).items()}
    return files


def _planned_bundle(spec: ClusterSpec) -> KubernetesAt | None:
    """Return the bundle as its recipe describes it: the same bytes whether built or not."""
    return planned_at(spec)


def _kubernetes(spec: ClusterSpec, hosts: ClusterInventory, catalog: Catalog) -> dict[str, bytes]:
    """Return what is applied to Kubernetes."""
    without = left_out(spec, hosts, catalog)
    found = kubernetes_files(spec, hosts, catalog, kubernetes_runs, without)
    return {f"kubernetes/{name}": content for name, content in found.items()}


def _workload_files(
    spec: ClusterSpec, hosts: ClusterInventory, catalog: Catalog
) -> dict[str, bytes]:
    """Return the workloads as objects that `kubectl create` takes."""
    if not spec.workloads:
        return {}
    facts, program = kubernetes_facts(spec, hosts, catalog), checkpoint_program()
    return {
        f"workloads/{name}.yaml": workload_text(
            workload_objects(facts, name, workload, program)
        ).encode()
        for name, workload in spec.workloads.items()
    }


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str)) + b"\n"


def _playbook(compiled: CompiledCluster) -> bytes:
    """Return the playbook of a first `up`; secrets appear as paths, never as content."""
    return playbook_yaml(pending_steps(compiled, {}, {}), secret_files={}).encode()
