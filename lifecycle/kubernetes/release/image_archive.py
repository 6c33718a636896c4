"""Container images out of files, without an engine: an OCI archive, same files, same bytes.

https://github.com/opencontainers/image-spec, image-layout.md and config.md, version 1.1.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ....stacks.local.image.base_image import missing_tool
from ....stacks.provider import provider_error
from ...cluster.outcome import LifecycleError

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_NAME = "io.containerd.image.name"
"""Annotation by which `ctr images import` names an image."""
FOLDER = "/usr/local/bin"
"""Where programs lie in an image."""


_PACKED = 1
"""How hard gzip tries: 2.0 s for the 151 MB of `kube` (49 MB), which at 6 takes 6.1 s (43 MB)."""


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
    """Return a layer of a tar archive, packed fast: an `up` waits for it."""
    content = gzip.compress(tar, compresslevel=_PACKED, mtime=0)
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


class ArchivedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image as archives and registries have it: every blob by its digest."""

    reference: str
    digest: str
    """Of its manifest, or of the index that it was pinned by."""
    media_type: str
    blobs: dict[str, bytes]
    """Digest -> content, the manifest's own among them."""
    also: tuple[str, ...] = ()
    """More names that it is found by."""


def archived(image: Image, architecture: str) -> ArchivedImage:
    """Return an image with its configuration and manifest."""
    config = _json(_config(image, architecture))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, layer.content) for layer in image.layers],
        }
    )
    layers = {layer.digest: layer.content for layer in image.layers}
    return ArchivedImage(
        reference=image.reference,
        digest=_digest(manifest),
        media_type=_MANIFEST,
        blobs={**layers, _digest(config): config, _digest(manifest): manifest},
    )


def write_archive(images: Iterable[ArchivedImage], out: Path) -> None:
    """Write an OCI archive; a blob of several images is in it once."""
    blobs: dict[str, bytes] = {}
    index = []
    for image in images:
        blobs |= image.blobs
        index += [
            {
                "mediaType": image.media_type,
                "digest": image.digest,
                "size": len(image.blobs[image.digest]),
                "annotations": {_NAME: name},
            }
            for name in (image.reference, *image.also)
        ]
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


_LATEST = "latest"


def full_name(image: str) -> str:
    """Return an image with registry and tag: many charts leave Docker's own registry out.

    Args:
        image: without a digest: "busybox", "rancher/local-path-provisioner:v0.0.33".
    """
    path, tag = split_tag(image)
    first, slash, rest = path.partition("/")
    if not slash:
        path = f"docker.io/library/{path}"
    elif first == "docker.io" and "/" not in rest:
        path = f"docker.io/library/{rest}"
    elif not ("." in first or ":" in first or first == "localhost"):
        path = f"docker.io/{path}"
    return f"{path}:{tag}"


def split_tag(image: str) -> tuple[str, str]:
    """Return what precedes an image's tag, and the tag: "latest" where none is given."""
    path, colon, tag = image.rpartition(":")
    return (path, tag) if colon and "/" not in tag else (image, _LATEST)


_KEPT = re.compile(
    r"usr/s?bin/[^/]+$|usr/lib64/[^/]+$|usr/lib/[^/]+-linux-gnu/(lib|ld-)[^/]*\.so[^/]*$"
)
_LINKS = ("bin", "sbin", "lib", "lib64")
"""Of a merged /usr; the package that makes them isn't among those taken apart."""
_PROTOCOLS = "".join(
    f"{name}\t{number}\n"
    for name, number in (("icmp", 1), ("tcp", 6), ("udp", 17), ("ipv6-icmp", 58), ("sctp", 132))
)
"""/etc/protocols: without it nft lists protocols by their numbers, which no kube-proxy that starts
again takes for the names that it wrote."""
_LIMIT_S = 600


def package_layer(packages: Sequence[str], suite: str, scratch: Path) -> Layer:
    """Return a layer with what these packages, and those they depend on, run with.

    Args:
        packages: names.
        suite: of Debian.
        scratch: folder for temporary archives.

    Raises:
        LifecycleError: GC912 with mmdebstrap's message, or what to install.
    """
    lacking = missing_tool()
    if lacking is not None:
        raise LifecycleError(*lacking.diagnostics)
    with TemporaryDirectory(dir=scratch) as folder:
        root = f"{folder}/root.tar"
        command = [
            "mmdebstrap",
            "--variant=extract",
            f"--include={','.join(packages)}",
            suite,
            root,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            why = errors[0] if errors else "mmdebstrap failed"
            error = provider_error("GC912", f"packages for images were not fetched: {why}")
            raise LifecycleError(*error.diagnostics)
        with tarfile.open(root) as archive:
            return packed(_cut(archive))


def _cut(archive: tarfile.TarFile) -> bytes:
    """Return the programs and libraries of a root file system as an archive without dates.

    The names of protocols are our own: the package that has them configures a whole system.
    """
    buffer = io.BytesIO()
    kept = {
        name: member
        for member in archive.getmembers()
        if _KEPT.match(name := member.name.removeprefix("./")) and not member.isdir()
    }
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for name in _LINKS:
            link = tarfile.TarInfo(name)
            link.type, link.linkname, link.mode = tarfile.SYMTYPE, f"usr/{name}", 0o777
            out.addfile(link)
        protocols = tarfile.TarInfo("etc/protocols")
        protocols.size, protocols.mode = len(_PROTOCOLS), 0o644
        out.addfile(protocols, io.BytesIO(_PROTOCOLS.encode()))
        for name, member in sorted(kept.items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = member.type, member.mode
            entry.size, entry.linkname = member.size, member.linkname
            out.addfile(entry, archive.extractfile(member) if member.isreg() else None)
    return buffer.getvalue()
