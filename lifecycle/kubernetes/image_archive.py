"""Container images out of files, without an engine: an OCI archive, same files, same bytes.

https://github.com/opencontainers/image-spec, image-layout.md and config.md, version 1.1.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_NAME = "io.containerd.image.name"
"""Annotation by which `ctr images import` names an image."""
FOLDER = "/usr/local/bin"
"""Where programs lie in an image."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer, packed."""

    content: bytes
    digest: str
    """Of the packed bytes: "sha256:…"."""
    unpacked: str
    """Of what they unpack to."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image to write."""

    reference: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()


def packed(tar: bytes) -> Layer:
    """Return a layer of a tar archive."""
    content = gzip.compress(tar, compresslevel=6, mtime=0)
    return Layer(content=content, digest=_digest(content), unpacked=_digest(tar))


def program_layer(program: Path, name: str, calls: Iterable[str]) -> Layer:
    """Return a layer with a program, and a link to it for each other name that it answers to."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        parent = ""
        for part in FOLDER.strip("/").split("/"):
            parent = f"{parent}/{part}".lstrip("/")
            archive.addfile(_entry(parent, tarfile.DIRTYPE))
        entry = _entry(f"{parent}/{name}", tarfile.REGTYPE)
        entry.size = program.stat().st_size
        with program.open("rb") as content:
            archive.addfile(entry, content)
        for call in sorted(set(calls) - {name}):
            link = _entry(f"{parent}/{call}", tarfile.SYMTYPE)
            link.linkname = name
            archive.addfile(link)
    return packed(buffer.getvalue())


def write_archive(images: Iterable[Image], architecture: str, out: Path) -> dict[str, str]:
    """Write an OCI archive; return reference -> digest. A layer of several images is in it once."""
    blobs: dict[str, bytes] = {}
    index = []
    digests = {}
    for image in images:
        config = _json(_config(image, architecture))
        manifest = _json(
            {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "config": _descriptor(_CONFIG, config),
                "layers": [_descriptor(_LAYER, layer.content) for layer in image.layers],
            }
        )
        blobs |= {layer.digest: layer.content for layer in image.layers}
        blobs |= {_digest(config): config, _digest(manifest): manifest}
        digests[image.reference] = _digest(manifest)
        index.append({**_descriptor(_MANIFEST, manifest), "annotations": {_NAME: image.reference}})
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": index}),
        **{f"blobs/{name.replace(':', '/')}": blob for name, blob in sorted(blobs.items())},
    }
    with tarfile.open(out, "w") as archive:
        for name, content in files.items():
            entry = _entry(name, tarfile.REGTYPE)
            entry.mode, entry.size = 0o644, len(content)
            archive.addfile(entry, io.BytesIO(content))
    return digests


def _config(image: Image, architecture: str) -> dict[str, Any]:
    started: dict[str, Any] = {"Env": [f"PATH={FOLDER}:/usr/sbin:/usr/bin:/sbin:/bin"]}
    if image.entrypoint:
        started["Entrypoint"] = list(image.entrypoint)
    return {
        "architecture": architecture,
        "os": "linux",
        "config": started,
        "rootfs": {"type": "layers", "diff_ids": [layer.unpacked for layer in image.layers]},
    }


def _entry(name: str, kind: bytes) -> tarfile.TarInfo:
    """Return an entry of root's without a date."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, 0o777 if kind == tarfile.SYMTYPE else 0o755
    return entry


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
