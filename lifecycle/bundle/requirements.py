"""What the nodes of a spec need: packages, files and images, by pool and role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ...inventory.compile import Group, Step, compile_cluster
from ...inventory.compile.node import NodeFacts, node_facts
from ...inventory.compile.roles import role_compilers
from ...inventory.compile.slurm.packages import slurm_build
from ...inventory.hosts import ClusterInventory
from ...schemas.catalog import Catalog
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ...schemas.stack.bundle import BundleManifest, RoleNeed
from ...stacks.local.image.base_image import recipe
from ...stacks.registry import provider
from ..cluster.open_site import inventory
from ..cluster.outcome import Exit, LifecycleError, failure
from ..nodes.converge.role_files import role_path
from .kubernetes import RequiredKubernetes, refusals, required_kubernetes
from .role_tasks import (
    FACTS,
    Task,
    filled_tasks,
    loaded,
    module_of,
    role_variables,
)

ANSIBLE = "ansible"
"""Placeholder role name for what every node needs before a role can run."""
ASKED_WITH = {"slurm": ("slurm", "slurmdbd", "munge", "mpi", "enroot_pyxis", "pam_slurm_adopt")}
"""Role -> all roles that are included where a bundle is limited to it: Slurm needs its keys, its
accounts, PMIx and job containers, as far as a spec has them."""
_FOR_ANSIBLE = ("python3", "python3-apt", "openssh-server", "sudo")
_SUITES = {"bookworm": "debian-12", "trixie": "debian-13"}
_TAKES = frozenset({
    "ansible.builtin.apt", "ansible.builtin.dnf", "ansible.builtin.package",
    "ansible.builtin.get_url", "ansible.builtin.unarchive",
})  # fmt: skip
_NAMES = frozenset({"name", "pkg", "deb", "url", "src"})
"""Arguments that name packages or files; a task without them only refreshes indexes."""


class RoleDownload(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A file that a role downloads."""

    role: str
    source: str
    path: str
    """Below the source's URL."""
    checksum: str
    """sha256:…; "" where none is known."""


class PoolNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """What the nodes of one pool need."""

    pool: str
    distribution: str | None
    """None: not specified."""
    architecture: str
    packages: tuple[RoleNeed, ...]
    files: tuple[RoleDownload, ...]
    repositories: tuple[dict[str, Any], ...]
    """Vendors' repositories, as role package_sources takes them without a bundle."""
    images: tuple[RoleNeed, ...]
    """Container images of the sources of its roles."""
    unclear: tuple[RoleNeed, ...]
    """Tasks whose packages or files depend on facts of the node."""


def needs_of(spec: ClusterSpec, catalog: Catalog, only: tuple[str, ...] = ()) -> list[PoolNeeds]:
    """Return what each pool needs, in the order of the spec.

    Args:
        spec: a checked spec.
        catalog: machines and sources.
        only: roles to include, with what belongs to them (`ASKED_WITH`); none: all.
    """
    only = tuple(role for named in only for role in ASKED_WITH.get(named, (named,)))
    hosts = _hosts(spec, catalog)
    placeholder = BundleManifest(cluster=spec.name, key_fingerprint="0" * 40, key="")
    facts = node_facts(spec, catalog, hosts)
    kubernetes = required_kubernetes(spec, facts)
    at = None if kubernetes is None else kubernetes.planned()
    from_bundle = compile_cluster(spec, hosts, catalog, placeholder, at)
    compiled = compile_cluster(spec, hosts, catalog, kubernetes=at)
    outside = {group.name: group for group in compiled.groups}
    found = {}
    for group in from_bundle.groups:
        node = facts[group.name]
        distribution = _distribution(spec, group.name, node.software.distribution)
        cpu = None if node.machine is None else node.machine.cpu
        reader = _PhaseReader(distribution or "", "x86_64" if cpu is None else cpu.architecture)
        reader.take(group, only)
        base: list[RoleNeed] = []
        if not only:
            local = spec.sites[spec.pools[group.name].site].provider == "local"
            names = (*_FOR_ANSIBLE, *(recipe().packages if local else ()))
            base = [RoleNeed(role=ANSIBLE, what=name) for name in names]
        found[group.name] = PoolNeeds(
            pool=group.name,
            distribution=distribution,
            architecture=reader.architecture,
            packages=tuple(sorted({*reader.packages, *base})),
            files=tuple(sorted(reader.files)),
            repositories=tuple(_repositories(outside[group.name], distribution)),
            images=tuple(_images(node, catalog, only)),
            unclear=tuple(sorted(reader.unclear)),
        )
    return [found[name] for name in spec.pools if name in found]


