"""A bundle that is built in no time: what Go's compiler and Debian's packages give is doubled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gcluster.lifecycle.kubernetes.release import build, golang, source
from gcluster.lifecycle.kubernetes.release.image_archive import Layer, packed
from gcluster.lifecycle.kubernetes.release.release import Release

from .release_double import Servers, serving


@pytest.fixture
def servers() -> Iterator[tuple[Servers, Release]]:
    """Serve a release; return what is served, and where."""
    with serving() as found:
        yield found


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return the programs that were compiled, in a cache of this test's own."""
    done: list[str] = []

    def compile_program(
        folder: Path,
        out: Path,
        toolchain: str,
        link: Mapping[str, str],
        architecture: str,
        **_: object,
    ) -> None:
        done.append(folder.name)
        out.write_text(f"#!/bin/sh\necho {folder.name} {toolchain} {architecture} {dict(link)}\n")

    def package_layer(packages: tuple[str, ...], suite: str, _: Path) -> Layer:
        return packed(f"{packages} of {suite}".encode())

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(golang, "compile_program", compile_program)
    monkeypatch.setattr(build, "package_layer", package_layer)
    monkeypatch.setattr(source, "unreachable", lambda *_: "no network")
    monkeypatch.setattr(source, "find_engine", lambda: None)
    monkeypatch.setattr(source, "ensure_base", lambda *_: done.append("base image"))
    return done
