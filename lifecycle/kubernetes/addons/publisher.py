"""An add-on's chart or manifest as its publisher has it: in a repository, a registry, a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urljoin

import msgspec

from ....schemas.catalog import Addon
from ....schemas.decoding import decode_yaml
from ...outcome import failure
from ..registry import pull_chart

Get: TypeAlias = Callable[[str], bytes]


def published(addon: Addon, get: Get) -> bytes:
    """Return a chart's archive or a manifest's file; its digest is for the caller to hold it to.

    Raises:
        LifecycleError: GC939: it is not to be had, or isn't what its repository's index says.
    """
    if addon.kind == "manifests":
        return get(addon.repository)
    if addon.repository.startswith("oci://"):
        return pull_chart(f"{addon.repository}/{addon.chart}", addon.version)
    index = f"{addon.repository}/index.yaml"
    entry = _entry(get(index), addon)
    content = get(urljoin(index, entry["urls"][0]))
    told = entry.get("digest")
    if told and hashlib.sha256(content).hexdigest() != str(told).removeprefix("sha256:"):
        raise failure("GC939", f"add-on {addon.name} isn't what {index} says: {told}")
    return content


def file_name(addon: Addon) -> str:
    """Return the name of an add-on's file in a bundle."""
    return f"{addon.name}-{addon.version}.{'tgz' if addon.kind == 'helm' else 'yaml'}"


def _entry(index: bytes, addon: Addon) -> Any:
    """Return what a repository's index says of a chart's version."""
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