def refuse_built_slurm(spec: ClusterSpec, catalog: Catalog) -> None:
    """Let specs pass whose Slurm is the distribution's: a bundle has no compiler and no source.

    Raises:
        LifecycleError: GC939, with what to write.
    """
    facts = node_facts(spec, catalog, _hosts(spec, catalog))
    built = {node.name: found.version for node in facts.values() if (found := slurm_build(node))}
    if built:
        pools, version = ", ".join(sorted(built)), next(iter(built.values()))
        raise failure(
            "GC939",
            f"Slurm {version} of {pools} is built on a node, and bundles have none that is built",
            hint="write software: {slurm: distribution}",
            exit_code=Exit.REFUSED,
        )


def kubernetes_of(spec: ClusterSpec, catalog: Catalog) -> RequiredKubernetes | None:
    """Return what the nodes of a spec need of Kubernetes; None: nothing that we bring them."""
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return None
    return required_kubernetes(spec, node_facts(spec, catalog, _hosts(spec, catalog)))


def _hosts(spec: ClusterSpec, catalog: Catalog) -> ClusterInventory:
    planned = (
        provider(site.provider, catalog).planned_hosts(spec, name)
        for name, site in spec.sites.items()
    )
    return inventory(spec, (host for found in planned for host in found))


def _distribution(spec: ClusterSpec, pool: str, resolved: str | None) -> str | None:
    """Return a pool's distribution, from the spec, its software or its site."""
    own = spec.pools[pool].software
    distributions = [own.distribution if own else "auto", spec.software.distribution]
    requested = next((name for name in distributions if name != "auto"), None)
    if spec.sites[spec.pools[pool].site].provider == "local":
        return _SUITES[recipe().suite]
    return requested or resolved


def _repositories(group: Group, distribution: str | None) -> Iterator[dict[str, Any]]:
    for step in group.steps:
        if step.key == "package_sources.install":
            for repository in step.variables["package_sources_repositories"]:
                if repository["distribution"] == distribution:
                    yield repository


def _images(node: NodeFacts, catalog: Catalog, only: tuple[str, ...]) -> Iterator[RoleNeed]:
    """Yield the images of the sources of the roles that a pool's nodes run."""
    for role in role_compilers():
        images = [
            f"{source.url.split('://')[-1]}/{image}"
            for name in role.sources
            if (source := catalog.sources.get(name)) is not None
            for image in source.images
        ]
        steps = role.steps(node) if images else ()
        for name in sorted({step.role for step in steps} & set(only or (s.role for s in steps))):
            yield from (RoleNeed(role=name, what=image) for image in images)


