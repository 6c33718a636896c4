"""The roles package_sources and package_mirror: where other roles take packages from."""

from __future__ import annotations

import msgspec

from ....schemas.catalog.model.source import ArtefactSource, Repository
from ....schemas.spec.software import SourceRedirect
from ....schemas.stack.bundle import BundleManifest
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

_OF_VERSION = frozenset({"version", "minor"})
"""What a path may name of the version: whole, or its first two numbers."""


@role_compiler("package_sources", after=("site_routes",), reads_sources=True)
def package_sources_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role package_sources; none where no source has a repository.

    Every distribution's repositories are passed: the node uses those of its own, so that hosts with
    an unknown distribution work too.
    """
    if node.bundle is not None:  # it is their one source
        return []
    found = [
        line
        for name in node.sources
        for line in _package_sources_repositories(node, node.catalog.sources[name])
    ]
    if not found:
        return []
    return [
        Step(
            stage=Stage.BASE,
            role="package_sources",
            phase="install",
            variables={"package_sources_repositories": found},
            spares_jobs=True,
        ),
        Step(
            stage=Stage.BASE,
            role="package_sources",
            phase="verify",
            variables={"package_sources_repositories": found},
        ),
    ]


def source_url(node: NodeFacts, source: ArtefactSource) -> str:
    """Return the root of a source: its vendor's, or where the spec or a bundle has it."""
    if node.bundle is not None:
        return f"{node.bundle_root}/files/{source.name}"
    redirect = node.spec.software.sources.get(source.name)
    return (redirect.url if redirect is not None and redirect.url else source.url).rstrip("/")


def file_variables(node: NodeFacts, source: str, name: str, version: str) -> dict[str, Json]:
    """Return the URL and checksum of a file of a source ("" where none is known).

    Args:
        node: the nodes that use it.
        source: name in the catalog.
        name: of the file within the source.
        version: the value of {version} in its path.
    """
    entry = node.catalog.sources[source]
    file = next(file for file in entry.files if file.name == name)
    cpu = None if node.machine is None else node.machine.cpu
    arch = "x86_64" if cpu is None else cpu.architecture
    path = file.path.format(
        version=version, arch=arch, deb_arch={"x86_64": "amd64", "aarch64": "arm64"}[arch]
    )
    redirect = node.spec.software.sources.get(source, SourceRedirect())
    checksum = redirect.checksums.get(path) or file.checksums.get(path, "")
    return {"url": f"{source_url(node, entry)}/{path}", "checksum": checksum}


EPEL = ("epel",)
PROMETHEUS_RPM = ("prometheus-rpm",)
_OF_EL = {*EPEL, *PROMETHEUS_RPM}
"""Sources of EL alone: hosts that turn out to run another distribution go without them."""


def _package_sources_repositories(node: NodeFacts, source: ArtefactSource) -> list[Json]:
    """Return the repositories of a source; none where its version isn't known."""
    version = node.version(source.component) if source.component else None
    return [
        _repository(node, source, repository, source.own_version(version or ""))
        for repository in source.repositories
        if version or not _OF_VERSION.intersection(_named(repository.path))
    ]


def _named(path: str) -> set[str]:
    """Return the names in braces of a path."""
    return {part.partition("}")[0] for part in path.split("{")[1:]}


def _repository(
    node: NodeFacts, source: ArtefactSource, repository: Repository, version: str
) -> dict[str, Json]:
    root = source_url(node, source)
    redirect = node.spec.software.sources.get(source.name, SourceRedirect())
    minor = ".".join(version.split(".")[:2])

    def filled(path: str) -> str:
        return path.replace("{version}", version).replace("{minor}", minor)

    key_path = filled(repository.key_path or source.key_path or "")
    key_url = redirect.key_url or (f"{root}/{key_path}" if key_path else source.key_url)
    return {
        "name": source.name,
        "distribution": repository.distribution,
        "architecture": repository.architecture or "",
        "url": f"{root}/{filled(repository.path)}",
        "suite": repository.suite,
        "components": repository.components,
        "key_url": key_url or "",
        "key": redirect.key or "",
        "key_fingerprint": redirect.key_fingerprint
        or repository.key_fingerprint
        or source.key_fingerprint
        or "",
        "signed_index": source.signs_index,
        "packages": source.packages,
        **({"required": False} if source.name in _OF_EL else {}),
    }


