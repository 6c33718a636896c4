"""The base image of local nodes: Debian with systemd and sshd, named by the hash of its inputs."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import msgspec

from ....schemas.structure.decoding import decode_yaml
from ...io import atomic
from ...provider import ProviderError, provider_error
from ..engine import INSTALL_ENGINE, Engine

Variant: TypeAlias = Literal["base", "cloud-like"]
_DATA = Path(__file__).parent / "base"
_CLOUD_LIKE = Path(__file__).parent / "cloud_like"
_OWN_SSHD = "etc/ssh/"
_BUILD_LIMIT_S = 900
_RECIPE = 2
"""Raise it when `_command`, the import or what a bake leaves (golden.py) changes in a way that the
data files don't show."""

BOOT_FLAGS = ("--change=CMD /sbin/init", "--change=STOPSIGNAL SIGRTMIN+3")
"""Settings of an image with systemd as its first process, and systemd's stop signal."""

CLEAN_ROOT = (
    "rm -f /etc/ssh/ssh_host_*_key* /var/lib/dbus/machine-id; : > /etc/machine-id; "
    "echo localhost > /etc/hostname; : > /etc/resolv.conf"
)
"""Shell that takes a root file system's identity away; relative to the root it runs in."""


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of base/packages.yaml."""

    suite: str
    packages: list[str]
    apt_options: list[str]
    dpkg_options: list[str]
    masked_units: list[str]


class _CloudLikePackages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of cloud_like/packages.yaml."""

    packages: list[str]
    unmasked_units: list[str]


def recipe(variant: Variant = "base") -> Recipe:
    """Return what an image is made of."""
    base = decode_yaml((_DATA / "packages.yaml").read_bytes(), Recipe)
    if variant == "base":
        return base
    cloud_like = decode_yaml((_CLOUD_LIKE / "packages.yaml").read_bytes(), _CloudLikePackages)
    return msgspec.structs.replace(
        base,
        packages=[*base.packages, *cloud_like.packages],
        masked_units=[unit for unit in base.masked_units if unit not in cloud_like.unmasked_units],
    )


def _folders(variant: Variant) -> tuple[Path, ...]:
    return (_DATA,) if variant == "base" else (_DATA, _CLOUD_LIKE)


def _files(variant: Variant) -> dict[str, Path]:
    """Return path in the image -> file here. A cloud's image has a stock SSH server."""
    found = {
        str(path.relative_to(folder / "files")): path
        for folder in _folders(variant)
        for path in (folder / "files").rglob("*")
        if path.is_file()
    }
    return {
        name: found[name]
        for name in sorted(found)
        if variant == "base" or not name.startswith(_OWN_SSHD)
    }


@cache
def base_digest(variant: Variant = "base") -> str:
    """Return the hash of all that an image is built from, SHA-256 in hex.

    The archive's package versions are not part of it: `has_image` would else need the network.
    """
    digest = hashlib.sha256(f"{_RECIPE} {os.uname().machine} {CLEAN_ROOT}\n".encode())
    for folder in _folders(variant):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def base_reference(variant: Variant = "base") -> str:
    """Return an image's name with its tag."""
    return f"localhost/gcluster/{variant}:{base_digest(variant)[:16]}"


def node_reference(key: str) -> str:
    """Return the name of the image that was baked under `key`."""
    return f"localhost/gcluster/node:{key[:16]}"


def missing_tool() -> ProviderError | None:
    """Return why the base image can't be built on this machine; None when it can."""
    if shutil.which("mmdebstrap") is None:
        return provider_error(
            "GC912", "mmdebstrap is not installed: it builds the nodes' image", hint=INSTALL_ENGINE
        )
    if not Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists():
        return provider_error(
            "GC912",
            "Debian's archive keys are not installed: the nodes' image can't be verified",
            hint="sudo apt-get install -y debian-archive-keyring",
        )
    return None


def ensure_base(engine: Engine, directory: Path, variant: Variant = "base") -> str:
    """Return an image's reference; build the image where it is missing.

    Args:
        engine: where the image is kept.
        directory: cache shared by all clusters; holds the lock and, while building, the archive.
        variant: which image.

    Raises:
        ProviderError: GC912 with mmdebstrap's message, or what to install.
    """
    reference = base_reference(variant)
    if engine.has_image(reference):
        return reference
    lacking = missing_tool()
    if lacking is not None:
        raise lacking
    with atomic.locked(directory / f"base-{base_digest(variant)[:16]}.lock"):
        if not engine.has_image(reference):
            with TemporaryDirectory(prefix="base-", dir=directory) as scratch:
                archive = _build(Path(scratch), variant)
                engine.call("import", *BOOT_FLAGS, str(archive), reference, timeout_s=300)
    return reference


def _build(scratch: Path, variant: Variant) -> Path:
    """Make the root file system as a tar archive in `scratch`."""
    overlay, archive = scratch / "overlay.tar", scratch / "root.tar"
    overlay.write_bytes(_overlay(recipe(variant), variant))
    try:
        done = subprocess.run(
            _command(recipe(variant), overlay, archive),
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_BUILD_LIMIT_S,
            env={**os.environ, "TMPDIR": str(scratch), "SOURCE_DATE_EPOCH": "1735689600"},
        )
    except subprocess.TimeoutExpired:
        raise provider_error(
            "GC912",
            f"the nodes' image was not built within {_BUILD_LIMIT_S} s",
            hint="does this machine reach its Debian mirror?",
        ) from None
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise provider_error(
            "GC912",
            f"the nodes' image was not built: {errors[0] if errors else 'mmdebstrap failed'}",
            detail="\n".join(done.stderr.splitlines()[-20:]),
            hint="does this machine reach its Debian mirror?",
        )
    return archive


def _command(made_of: Recipe, overlay: Path, archive: Path) -> list[str]:
    """Return the mmdebstrap call. It names no mirror: mmdebstrap uses Debian's own."""
    return [
        "mmdebstrap",
        "--variant=apt",
        f"--include={','.join(made_of.packages)}",
        *(f"--aptopt={option}" for option in made_of.apt_options),
        *(f"--dpkgopt={option}" for option in made_of.dpkg_options),
        f"--customize-hook=tar-in {overlay} /",
        f"--customize-hook=chroot $1 sh -c '{CLEAN_ROOT}'",
        made_of.suite,
        str(archive),
    ]


def _overlay(made_of: Recipe, variant: Variant = "base") -> bytes:
    """Return an image's own files and masked units as a tar archive: same inputs, same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, path in _files(variant).items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o644
            archive.addfile(entry, io.BytesIO(path.read_bytes()))
        for unit in made_of.masked_units:
            entry = tarfile.TarInfo(f"etc/systemd/system/{unit}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "/dev/null"
            archive.addfile(entry)
    return buffer.getvalue()