class _PhaseReader:
    """Reads the install phases of one pool."""

    def __init__(self, distribution: str, architecture: str) -> None:
        self.architecture = architecture
        self.facts = {**FACTS.get(distribution, FACTS["debian-13"]), "architecture": architecture}
        self.packages: set[RoleNeed] = set()
        self.files: set[RoleDownload] = set()
        self.unclear: set[RoleNeed] = set()

    def take(self, group: Group, only: tuple[str, ...]) -> None:
        for step in group.steps:
            if step.phase == "install" and (not only or step.role in only):
                self._step(step)

    def _step(self, step: Step) -> None:
        role = role_path(step.role)
        variables = role_variables(role, step.variables, self.facts)

        def unknown(task: Task, _: Exception) -> None:
            given = task.get(module_of(task))
            if module_of(task) in _TAKES and isinstance(given, dict) and _NAMES & given.keys():
                self.unclear.add(RoleNeed(role=step.role, what=str(task.get("name", "a task"))))

        tasks = loaded(role / f"tasks/{step.phase}.yml") or []
        for task in filled_tasks(tasks, variables, role, unknown):
            for module, given in task.items():
                self._task(step.role, module, given)

    def _task(self, role: str, module: str, given: Any) -> None:
        if module == "ansible.builtin.apt":
            self.packages |= {RoleNeed(role=role, what=name) for name in _names(given)}
        elif module in {"ansible.builtin.get_url", "ansible.builtin.unarchive"}:
            url = str(given.get("url", given.get("src", "")))
            if "/files/" in url:
                source, _, path = url.split("/files/", 1)[1].partition("/")
                checksum = str(given.get("checksum", ""))
                self.files.add(RoleDownload(role=role, source=source, path=path, checksum=checksum))
        elif module == "gcluster.cluster.package_pinned":
            self.packages |= {RoleNeed(role=role, what=name) for name in _pinned(given)}


def _names(given: Any) -> list[str]:
    """Return the packages of a task of apt."""
    names = given.get("name", given.get("pkg", [])) if given.get("state") != "absent" else []
    return names.split(",") if isinstance(names, str) else list(names)


def _pinned(wanted: dict[str, Any]) -> list[str]:
    """Return the packages of a task of `package_pinned`, as apt takes them."""
    exact = [f"{name}={version}" for name, version in wanted.get("packages", {}).items()]
    return [*exact, *wanted.get("also", [])]


def refuse_unclear(
    needs: list[PoolNeeds],
    catalog: Catalog,
    only: tuple[str, ...],
    kubernetes: RequiredKubernetes | None,
) -> None:
    """Report all that can't be collected, before anything is fetched.

    Args:
        needs: what the pools need.
        catalog: sources.
        only: roles that the bundle is limited to.
        kubernetes: what nodes need of it; None: nothing.

    Raises:
        LifecycleError: GC939, one for each.
    """
    found: list[Diagnostic] = [] if kubernetes is None else list(refusals(kubernetes))
    for pool in needs:
        if pool.distribution is None:
            found.append(
                _refusal(
                    f"pool {pool.pool}: the distribution of its hosts is not specified",
                    "write software.distribution in the spec, for all pools or for this one",
                )
            )
        found += [
            _refusal(
                f"role {a.role} of pool {pool.pool}: it is known only on a node what is needed"
                f' by its task "{a.what}"',
                "leave this role out, or give it a version",
            )
            for a in pool.unclear
        ]
        for file in pool.files:
            if not file.checksum.startswith("sha256:"):
                found.append(
                    _refusal(
                        f"{file.source}/{file.path}, which {file.role} requires, has no checksum",
                        f"write it under software.sources.{file.source}.checksums",
                    )
                )
            if file.source not in catalog.sources:
                found.append(_refusal(f"{file.source} is no artefact source of the catalog", ""))
        found += [
            _refusal(
                f"image {image.what}, which {image.role} requires, has no digest",
                "an image is taken by its digest alone: NAME@sha256:…",
            )
            for image in pool.images
            if "@sha256:" not in image.what
        ]
    requested = {a.role for pool in needs for a in pool.packages} | {
        f.role for pool in needs for f in pool.files
    }
    requested |= set() if kubernetes is None else {"kubernetes"}
    for role in only:
        if role not in requested:
            found.append(_refusal(f'nothing of this spec is installed by a role "{role}"', ""))
    if found:
        raise LifecycleError(*dict.fromkeys(found), exit_code=Exit.REFUSED)


def _refusal(summary: str, hint: str) -> Diagnostic:
    return Diagnostic(code="GC939", severity=Severity.ERROR, summary=summary, hint=hint)
