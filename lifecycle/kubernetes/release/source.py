"""The source of a cluster's Kubernetes: a bundle, or what this machine has for local nodes.

That is what the projects publish, where their sites can be reached, and else our own build.
Read-only commands neither fetch nor build. A plan of a bundle that isn't there is compiled without
its checksums.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from ....inventory.compile.kubernetes import KubernetesAt
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ....schemas.stack.bundle import MANIFEST, NODE_FOLDER, KubernetesBundle, decode_kubernetes
from ....stacks.local.engine import find_engine
from ....stacks.local.image.base_image import ensure_base
from ....stacks.provider import ProviderError
from ...bundle.fetch import is_complete
from ...cluster import places
from ...cluster.outcome import Exit, LifecycleError, failure
from ...cluster.progress import Finding, Reporter
from .build import built_folder, ensure_built, ensure_published, planned_bundle
from .recipe import architecture, bundle_key, published_key, recipe
from .release import fetch_release, release, unreachable

BUILD = "make bundle-kubernetes"
"""Builds the bundle ahead of `up`, in a checkout."""
_BRING = "gcluster bundle --kubernetes modules --out DIR"
"""The same for who has no checkout: what it builds stays in the cache."""


def takes_own_build(spec: ClusterSpec) -> bool:
    """Whether the nodes of a spec take Kubernetes from this machine: all of them are made here."""
    made_here = all(site.is_made_here for site in spec.sites.values())
    return isinstance(spec.scheduler, KubernetesScheduler) and made_here


def kubernetes_at(spec: ClusterSpec, applied: bytes | None) -> KubernetesAt | None:
    """Return the bundle of a cluster's nodes as far as it is known; None: packages and a registry.

    Args:
        spec: the cluster.
        applied: manifest of the bundle that its nodes were last brought to; the cache may have
            been emptied since.
    """
    if not takes_own_build(spec):
        return None
    known = _built() or (None if applied is None else decode_kubernetes(applied))
    is_current = known is not None and known.key in _keys()
    return _local_folder(known if known is not None and is_current else planned_bundle())


def planned_at(spec: ClusterSpec) -> KubernetesAt | None:
    """Return the bundle as its recipe describes it, built or not."""
    return _local_folder(planned_bundle()) if takes_own_build(spec) else None


def ready_kubernetes(report: Reporter) -> KubernetesAt:
    """Return the bundle, built where it is missing, with every file checked.

    Raises:
        LifecycleError: it can't be built (GC939, GC912), or a file of it is missing or has changed
            since it was built (GC1000). Nothing was changed on any node.
    """
    with _base_image_meanwhile():
        folder, manifest = _ensured(report)
    broken = broken_files(folder, manifest)
    if broken:
        found = [
            Diagnostic(
                code="GC1000",
                severity=Severity.ERROR,
                summary=f"{folder / path} is missing or isn't what was built",
                detail="nothing was changed on any node",
                hint=f"rm -r {folder}, then {BUILD} (or {_BRING})",
            )
            for path in broken
        ]
        raise LifecycleError(*found, exit_code=Exit.REFUSED)
    return _local_folder(manifest)


def _ensured(report: Reporter) -> tuple[Path, KubernetesBundle]:
    """Return the bundle that is there, else the published one, else our own build."""
    there = _built()
    if there is not None:
        return built_folder(there.key), there
    made_of = recipe()
    if made_of.is_published:
        of = release()
        why = unreachable(made_of.kubernetes, architecture(), of)
        if why is None:
            try:
                return ensure_published(report, of)
            except LifecycleError as error:
                why = error.diagnostics[0].summary
        report(Finding(diagnostic=_compiled_here(why)))
    return ensure_built(report)


def _compiled_here(why: str) -> Diagnostic:
    return Diagnostic(
        code="GC1032",
        severity=Severity.NOTE,
        summary="Kubernetes is compiled on this machine, once: minutes on a few cores",
        detail=why,
        hint=f"{BUILD} ({_BRING}) does so ahead; what the projects publish is taken where their "
        "sites can be reached",
    )


@contextmanager
def _base_image_meanwhile() -> Iterator[None]:
    """Build what nodes start from while compilers run: it waits for downloads and disks mostly.

    `up` needs it next, and reports then why it can't be had.
    """
    if _built() is not None:
        yield
        return

    def build() -> None:
        with suppress(ProviderError):
            ensure_base(find_engine(), places.private_directory(places.cache_home()))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(build)
        yield


def bundled_at(manifest: KubernetesBundle) -> KubernetesAt:
    """Return what a spec's bundle has: nodes find it next to their packages."""
    return KubernetesAt(manifest=manifest, root="")