def epel(node: NodeFacts) -> tuple[str, ...]:
    """Return EPEL for nodes of EL, and hosts that may be: Slurm and MPI come from it there."""
    return EPEL if _may_run_el(node) else ()


def prometheus_rpm(node: NodeFacts) -> tuple[str, ...]:
    """Return where nodes of EL, and hosts that may be, take what watches them from."""
    return PROMETHEUS_RPM if _may_run_el(node) else ()


def _may_run_el(node: NodeFacts) -> bool:
    unsaid = (
        node.software.distribution is None and not node.spec.sites[node.pool.site].makes_machines
    )
    return unsaid or node.software.distribution == "el-9"


PACKAGE_MIRROR_PORT = 8480
PACKAGE_MIRROR_ROOT = "/srv/gcluster/package-mirror"
"""On the controllers; what lies below it is served."""
BUNDLE_FOLDER = "bundle"
"""Below the package mirror's root, what `up --bundle` brought."""
BUNDLE_SOURCE = "bundle"
"""Name of the one artefact source of nodes that live on a bundle."""


def use_bundle(
    bundle: BundleManifest, facts: dict[str, NodeFacts], controller: str
) -> dict[str, NodeFacts]:
    """Return pools that take everything from a bundle: controllers from their disk.

    Args:
        bundle: what they live on.
        facts: pool -> its nodes.
        controller: address of the first controller; "" while it is only planned.
    """
    mirror = f"http://{controller}:{PACKAGE_MIRROR_PORT}"
    return {
        name: msgspec.structs.replace(
            node,
            bundle=bundle,
            bundle_root=f"file://{PACKAGE_MIRROR_ROOT}/{BUNDLE_FOLDER}"
            if node.pool.role == "controller"
            else f"{mirror}/{BUNDLE_FOLDER}",
        )
        for name, node in facts.items()
    }


@role_compiler("package_mirror", after=("proxy",))
def package_mirror_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role package_mirror: on controllers, where nodes take anything from them.

    They come before everything else of the cluster: the other nodes' packages come from
    there, and the roles of nodes that converge themselves.
    """
    served_at_all = node.bundle is not None or node.cluster.pulls or node.cluster.builds_slurm
    if node.pool.role != "controller" or not served_at_all:
        return []
    repositories = (
        [] if node.bundle is None else _mirror_repositories(node.bundle, node.bundle_root)
    )
    served: dict[str, Json] = {"package_mirror_port": PACKAGE_MIRROR_PORT}
    return [
        _step("package_mirror", "install", {"package_mirror_repositories": repositories}),
        _step("package_mirror", "configure", served),
        _step("package_mirror", "verify", served),
    ]


@role_compiler("bundle_source", after=("package_mirror",))
def bundle_source_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role package_sources that make the bundle a pool's only source."""
    if node.bundle is None:
        return []
    variables: dict[str, Json] = {
        "package_sources_repositories": _mirror_repositories(node.bundle, node.bundle_root),
        "package_sources_only": True,
    }
    return [_step("package_sources", phase, variables) for phase in ("install", "verify")]


def _mirror_repositories(bundle: BundleManifest, root: str) -> list[Json]:
    """Return the bundle's repositories as role package_sources takes them."""
    return [
        {
            "name": BUNDLE_SOURCE,
            "distribution": repository.distribution,
            "url": f"{root}/{repository.path}",
            "suite": "/",
            "key": bundle.key,
            "key_fingerprint": bundle.key_fingerprint,
            "packages": ["*"],
        }
        for repository in bundle.repositories
    ]


def _step(role: str, phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.BASE, role=role, phase=phase, variables=variables, spares_jobs=True)
