"""Makes the Kubernetes bundle of local nodes; existing parts are found by their key.

A folder `kubernetes/KEY` of the cache is a complete bundle or doesn't exist; programs have folders
with their own keys, so that a change of one compiles that one only.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal, cast

from ....schemas.stack.bundle import (
    BUNDLES,
    IMAGES,
    MANIFEST,
    KubernetesBundle,
    KubernetesFile,
    KubernetesImage,
    decode_kubernetes,
)
from ....stacks.io import atomic
from ...bundle.fetch import sha256_of
from ...cluster import places
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from . import golang
from .image_archive import (
    ArchivedImage,
    Image,
    Layer,
    archived,
    package_layer,
    program_layer,
    write_archive,
)
from .published import fetch_published
from .recipe import (
    ImageRecipe,
    Recipe,
    architecture,
    bundle_key,
    program_key,
    published_key,
    recipe,
    recipe_folder,
    sources,
)
from .release import Release


def built_folder(key: str | None = None) -> Path:
    """Return where the bundle of a key lies or would lie; by default that of programs.yaml."""
    return places.cache_home() / BUNDLES / (key or bundle_key(recipe()))


def ensure_built(report: Reporter) -> tuple[Path, KubernetesBundle]:
    """Return the folder and manifest of the bundle from Go modules; build what is missing.

    Raises:
        LifecycleError: a program was not compiled (GC939), or packages are not to be had (GC912).
    """
    made_of = recipe()

    def assemble(out: Path, cache: Path) -> KubernetesBundle:
        programs = {name: _program(name, made_of, cache, report) for name in made_of.compiled()}
        return _assemble(made_of, programs, out, report)

    return _ensure(bundle_key(made_of), assemble)


def ensure_published(report: Reporter, of: Release) -> tuple[Path, KubernetesBundle]:
    """Return the folder and manifest of the bundle of published files; fetch what is missing.

    Args:
        report: receives an event for each part.
        of: where they are published.

    Raises:
        LifecycleError: GC939: something can't be had, its checksum doesn't match, or our own
            programs were not compiled; GC912: packages are not to be had.
    """
    made_of = recipe()

    def assemble(out: Path, cache: Path) -> KubernetesBundle:
        own = made_of.alone()
        with ThreadPoolExecutor(1) as pool:
            fetching = pool.submit(fetch_published, made_of, architecture(), out, report, of)
            programs = {name: _program(name, own, cache, report) for name in own.compiled()}
            files, fetched = fetching.result()
        images = [*fetched, *_images(own, programs, out, report)]
        return _written(made_of, published_key(made_of), files, images, out)

    return _ensure(published_key(made_of), assemble)


def _ensure(
    key: str, assemble: Callable[[Path, Path], KubernetesBundle]
) -> tuple[Path, KubernetesBundle]:
    """Return the bundle of a key; what isn't there is assembled in a folder that becomes it."""
    folder = built_folder(key)
    cache = places.private_directory(folder.parent)
    with atomic.locked(cache / f"{key}.lock"):
        if not (folder / MANIFEST).is_file():
            scratch = Path(mkdtemp(prefix=f".{key}-", dir=cache))
            try:
                (scratch / "bin").mkdir()
                assemble(scratch, cache)
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
        counted = _counted(name, report)
        golang.compile_program(
            scratch / name, out, made_of.toolchain, link, architecture(), compiled=counted
        )
        out.replace(kept)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    size = kept.stat().st_size / 1e6
    seconds = time.monotonic() - began
    report(
        StageFinished(name=f"compile {name}", ok=True, summary=f"{size:.0f} MB", seconds=seconds)
    )
    return kept


PACKAGES = {"kube": 2754, "etcd": 127, "coredns": 89, "pause": 57}
"""Program -> packages that are compiled for it after those before it (`go build -v`, Go 1.25.4,
2026-11): what an estimate of the time left is made of."""
_REPORTED_EVERY = 50


