"""`gcluster bundle --kubernetes`: a bundle of Kubernetes in a folder that can be carried away."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

from ...schemas.bundle import MANIFEST, KubernetesBundle, decode_kubernetes
from ..bundle.fetch import is_whole
from ..outcome import Exit, failure
from ..progress import Reporter
from .build import ensure_built
from .recipe import architecture
from .release import fetch_release

MODULES = "modules"
"""Stands for our own build; anything else is a version of the release."""


def bring(what: str, out: Path, report: Reporter) -> KubernetesBundle:
    """Put a bundle into the folder `out`, which is new or empty, or holds that bundle already.

    Args:
        what: "modules", or the version of a release: "1.35.4".
        out: the folder.
        report: told of each part.

    Raises:
        LifecycleError: GC944: the folder holds something else; GC939: it can't be had.
    """
    there = _is_there(out)
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
    """Return the files of a bundle that are missing or not what the manifest says."""
    return [f.path for f in manifest.files if not is_whole(folder / f.path, f.size, f.sha256)]


def _is_there(out: Path) -> KubernetesBundle | None:
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
