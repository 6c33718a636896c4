"""Kubernetes in a bundle: its own programs and images."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ...inventory.compile.kubernetes import (
    KUBE_VIP_SOURCE,
    KubernetesAt,
    pinned_image,
    runs_kubernetes,
    version_of,
)
from ...inventory.compile.node import NodeFacts
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ...schemas.stack.bundle import (
    BUNDLED,
    MANIFEST,
    BundledFile,
    BundleManifest,
    KubernetesBundle,
    decode_kubernetes,
)
from ..cluster import places
from ..cluster.progress import Reporter
from ..kubernetes.release.build import ensure_built, planned_bundle
from ..kubernetes.release.recipe import architecture
from ..kubernetes.release.release import Release, fetch_release, full_version, planned_release
from ..kubernetes.release.source import MODULES, broken_files, takes_own_build
from .apt import DEBIAN_ARCHITECTURES
from .fetch import is_complete

_RELEASES = "kubernetes-release"
"""Folder of this machine's cache with the releases fetched here."""
_ROLE = "kubernetes"


class RequiredKubernetes(msgspec.Struct, frozen=True, kw_only=True):
    """What the nodes of a spec need of Kubernetes."""

    versions: frozenset[str]
    """"modules" for our own build; a release's as spec and tested set have it."""
    architectures: frozenset[str]
    """As images call them: amd64, arm64."""
    images: dict[str, str] = {}
    """Image that a node runs in addition to Kubernetes' own -> its digest; "" where none is
    known.
    """

    def planned(self) -> KubernetesAt:
        """Return the description of a bundle that isn't built yet: names without checksums."""
        what, built_for = min(self.versions), min(self.architectures)
        manifest = (
            planned_bundle() if what == MODULES else planned_release(full_version(what), built_for)
        )
        return KubernetesAt(manifest=manifest, root="file:///planned")


def required_kubernetes(
    spec: ClusterSpec, facts: Mapping[str, NodeFacts]
) -> RequiredKubernetes | None:
    """Return what a bundle must hold of Kubernetes; None: nothing, or others run it.

    Args:
        spec: a checked spec.
        facts: pool -> its nodes.
    """
    nodes = [node for node in facts.values() if runs_kubernetes(node)]
    if not nodes:
        return None
    if takes_own_build(spec):
        made_here = frozenset({architecture()})
        return RequiredKubernetes(versions=frozenset({MODULES}), architectures=made_here)
    known = [node.machine.cpu.architecture for node in nodes if node.machine and node.machine.cpu]
    return RequiredKubernetes(
        versions=frozenset(version_of(node).removeprefix("v") for node in nodes),
        architectures=frozenset(DEBIAN_ARCHITECTURES[name] for name in known or ["x86_64"]),
        images=_kube_vip_image(spec, nodes[0]),
    )


def _kube_vip_image(spec: ClusterSpec, node: NodeFacts) -> dict[str, str]:
    """Return kube-vip's image with its digest, where it moves the control planes' address."""
    kubernetes = spec.scheduler
    assert isinstance(kubernetes, KubernetesScheduler)  # noqa: S101  # the caller checked
    if kubernetes.virtual_address is None or kubernetes.virtual_address.by != "kube-vip":
        return {}
    name, _, digest = pinned_image(node, KUBE_VIP_SOURCE).partition("@")
    return {name or KUBE_VIP_SOURCE: digest}


def refusals(requested: RequiredKubernetes) -> Iterator[Diagnostic]:
    """Yield what keeps Kubernetes out of a bundle, before anything is fetched."""
    for what, found in (
        ("versions", requested.versions),
        ("architectures", requested.architectures),
    ):
        if len(found) > 1:
            yield Diagnostic(
                code="GC939",
                severity=Severity.ERROR,
                summary=f"a bundle holds Kubernetes once, and the pools want several {what}: "
                f"{', '.join(sorted(found))}",
                hint="make a bundle for each part of the spec",
            )
    if "" in requested.versions:
        yield Diagnostic(
            code="GC939",
            severity=Severity.ERROR,
            summary="the version of Kubernetes on the nodes is not specified",
            hint="write software.kubernetes in the spec",
        )
    for image, digest in requested.images.items():
        if not digest:
            yield Diagnostic(
                code="GC939",
                severity=Severity.ERROR,
                summary=f"image {image}, which role kubernetes requires, has no digest",
                hint=f"write it under software.sources.{KUBE_VIP_SOURCE}.checksums",
            )


def bundle_kubernetes(
    requested: RequiredKubernetes | None, out: Path, report: Reporter, of: Release | None = None
) -> tuple[KubernetesBundle | None, tuple[BundledFile, ...]]:
    """Put Kubernetes into a bundle; files that exist with the right checksum are kept.

    Args:
        requested: what the nodes need; None: nothing.
        out: the bundle's folder.
        report: receives an event for each part.
        of: where releases are published; by default as release.yaml says.

    Raises:
        LifecycleError: GC939, GC912: it can't be built or fetched.
    """
    if requested is None:
        return None, ()
    (what,) = requested.versions
    if what == MODULES:
        folder, manifest = ensure_built(report)
        source = f"Go modules, build {manifest.key}"
    else:
        (built_for,) = requested.architectures
        folder, manifest = _released(full_version(what), built_for, report, of)
        source = f"release {manifest.kubernetes}"
    files = []
    for file in manifest.files:
        path = f"{BUNDLED}/{file.path}"
        if not is_complete(out / path, file.size, file.sha256):
            _copied(folder / file.path, out / path)
        files.append(
            BundledFile(
                source=_ROLE, role=_ROLE, url=source, path=path, size=file.size, sha256=file.sha256
            )
        )
    return manifest, tuple(files)


def kubernetes_missing(
    manifest: BundleManifest, requested: RequiredKubernetes | None, command: str
) -> Iterator[Diagnostic]:
    """Yield what a bundle lacks of Kubernetes: all of it, or the architecture of its nodes.

    Args:
        manifest: of the bundle.
        requested: the needs of the spec's nodes.
        command: the command that completes the bundle.
    """
    if requested is None:
        return
    hint = f"where the mirrors are: {command}; nothing was changed"
    held = manifest.kubernetes
    if held is None:
        summary = "the bundle has no Kubernetes, which the spec's nodes run"
        yield Diagnostic(code="GC1050", severity=Severity.ERROR, summary=summary, hint=hint)
    elif other := requested.architectures - {held.architecture}:
        summary = (
            f"the bundle has Kubernetes for {held.architecture}, and nodes are "
            f"{', '.join(sorted(other))}"
        )
        yield Diagnostic(code="GC1051", severity=Severity.ERROR, summary=summary, hint=hint)


def _released(
    version: str, built_for: str, report: Reporter, of: Release | None
) -> tuple[Path, KubernetesBundle]:
    """Return a release in this machine's cache; fetch what isn't there whole."""
    cache = places.private_directory(places.cache_home()) / _RELEASES
    folder = places.private_directory(cache) / f"{version}-{built_for}"
    try:
        manifest = decode_kubernetes((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        manifest = None
    if manifest is None or broken_files(folder, manifest):
        shutil.rmtree(folder, ignore_errors=True)
        manifest = fetch_release(version, built_for, folder, report, of)
    return folder, manifest


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}")
    shutil.copyfile(source, part)
    part.chmod(0o644)
    part.replace(target)