def _counted(
    name: str, report: Reporter, clock: Callable[[], float] = time.monotonic
) -> Callable[[int], None]:
    """Return what reports how far a compilation is, and about how long the rest takes."""
    began, total = clock(), PACKAGES.get(name, 0)

    def compiled(packages: int) -> None:
        if packages % _REPORTED_EVERY:
            return
        left_s = (clock() - began) / packages * max(0, total - packages)
        left = f"about {math.ceil(left_s / 60)} min left" if total > packages else ""
        done, of = packages, max(total, packages)
        report(StageProgress(name=f"compile {name}", done=done, total=of, detail=left))

    return compiled


def _assemble(
    made_of: Recipe, programs: dict[str, Path], out: Path, report: Reporter
) -> KubernetesBundle:
    """Write programs, images and the manifest of a build into the folder `out`."""
    files = []
    for name in made_of.compiled():
        on_nodes = made_of.programs[name].on_nodes
        if on_nodes:
            shutil.copyfile(programs[name], out / "bin" / name)
            files.append(_file(out, f"bin/{name}", tuple(on_nodes)))
    images = _images(made_of, programs, out, report)
    return _written(made_of, bundle_key(made_of), files, images, out)


def _images(
    made_of: Recipe, programs: dict[str, Path], scratch: Path, report: Reporter
) -> list[ArchivedImage]:
    """Return the images of compiled programs."""
    began = time.monotonic()
    total = len(made_of.images)
    report(StageStarted(name="images", total=total))
    layers = _Layers(made_of, programs, scratch)
    images = []
    for done, requested in enumerate(made_of.images):
        report(StageProgress(name="images", done=done, total=total, detail=requested.name))
        images.append(archived(layers.image(requested), architecture()))
    seconds = time.monotonic() - began
    report(StageFinished(name="images", ok=True, summary=f"{len(images)} images", seconds=seconds))
    return images


def _written(
    made_of: Recipe,
    key: str,
    files: Sequence[KubernetesFile],
    images: Sequence[ArchivedImage],
    out: Path,
) -> KubernetesBundle:
    """Write the archive of images and the manifest."""
    write_archive(images, out / IMAGES)
    digests = {image.reference: image.digest for image in images}
    manifest = _manifest(made_of, key, (*files, _file(out, IMAGES)), digests)
    atomic.write(out / MANIFEST, manifest.encode(), mode=0o644)
    return manifest


def planned_bundle() -> KubernetesBundle:
    """Return the manifest that a build would have: sizes 0, checksums ""."""
    made_of = recipe()
    files = [
        KubernetesFile(path=f"bin/{name}", size=0, sha256="", programs=tuple(program.on_nodes))
        for name, program in made_of.programs.items()
        if program.on_nodes
    ]
    archive = KubernetesFile(path=IMAGES, size=0, sha256="")
    references = {made_of.reference(image): "" for image in made_of.images}
    return _manifest(made_of, bundle_key(made_of), (*files, archive), references)


def _manifest(
    made_of: Recipe, key: str, files: tuple[KubernetesFile, ...], digests: dict[str, str]
) -> KubernetesBundle:
    return KubernetesBundle(
        made_from="release" if key == published_key(made_of) else "modules",
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


class _Layers:
    """Makes images, and a layer that several of them have once."""

    def __init__(self, made_of: Recipe, programs: dict[str, Path], scratch: Path) -> None:
        self._made_of, self._programs, self._scratch = made_of, programs, scratch
        self._made: dict[tuple[str, ...], Layer] = {}

    def image(self, requested: ImageRecipe) -> Image:
        # Programs below: so a node unpacks the layer that most images share once.
        packages = [self._packages(tuple(requested.packages))] if requested.packages else []
        return Image(
            reference=self._made_of.reference(requested),
            layers=(*map(self._program, requested.programs), *packages),
            entrypoint=tuple(requested.entrypoint),
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