def describe_source(at: KubernetesAt) -> str:
    """Return where a bundle is, or that `up` would build it, as text for a plan."""
    version = f"Kubernetes {at.manifest.kubernetes}"
    if not at.root:
        return f"{version}: {at.manifest.size / 1e6:.0f} MB in the bundle that the nodes live on"
    if _built() is None:
        how = "fetched, or built where it can't be reached" if recipe().is_published else "built"
        return f"{version}: to be {how}, first, once, in minutes ({BUILD} builds it ahead)"
    return f"{version}: {at.manifest.size / 1e6:.0f} MB in {built_folder(at.manifest.key)}"


def _keys() -> tuple[str, ...]:
    """Return the keys of the bundles that serve: our own build, and the published one."""
    made_of = recipe()
    return bundle_key(made_of), published_key(made_of)


def _built() -> KubernetesBundle | None:
    """Return the manifest of the bundle in the cache; None: there is none."""
    for key in _keys():
        with suppress(OSError, ValueError):
            return decode_kubernetes((built_folder(key) / MANIFEST).read_bytes())
    return None


def _local_folder(manifest: KubernetesBundle) -> KubernetesAt:
    return KubernetesAt(manifest=manifest, root=f"file://{NODE_FOLDER}/{manifest.key}")


MODULES = "modules"
"""Version name of our own build; anything else is a version of the release."""


def bring(what: str, out: Path, report: Reporter) -> KubernetesBundle:
    """Put a bundle into the folder `out`, which is new or empty, or holds that bundle already.

    Args:
        what: "modules", or the version of a release: "1.35.4".
        out: the folder.
        report: receives an event for each part.

    Raises:
        LifecycleError: GC944: the folder holds something else; GC939: it can't be had.
    """
    there = _complete_manifest(out)
    if there is None and out.is_dir() and any(out.iterdir()):
        raise failure(
            "GC944",
            f"{out} is not empty and is no bundle of Kubernetes",
            hint="name an empty or a new folder",
            exit_code=Exit.USAGE,
        )
    if what != MODULES:
        if there is not None and (there.made_from, there.kubernetes) == ("release", what):
            return there
        _refuse_other(there, out)
        if out.is_dir():
            out.rmdir()
        return fetch_release(what, architecture(), out, report)
    folder, manifest = ensure_built(report)
    if there == manifest:
        return there
    _refuse_other(there, out)
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        shutil.copytree(folder, scratch, dirs_exist_ok=True)
        if out.is_dir():
            out.rmdir()
        scratch.replace(out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return manifest


def broken_files(folder: Path, manifest: KubernetesBundle) -> list[str]:
    """Return the files of a bundle that are missing or differ from the manifest."""
    return [f.path for f in manifest.files if not is_complete(folder / f.path, f.size, f.sha256)]


def _complete_manifest(out: Path) -> KubernetesBundle | None:
    """Return the manifest of a whole bundle in a folder."""
    try:
        manifest = decode_kubernetes((out / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return None if broken_files(out, manifest) else manifest


def _refuse_other(there: KubernetesBundle | None, out: Path) -> None:
    if there is not None:
        raise failure(
            "GC944",
            f"{out} holds another bundle: Kubernetes {there.kubernetes} from {there.made_from}",
            hint="name an empty or a new folder",
            exit_code=Exit.USAGE,
        )
