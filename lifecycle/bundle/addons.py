"""Add-ons of Kubernetes in a bundle: charts and manifests, and a catalog file with every digest.

`up` runs nothing that nobody has pinned (GC619). What is pinned already has to be that; the rest is
taken as its publisher has it now, and the file of digests says what that was.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from gcluster.inventory.compile.kubernetes_objects.addons import chosen_addons
from gcluster.inventory.compile.kubernetes_objects.facts import kubernetes_facts
from gcluster.lifecycle.kubernetes.addons.publisher import file_name, published
from gcluster.lifecycle.kubernetes.objects import left_out
from gcluster.lifecycle.kubernetes.registry import digest_of
from gcluster.lifecycle.outcome import LifecycleError, failure
from gcluster.lifecycle.preflight.addon_digests import CATALOG
from gcluster.lifecycle.progress import StageFinished, StageProgress, StageStarted
from gcluster.lifecycle.sites import inventory, provider_name
from gcluster.schemas.bundle import BundledFile
from gcluster.schemas.decoding import decode_yaml
from gcluster.schemas.spec import KubernetesScheduler
from gcluster.stacks import atomic
from gcluster.stacks.registry import provider

if TYPE_CHECKING:
    from pathlib import Path

    from gcluster.lifecycle.kubernetes.addons.publisher import Get
    from gcluster.lifecycle.progress import Reporter
    from gcluster.schemas.catalog import Addon, Catalog
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.spec import ClusterSpec

FOLDER = CATALOG.rpartition("/")[0]
_SOURCE = "addons"


def addons_of(spec: ClusterSpec, catalog: Catalog) -> list[Addon]:
    """Return the add-ons that a spec needs or names; none where Kubernetes isn't its scheduler.

    What `up` leaves out isn't needed.
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return []
    planned = [
        host
        for name, site in spec.sites.items()
        for host in provider(provider_name(site), catalog).planned_hosts(spec, name)
    ]
    hosts = inventory(spec, planned)
    facts = kubernetes_facts(spec, hosts, catalog, left_out(spec, hosts, catalog))
    return [chosen.addon for chosen in chosen_addons(facts)]


def bundle_addons(
    addons: list[Addon], out: Path, report: Reporter, get: Get
) -> tuple[BundledFile, ...]:
    """Fetch add-ons into a bundle, write their digests, and return what the bundle holds of them.

    Args:
        addons: what is asked for; none: nothing is fetched and written.
        out: the bundle's folder.
        report: told of each.
        get: returns what stands at a URL.

    Raises:
        LifecycleError: GC939, one for each that is not to be had or isn't what is pinned.
    """
    if not addons:
        return ()
    report(StageStarted(name="add-ons", total=len(addons)))
    files: list[BundledFile] = []
    filled: list[Addon] = []
    findings: list[Diagnostic] = []
    for done, addon in enumerate(addons):
        report(StageProgress(name="add-ons", done=done, total=len(addons), detail=addon.name))
        try:
            content, whole = _fetched(addon, get)
        except LifecycleError as error:
            findings += error.diagnostics
            continue
        path = f"{FOLDER}/{file_name(addon)}"
        files.append(_written(out, path, content, addon.repository))
        filled.append(whole)
    report(StageFinished(name="add-ons", ok=not findings, summary=f"{len(filled)}", seconds=0.0))
    if findings:
        raise LifecycleError(*findings)
    told = {"apiVersion": "gcluster/catalog/v1", "addons": msgspec.to_builtins(filled)}
    files.append(_written(out, CATALOG, msgspec.yaml.encode(told), "gcluster bundle"))
    return tuple(files)


def pinned_images(out: Path) -> dict[str, str]:
    """Return image -> digest of the add-ons that a bundle has, as its catalog file says."""
    told = decode_yaml((out / CATALOG).read_bytes(), dict[str, Any])
    return {image: digest for addon in told["addons"] for image, digest in addon["images"].items()}


def _fetched(addon: Addon, get: Get) -> tuple[bytes, Addon]:
    """Return an add-on's chart or manifest, and the add-on with every digest."""
    content = published(addon, get)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if addon.digest not in {None, digest}:
        raise failure(
            "GC939", f"add-on {addon.name} {addon.version} is {digest}, not {addon.digest}"
        )
    images = {name: known or digest_of(name) for name, known in addon.images.items()}
    return content, msgspec.structs.replace(addon, digest=digest, images=images)


def _written(out: Path, path: str, content: bytes, url: str) -> BundledFile:
    (out / path).parent.mkdir(parents=True, exist_ok=True)
    atomic.write(out / path, content, mode=0o644)
    return BundledFile(
        source=_SOURCE,
        role="kubernetes",
        url=url,
        path=path,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
