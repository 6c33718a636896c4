"""A small bundle, made by what makes real ones, of files that are no packages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gcluster.lifecycle.bundle.apt import Found
from gcluster.lifecycle.bundle.collect import Part, indexed, sign
from gcluster.lifecycle.bundle.keys import BundleKey
from gcluster.schemas.stack.bundle import BundledFile, BundleManifest, RoleNeed

PACKAGES = {"munge": b"munge's bytes", "slurmd": b"slurmd's bytes"}
TARBALL = b"tarball"


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> BundleKey:
    """Return a key that signs bundles."""
    return BundleKey(tmp_path_factory.mktemp("keys") / "bundle.asc", "test")


@pytest.fixture(scope="session")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> BundleKey:
    """Return a key that is not trusted."""
    return BundleKey(tmp_path_factory.mktemp("keys") / "other.asc", "test")


@pytest.fixture
def make_bundle(tmp_path: Path, key: BundleKey) -> Callable[..., BundleManifest]:
    """Return a function that writes a bundle into tmp_path / "bundle" and returns its manifest."""

    def make(*requested: RoleNeed, distribution: str = "debian-13") -> BundleManifest:
        out = tmp_path / "bundle"
        found = []
        for name, content in PACKAGES.items():
            sha256 = hashlib.sha256(content).hexdigest()
            package = Found(
                name=name,
                version="1:2.0-1",
                architecture="amd64",
                source="debian",
                url=f"http://192.0.2.1/{name}.deb",
                size=len(content),
                sha256=sha256,
                stanza=f"Package: {name}\nVersion: 1:2.0-1\nArchitecture: amd64\n"
                f"Size: {len(content)}\nSHA256: {sha256}\n",
            )
            path = out / f"apt/{distribution}/pool/{package.file}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            found.append(package)
        part = Part(
            distribution=distribution,
            requested=tuple(sorted(requested)),
            found=tuple(found),
            indexes={"http://192.0.2.1/InRelease": "0" * 64},
            date="Thu, 01 Jan 2026 00:00:00 UTC",
        )
        (out / "files/pyxis").mkdir(parents=True, exist_ok=True)
        (out / "files/pyxis/v1.tar.gz").write_bytes(TARBALL)
        manifest = BundleManifest(
            cluster="test",
            key_fingerprint=key.fingerprint,
            key=key.public,
            repositories=(indexed(part, out, key),),
            files=(
                BundledFile(
                    source="pyxis",
                    role="enroot_pyxis",
                    url="http://192.0.2.1/v1.tar.gz",
                    path="files/pyxis/v1.tar.gz",
                    size=len(TARBALL),
                    sha256=hashlib.sha256(TARBALL).hexdigest(),
                ),
            ),
        )
        sign(manifest, out, key)
        return manifest

    return make
