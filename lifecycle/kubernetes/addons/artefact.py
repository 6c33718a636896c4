"""An add-on's chart or manifest by its digest: from the cache, a bundle, or its publisher.

The cache is by content, so what is in it needs no network and can't be another version.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ....stacks import atomic
from ... import places
from ...outcome import Exit, LifecycleError, failure
from ..registry import fetched
from .publisher import Get, file_name, published

if TYPE_CHECKING:
    from ....schemas.catalog import Addon

_FOLDER = "addons"
"""Of the cache; a bundle has it below `files`."""


def artefact(addon: Addon, bundle: Path | None = None, get: Get = fetched) -> bytes:
    """Return an add-on's content, which is what its digest says; keep it in the cache.

    Args:
        addon: one whose digest is known.
        bundle: folder of the bundle that the cluster lives on: then no publisher is asked.
        get: returns what stands at a URL.

    Raises:
        LifecycleError: GC1060: it is not to be had, or is something else.
    """
    digest = str(addon.digest)
    kept = places.cache_home() / _FOLDER / digest.removeprefix("sha256:")
    if kept.is_file() and _digest(content := kept.read_bytes()) == digest:
        return content
    if bundle is None:
        content = _asked(addon, get)
        source = addon.repository
    else:
        file = bundle / "files" / _FOLDER / file_name(addon)
        if not file.is_file():
            raise _refusal(addon, f"{file} is not there", "make the bundle of this very spec anew")
        content, source = file.read_bytes(), str(file)
    if _digest(content) != digest:
        raise _refusal(
            addon,
            f"{source} has {_digest(content)}, not {digest}",
            "somebody published it again, or it was changed on its way; nothing of it was run",
        )
    places.private_directory(kept.parent)
    atomic.write(kept, content, mode=0o644)
    return content


def _asked(addon: Addon, get: Get) -> bytes:
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
