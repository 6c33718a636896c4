"""The Kubernetes bundle as the projects publish it: programs by checksum, images by digest."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
import urllib.error
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal, cast

import msgspec

from ....schemas.stack.bundle import (
    IMAGES,
    MANIFEST,
    KubernetesBundle,
    KubernetesFile,
    KubernetesImage,
)
from ....schemas.structure.decoding import decode_yaml
from ....stacks.io import atomic
from ....stacks.io.https import opened
from ...bundle.fetch import RequiredFile, fetch_all
from ...cluster.outcome import LifecycleError, failure
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from .image_archive import ArchivedImage, write_archive
from .registry import pull

_TIMEOUT_S = 60
_PROBE_S = 5
"""How long the download site may take to answer before it counts as out of reach."""


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Programs that a project publishes."""

    root: str
    path: str
    names: list[str]
    source: str
    date: str


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Images that a project publishes."""

    url: str
    own: list[str]
    source: str
    date: str


class VersionTags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tags that belong to one version of Kubernetes."""

    kubernetes: str
    etcd: str
    coredns: str
    pause: str
    source: str
    date: str


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of release.yaml."""

    programs: Published
    registry: Registry
    tags: list[VersionTags]


def release() -> Release:
    """Read release.yaml."""
    path = Path(__file__).with_name("release.yaml")
    return decode_yaml(path.read_bytes(), Release)


def planned_release(version: str, architecture: str) -> KubernetesBundle:
    """Return the manifest that a version would have: sizes 0, checksums "".

    For a version that release.yaml lacks it has the same programs, and another version's etcd.
    """
    of = release()
    tags = next((b for b in of.tags if b.kubernetes == version), of.tags[0])
    files = [
        KubernetesFile(path=f"bin/{name}", size=0, sha256="", programs=(name,))
        for name in of.programs.names
    ]
    registry = of.registry.url.rsplit("://", maxsplit=1)[-1]
    references = [f"{registry}/{name}:{tag}" for name, tag in _tags(of.registry, tags)]
    return KubernetesBundle(
        made_from="release",
        key="0" * 16,
        architecture=cast("Literal['amd64', 'arm64']", architecture),
        kubernetes=version,
        etcd=tags.etcd,
        coredns=tags.coredns,
        pause=tags.pause,
        repository=registry,
        files=(*files, KubernetesFile(path=IMAGES, size=0, sha256="")),
        images=tuple(KubernetesImage(reference=reference, digest="") for reference in references),
    )


def full_version(version: str) -> str:
    """Return the newest version written down that begins with "1.35"; a whole one as it is."""
    known = [b.kubernetes for b in release().tags if b.kubernetes.startswith(f"{version}.")]
    return max(known, key=lambda text: [int(n) for n in text.split(".")], default=version)


def _tags(of: Registry, tags: VersionTags) -> list[tuple[str, str]]:
    """Return the images of a version with their tags."""
    own = [(name, f"v{tags.kubernetes}") for name in of.own]
    others = [("etcd", tags.etcd), ("pause", tags.pause)]
    return [*own, *others, ("coredns/coredns", f"v{tags.coredns}")]


def fetch_release(
    version: str, architecture: str, out: Path, report: Reporter, of: Release | None = None
) -> KubernetesBundle:
    """Fetch a version into the new folder `out`; a failed fetch leaves nothing behind.

    Args:
        version: "1.35.4".
        architecture: "amd64", "arm64".
        out: the bundle's folder.
        report: receives an event for each part.
        of: where it is published; by default as release.yaml says.

    Raises:
        LifecycleError: GC939: something is not available, or its checksum doesn't match.
    """
    of = of or release()
    tags = next((b for b in of.tags if b.kubernetes == version), None)
    if tags is None:
        known = ", ".join(b.kubernetes for b in of.tags)
        raise failure(
            "GC939",
            f"which etcd, CoreDNS and pause belong to Kubernetes {version} is not known",
            hint=f"known are: {known}; add it to lifecycle/kubernetes/release/release.yaml",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        (scratch / "bin").mkdir()
        files = fetch_programs(of.programs, version, architecture, scratch, report)
        images = _images(of.registry, tags, architecture, report)
        write_archive(images, scratch / IMAGES)
        content = (scratch / IMAGES).read_bytes()
        archive = KubernetesFile(
            path=IMAGES, size=len(content), sha256=hashlib.sha256(content).hexdigest()
        )
        manifest = _manifest(tags, architecture, (*files, archive), images, of.registry.url)
        atomic.write(scratch / MANIFEST, manifest.encode(), mode=0o644)
        scratch.replace(out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return manifest


def fetch_programs(
    of: Published, version: str, architecture: str, out: Path, report: Reporter
) -> list[KubernetesFile]:
    """Fetch the programs that nodes run into the folder `bin` of `out`, by their checksums.

    Raises:
        LifecycleError: GC939: a program is not available, or its checksum doesn't match.
    """
    began = time.monotonic()
    report(StageStarted(name="programs", total=len(of.names)))
    wanted = []
    for name in of.names:
        url = f"{of.root}/{of.path.format(version=version, arch=architecture, name=name)}"
        sha256 = _published_sum(f"{url}.sha256")
        wanted.append(
            RequiredFile(url=url, path=f"bin/{name}", size=None, sha256=sha256, roles=name)
        )

    def emit(done: int, total: int, detail: str) -> None:
        report(StageProgress(name="programs", done=done, total=total, detail=detail))

    fetched, findings = fetch_all(wanted, out, emit)
    if findings:
        raise LifecycleError(*findings)
    shutil.rmtree(out / ".incoming", ignore_errors=True)
    for want in wanted:
        (out / want.path).chmod(0o755)
    seconds, summary = time.monotonic() - began, f"{fetched / 1e6:.0f} MB"
    report(StageFinished(name="programs", ok=True, summary=summary, seconds=seconds))
    return [
        KubernetesFile(
            path=want.path,
            size=(out / want.path).stat().st_size,
            sha256=want.sha256,
            programs=(want.roles,),
        )
        for want in wanted
    ]


def unreachable(version: str, architecture: str, of: Release) -> str | None:
    """Return why the projects' download site can't be reached now; None where it answers."""
    programs = of.programs
    path = programs.path.format(version=version, arch=architecture, name=programs.names[0])
    try:
        _published_sum(f"{programs.root}/{path}.sha256", timeout_s=_PROBE_S)
    except LifecycleError as error:
        return error.diagnostics[0].summary
    return None


def _published_sum(url: str, timeout_s: float = _TIMEOUT_S) -> str:
    """Return the checksum at a URL."""
    try:
        with opened(url, timeout=timeout_s) as answer:
            parts = str(answer.read(200).decode("ascii", "replace")).split()
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise failure(
            "GC939", f"{url} was not fetched: {getattr(error, 'reason', error)}"
        ) from None
    if not parts or not re.fullmatch("[0-9a-f]{64}", parts[0]):
        raise failure("GC939", f"{url} is no SHA-256")
    return parts[0]


def _images(
    of: Registry, tags: VersionTags, architecture: str, report: Reporter
) -> list[ArchivedImage]:
    began = time.monotonic()
    requested = _tags(of, tags)
    report(StageStarted(name="images", total=len(requested)))
    images = []
    for done, (name, tag) in enumerate(requested):
        report(StageProgress(name="images", done=done, total=len(requested), detail=name))
        images.append(pull(of.url, name, tag, architecture))
    seconds, summary = time.monotonic() - began, f"{len(images)} images"
    report(StageFinished(name="images", ok=True, summary=summary, seconds=seconds))
    return images


def _manifest(
    tags: VersionTags,
    architecture: str,
    files: tuple[KubernetesFile, ...],
    images: list[ArchivedImage],
    registry: str,
) -> KubernetesBundle:
    sums = [file.sha256 for file in files] + [image.digest for image in images]
    return KubernetesBundle(
        made_from="release",
        key=hashlib.sha256("\n".join(sums).encode()).hexdigest()[:16],
        architecture=cast("Literal['amd64', 'arm64']", architecture),
        kubernetes=tags.kubernetes,
        etcd=tags.etcd,
        coredns=tags.coredns,
        pause=tags.pause,
        repository=registry.rsplit("://", maxsplit=1)[-1],
        files=files,
        images=tuple(KubernetesImage(reference=i.reference, digest=i.digest) for i in images),
    )
