"""What a Kubernetes bundle is built from, and the keys by which builds are found again."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import msgspec

from gcluster.schemas.decoding import decode_yaml

PROGRAMS = Path(__file__).parent / "programs"
"""The Go modules, one a folder; its README says what they are."""
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


@functools.cache
def recipe() -> Recipe:
    """Read programs.yaml."""
    path = Path(__file__).with_name("programs.yaml")
    return decode_yaml(path.read_bytes(), Recipe)


def architecture() -> str:
    """Return this machine's architecture as Go and images call it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def program_key(name: str, made_of: Recipe, programs: Path = PROGRAMS) -> str:
    """Return the hash of all that a program is compiled from, 16 hex digits."""
    how = [made_of.toolchain, architecture(), made_of.programs[name].link]
    digest = hashlib.sha256(msgspec.json.encode(how, order="sorted"))
    folder = programs / name
    for path in sorted(p for pattern in _SOURCES for p in folder.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def bundle_key(made_of: Recipe, programs: Path = PROGRAMS) -> str:
    """Return the hash of all that the bundle is built from, 16 hex digits.

    The versions of the distribution's packages are no part of it: asking would need the network.
    """
    keys = {name: program_key(name, made_of, programs) for name in made_of.programs}
    content = [_ASSEMBLY, architecture(), msgspec.to_builtins(made_of), keys]
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
