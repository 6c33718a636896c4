"""The Kubernetes bundle from Go modules: what is missing is built, what is there is found by key.

A folder `kubernetes/KEY` of the cache is a whole bundle or isn't there; programs lie beside it by
keys of their own, so that a change of one compiles that one only.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal, cast

from ...schemas.bundle import (
    BUNDLES,
    IMAGES,
    MANIFEST,
    KubernetesBundle,
    KubernetesFile,
    KubernetesImage,
    decode_kubernetes,
)
from ...stacks import atomic
from .. import places
from ..bundle.fetch import sha256_of
from ..progress import Reporter, StageFinished, StageProgress, StageStarted
from . import golang
from .image_archive import Image, Layer, program_layer, write_archive
from .package_layer import package_layer
from .recipe import (
    ImageRecipe,
    Recipe,
    architecture,
    bundle_key,
    program_key,
    recipe,
    recipe_folder,
    sources,
)


def built_folder(key: str | None = None) -> Path:
    """Return where the bundle of a key lies or would lie; by default that of programs.yaml."""
    return places.cache_home() / BUNDLES / (key or bundle_key(recipe()))


def ensure_built(report: Reporter) -> tuple[Path, KubernetesBundle]:
    """Return the bundle's folder and its manifest; build what is missing.

    Raises:
        LifecycleError: a program was not compiled (GC939), or packages are not to be had (GC912).
    """
    made_of = recipe()
    key = bundle_key(made_of)
    folder = built_folder(key)
    cache = places.private_directory(folder.parent)
    with atomic.locked(cache / f"{key}.lock"):
        if not (folder / MANIFEST).is_file():
            programs = {name: _program(name, made_of, cache, report) for name in made_of.programs}
            scratch = Path(mkdtemp(prefix=f".{key}-", dir=cache))
            try:
                _assemble(made_of, key, programs, scratch, report)
                scratch.replace(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder, decode_kubernetes((folder / MANIFEST).read_bytes())


def ensure_program(name: str, report: Reporter) -> Path:
    """Return a program of the bundle as a file of this machine; compile it where it is missing.

    Raises:
        LifecycleError: it was not compiled (GC939).
    """
    cache = places.private_directory(places.cache_home()) / "kubernetes"
    return _program(name, recipe(), places.private_directory(cache), report)


def _program(name: str, made_of: Recipe, cache: Path, report: Reporter) -> Path:
    """Return a compiled program; compile it where it is missing."""
    key = program_key(name, made_of)
    kept = cache / "programs" / f"{name}-{key}"
    if kept.is_file():
        return kept
    began = time.monotonic()
    report(StageStarted(name=f"compile {name}", total=1))
    places.private_directory(kept.parent)
    scratch = Path(mkdtemp(prefix=f".{name}-", dir=kept.parent))
    try:
        (scratch / name).mkdir()
        for file, path in sources(name, made_of, recipe_folder()).items():
            shutil.copyfile(path, scratch / name / file)
        link, out = made_of.programs[name].link, scratch / "program"
        golang.compile_program(scratch / name, out, made_of.toolchain, link, architecture())
        out.replace(kept)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    size = kept.stat().st_size / 1e6
    seconds = time.monotonic() - began
    report(
        StageFinished(name=f"compile {name}", ok=True, summary=f"{size:.0f} MB", seconds=seconds)
    )
    return kept


def _assemble(
    made_of: Recipe, key: str, programs: dict[str, Path], out: Path, report: Reporter
) -> None:
    """Write programs, images and the manifest into the folder `out`."""
    began = time.monotonic()
    report(StageStarted(name="images", total=len(made_of.images)))
    (out / "bin").mkdir()
    files = []
    for name, program in made_of.programs.items():
        if program.on_nodes:
            shutil.copyfile(programs[name], out / "bin" / name)
            files.append(_file(out, f"bin/{name}", tuple(program.on_nodes)))
    layers = _Layers(made_of, programs, out)
    images = []
    for done, asked in enumerate(made_of.images):
        report(
            StageProgress(name="images", done=done, total=len(made_of.images), detail=asked.name)
        )
        images.append(layers.image(asked))
    digests = write_archive(images, architecture(), out / IMAGES)
    manifest = _manifest(made_of, key, (*files, _file(out, IMAGES)), digests)
    atomic.write(out / MANIFEST, manifest.encode(), mode=0o644)
    seconds = time.monotonic() - began
    summary = f"{len(images)} images, {manifest.size / 1e6:.0f} MB in all"
    report(StageFinished(name="images", ok=True, summary=summary, seconds=seconds))


def planned_bundle() -> KubernetesBundle:
    """Return what the manifest would say if the bundle were built: sizes 0, checksums ""."""
    made_of = recipe()
    files = [
        KubernetesFile(path=f"bin/{name}", size=0, sha256="", programs=tuple(program.on_nodes))
        for name, program in made_of.programs.items()
        if program.on_nodes
    ]
    archive = KubernetesFile(path=IMAGES, size=0, sha256="")
    references = {_reference(made_of, image): "" for image in made_of.images}
    return _manifest(made_of, bundle_key(made_of), (*files, archive), references)


def _manifest(
    made_of: Recipe, key: str, files: tuple[KubernetesFile, ...], digests: dict[str, str]
) -> KubernetesBundle:
    return KubernetesBundle(
        made_from="modules",
        key=key,
        architecture=cast("Literal['amd64', 'arm64']", architecture()),
        kubernetes=made_of.kubernetes,
        etcd=made_of.etcd,
        coredns=made_of.coredns,
        pause=made_of.pause,
        repository=made_of.repository,
        files=files,
        images=tuple(
            KubernetesImage(reference=reference, digest=digest)
            for reference, digest in digests.items()
        ),
    )


def _reference(made_of: Recipe, image: ImageRecipe) -> str:
    return f"{made_of.repository}/{image.name}:{image.tag}"


class _Layers:
    """Makes images, and a layer that several of them have once."""

    def __init__(self, made_of: Recipe, programs: dict[str, Path], scratch: Path) -> None:
        self._made_of, self._programs, self._scratch = made_of, programs, scratch
        self._made: dict[tuple[str, ...], Layer] = {}

    def image(self, asked: ImageRecipe) -> Image:
        below = [self._packages(tuple(asked.packages))] if asked.packages else []
        return Image(
            reference=_reference(self._made_of, asked),
            layers=(*below, *map(self._program, asked.programs)),
            entrypoint=tuple(asked.entrypoint),
        )

    def _packages(self, names: tuple[str, ...]) -> Layer:
        if names not in self._made:
            self._made[names] = package_layer(names, self._made_of.suite, self._scratch)
        return self._made[names]

    def _program(self, name: str) -> Layer:
        if ("", name) not in self._made:
            calls = self._made_of.programs[name].calls
            self._made["", name] = program_layer(self._programs[name], name, calls)
        return self._made["", name]


def _file(out: Path, path: str, programs: tuple[str, ...] = ()) -> KubernetesFile:
    file = out / path
    file.chmod(0o755 if programs else 0o644)
    return KubernetesFile(
        path=path, size=file.stat().st_size, sha256=sha256_of(file), programs=programs
    )
