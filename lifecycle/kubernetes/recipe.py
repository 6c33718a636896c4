"""What a Kubernetes bundle is built from, and the keys by which builds are found again."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import msgspec

from ...schemas.decoding import decode_yaml
from ..outcome import Exit, failure

FOLDER = Path(__file__).parent
"""Where programs.yaml and the Go modules lie; programs/README.md says what they are."""
VARIABLE = "GCLUSTER_KUBERNETES_PROGRAMS"
"""Names another folder with a programs.yaml: another version of Kubernetes for local nodes."""
_ASSEMBLY = 3
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
    """Folders with its files, as programs.yaml sees them; of files of one name that of the first
    is taken. None: programs/NAME."""


class ImageRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One image."""

    name: str
    tag: str
    programs: list[str]
    packages: list[str] = []
    """Of the distribution, below the programs."""
    entrypoint: list[str] = []


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What programs.yaml says."""

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
    """Return the hash of all that the bundle is built from, 16 hex digits.

    The versions of the distribution's packages are no part of it: asking would need the network.
    """
    keys = {name: program_key(name, made_of, folder) for name in made_of.programs}
    told = msgspec.to_builtins(made_of)
    for program in told["programs"].values():
        del program["folders"]  # where files lie, which the keys look into
    content = [_ASSEMBLY, architecture(), told, keys]
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
