"""What the bundle of local nodes is made of (programs.yaml), and the keys of its parts."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import msgspec

from ....schemas.structure.decoding import decode_yaml
from ...cluster.outcome import Exit, failure

FOLDER = Path(__file__).parent
"""Folder of programs.yaml and the Go modules; see programs/README.md."""
VARIABLE = "GCLUSTER_KUBERNETES_PROGRAMS"
"""Names another folder with a programs.yaml: another version of Kubernetes for local nodes."""
_ASSEMBLY = 6
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
    published: str | None = None
    """Name in the projects' registry: "coredns/coredns"; None: an image of ours."""
    alone: list[str] = []
    """Programs instead of `programs` where the published images are fetched."""
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

    @property
    def is_published(self) -> bool:
        """Whether the projects publish all but our own images."""
        return all(image.published or image.alone for image in self.images)

    def reference(self, image: ImageRecipe) -> str:
        """Return the name by which nodes have an image."""
        return f"{self.repository}/{image.name}:{image.tag}"

    def alone(self) -> Recipe:
        """Return what is left to build where published images are fetched."""
        own = [
            msgspec.structs.replace(image, programs=image.alone)
            for image in self.images
            if image.published is None
        ]
        return msgspec.structs.replace(self, images=own)

    def compiled(self) -> tuple[str, ...]:
        """Return the programs that the images are made of, in the order of the file."""
        used = {name for image in self.images for name in image.programs}
        return tuple(name for name in self.programs if name in used)


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


def published_key(made_of: Recipe) -> str:
    """Return the hash of the inputs of a bundle with the published images and programs."""
    return hashlib.sha256(f"published {bundle_key(made_of)}".encode()).hexdigest()[:16]
