"""Builds the Kubernetes bundle from Go modules; existing parts are found by their key.

A folder `kubernetes/KEY` of the cache is a complete bundle or doesn't exist; programs have folders
with their own keys, so that a change of one compiles that one only.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal, cast

import msgspec

from ....schemas.stack.bundle import (
    BUNDLES,
    IMAGES,
    MANIFEST,
    KubernetesBundle,
    KubernetesFile,
    KubernetesImage,
    decode_kubernetes,
)
from ....schemas.structure.decoding import decode_yaml
from ....stacks.io import atomic
from ...bundle.fetch import sha256_of
from ...cluster import places
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from . import golang
from .image_archive import Image, Layer, package_layer, program_layer, write_archive


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
    for done, requested in enumerate(made_of.images):
        report(
            StageProgress(
                name="images", done=done, total=len(made_of.images), detail=requested.name
            )
        )
        images.append(layers.image(requested))
    digests = write_archive(images, architecture(), out / IMAGES)
    manifest = _manifest(made_of, key, (*files, _file(out, IMAGES)), digests)
    atomic.write(out / MANIFEST, manifest.encode(), mode=0o644)
    seconds = time.monotonic() - began
    summary = f"{len(images)} images, {manifest.size / 1e6:.0f} MB in all"
    report(StageFinished(name="images", ok=True, summary=summary, seconds=seconds))


def planned_bundle() -> KubernetesBundle:
    """Return the manifest that a build would have: sizes 0, checksums ""."""
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

    def image(self, requested: ImageRecipe) -> Image:
        # Programs below: so a node unpacks the layer that most images share once.
        packages = [self._packages(tuple(requested.packages))] if requested.packages else []
        return Image(
            reference=_reference(self._made_of, requested),
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


FOLDER = Path(__file__).parent
"""Folder of programs.yaml and the Go modules; see programs/README.md."""
VARIABLE = "GCLUSTER_KUBERNETES_PROGRAMS"
"""Names another folder with a programs.yaml: another version of Kubernetes for local nodes."""
_ASSEMBLY = 5
"""Raise it when what build.py makes of programs and packages changes."""
_SOURCES = ("go.mod", "go.sum", "*.go")


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One Go module that is compiled to one program."""

    calls: list[str]
    """Names that it answers to."""
    on_nodes: list[str] = []
    """Those that nodes run themselves; none: it is in images only."""
    link: dict[str, str] = {}
    """Variables that the linker sets."""
    folders: list[str] = []
    """Folders with its files, relative to programs.yaml; of files with the same name the first is
    taken. None: programs/NAME."""


class ImageRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One image."""

    name: str
    tag: str
    programs: list[str]
    packages: list[str] = []
    """Of the distribution, above the programs."""
    entrypoint: list[str] = []


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of programs.yaml."""

    toolchain: str
    repository: str
    kubernetes: str
    etcd: str
    coredns: str
    pause: str
    programs: dict[str, Program]
    images: list[ImageRecipe]
    suite: str


def recipe_folder() -> Path:
    """Return the folder of programs.yaml: ours, or the one that `VARIABLE` names."""
    named = os.environ.get(VARIABLE, "")
    return Path(named).absolute() if named else FOLDER


def recipe() -> Recipe:
    """Read programs.yaml.

    Raises:
        LifecycleError: GC1000: `VARIABLE` names a folder without one, or with another file.
    """
    return _read(recipe_folder() / "programs.yaml")


@functools.cache
def _read(path: Path) -> Recipe:
    try:
        return decode_yaml(path.read_bytes(), Recipe)
    except (OSError, ValueError) as error:
        raise failure(
            "GC1000",
            f"{path} doesn't say what Kubernetes is built from: {error}",
            hint=f"{VARIABLE} names the folder; without it the build is gcluster's own",
            exit_code=Exit.USAGE,
        ) from None


def architecture() -> str:
    """Return this machine's architecture as Go and images call it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def sources(name: str, made_of: Recipe, folder: Path) -> dict[str, Path]:
    """Return the files that a program is compiled from, by their names in its module.

    Args:
        name: of the program.
        made_of: the recipe.
        folder: where its programs.yaml lies.
    """
    found: dict[str, Path] = {}
    for part in made_of.programs[name].folders or [f"programs/{name}"]:
        for path in (p for pattern in _SOURCES for p in (folder / part).glob(pattern)):
            found.setdefault(path.name, path)
    return dict(sorted(found.items()))


def program_key(name: str, made_of: Recipe, folder: Path | None = None) -> str:
    """Return the hash of all that a program is compiled from, 16 hex digits."""
    how = [made_of.toolchain, architecture(), made_of.programs[name].link]
    digest = hashlib.sha256(msgspec.json.encode(how, order="sorted"))
    for file, path in sources(name, made_of, folder or recipe_folder()).items():
        content = path.read_bytes()
        digest.update(f"{file} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def bundle_key(made_of: Recipe, folder: Path | None = None) -> str:
    """Return the hash of the bundle's inputs, 16 hex digits.

    The versions of the distribution's packages are not included: reading them would need the
    network.
    """
    keys = {name: program_key(name, made_of, folder) for name in made_of.programs}
    document = msgspec.to_builtins(made_of)
    for program in document["programs"].values():
        del program["folders"]  # folders of files whose content is in the keys
    content = [_ASSEMBLY, architecture(), document, keys]
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
