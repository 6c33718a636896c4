"""An add-on's chart or manifest by its digest: from the cache, a bundle, or its publisher.

The cache is by content, so what is in it needs no network and can't be another version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urljoin

import msgspec

from ....schemas.catalog import Addon
from ....schemas.structure.decoding import decode_yaml
from ....stacks.io import atomic
from ...cluster import places
from ...cluster.outcome import Exit, LifecycleError, failure
from ..release.registry import fetched, pull_chart

_FOLDER = "addons"
"""Of the cache; a bundle has it below `files`."""


def artefact(addon: Addon, bundle: Path | None = None, get: Get = fetched) -> bytes:
    """Return an add-on's content, verified by its digest; keep it in the cache.

    Args:
        addon: one whose digest is known.
        bundle: folder of the bundle that the cluster is installed from: then nothing is downloaded.
        get: returns the content of a URL.

    Raises:
        LifecycleError: GC1060: it is not available, or its digest differs.
    """
    digest = str(addon.digest)
    kept = places.cache_home() / _FOLDER / digest.removeprefix("sha256:")
    if kept.is_file() and _digest(content := kept.read_bytes()) == digest:
        return content
    if bundle is None:
        content = _requested(addon, get)
        source = addon.repository
    else:
        file = bundle / "files" / _FOLDER / file_name(addon)
        if not file.is_file():
            raise _refusal(addon, f"{file} is not there", "make the bundle of this very spec again")
        content, source = file.read_bytes(), str(file)
    if _digest(content) != digest:
        raise _refusal(
            addon,
            f"{source} has {_digest(content)}, not {digest}",
            "it was republished, or changed in transit; nothing of it was run",
        )
    places.private_directory(kept.parent)
    atomic.write(kept, content, mode=0o644)
    return content


def _requested(addon: Addon, get: Get) -> bytes:
    try:
        return published(addon, get)
    except LifecycleError as error:
        raise _refusal(
            addon,
            str(error),
            "where this machine reaches no publisher: gcluster up SPEC --bundle DIR",
        ) from None


def _refusal(addon: Addon, why: str, hint: str) -> LifecycleError:
    summary = f"add-on {addon.name} {addon.version} can't be had: {why}"
    return failure("GC1060", summary, hint=hint, exit_code=Exit.REFUSED)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


Get: TypeAlias = Callable[[str], bytes]


def published(addon: Addon, get: Get) -> bytes:
    """Return a chart's archive or a manifest's file; the caller checks its digest.

    Raises:
        LifecycleError: GC939: it is not available, or differs from its repository's index.
    """
    if addon.kind == "manifests":
        return get(addon.repository)
    if addon.repository.startswith("oci://"):
        return pull_chart(f"{addon.repository}/{addon.chart}", addon.version)
    index = f"{addon.repository}/index.yaml"
    entry = _entry(get(index), addon)
    content = get(urljoin(index, entry["urls"][0]))
    digest = entry.get("digest")
    if digest and hashlib.sha256(content).hexdigest() != str(digest).removeprefix("sha256:"):
        raise failure("GC939", f"add-on {addon.name} differs from {index}: {digest}")
    return content


def file_name(addon: Addon) -> str:
    """Return the name of an add-on's file in a bundle."""
    return f"{addon.name}-{addon.version}.{'tgz' if addon.kind == 'helm' else 'yaml'}"


def _entry(index: bytes, addon: Addon) -> Any:
    """Return the index entry of a chart's version."""
    try:
        entries = decode_yaml(index, dict[str, Any]).get("entries")
    except (msgspec.DecodeError, ValueError):
        entries = None
    known = entries.get(addon.chart) if isinstance(entries, dict) else None
    wanted = addon.version.removeprefix("v")
    for entry in known if isinstance(known, list) else ():
        urls = entry.get("urls") if isinstance(entry, dict) else None
        fits = isinstance(urls, list) and urls and isinstance(urls[0], str)
        if fits and str(entry.get("version", "")).removeprefix("v") == wanted:
            return entry
    raise failure(
        "GC939", f"{addon.repository} has no chart {addon.chart} of version {addon.version}"
    )
