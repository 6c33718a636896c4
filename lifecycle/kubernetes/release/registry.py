"""Images out of a registry into an OCI archive: every blob by its digest, nothing else is believed.

https://github.com/opencontainers/distribution-spec, version 1.1: its pull half, no credentials.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import msgspec

from ....stacks.io.https import opened
from ...cluster.outcome import failure
from .image_archive import ArchivedImage, split_tag

_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_UNAUTHORIZED = 401
_BEARER = "bearer"
_LOOPBACK = "127.0.0.1"
_HOSTS = {"docker.io": "registry-1.docker.io"}
"""Names in references whose registry answers under another."""
_ANONYMOUS = ""
_TIMEOUT_S = 60
_LARGEST = 1 << 30


def pull(registry: str, name: str, tag: str, architecture: str) -> ArchivedImage:
    """Return an image of a registry.

    Args:
        registry: its URL: "https://registry.k8s.io".
        name: of the repository there: "coredns/coredns".
        tag: of the image.
        architecture: as images call it: "amd64".

    Raises:
        LifecycleError: GC939: it is not available, or its digest doesn't match.
    """
    root = f"{registry.rstrip('/')}/v2/{name}"
    content, kind = _get(f"{root}/manifests/{tag}", accept=(*_INDEXES, *_MANIFESTS))
    read = _decoded(content, f"{name}:{tag}")
    if kind in _INDEXES:
        digest = _of_architecture(read, architecture, f"{name}:{tag}")
        content, kind = _get(f"{root}/manifests/{digest}", accept=_MANIFESTS)
        _check(content, digest, f"{name}@{digest}")
        read = _decoded(content, f"{name}@{digest}")
    blobs = {_digest(content): content} | _parts(root, read, f"{name}:{tag}")
    host = registry.rsplit("://", maxsplit=1)[-1].rstrip("/")
    return ArchivedImage(
        reference=f"{host}/{name}:{tag}", digest=_digest(content), media_type=kind, blobs=blobs
    )


def pull_pinned(image: str, digest: str, architecture: str) -> ArchivedImage:
    """Return an image by its digest, which may be an index's: that is kept, with one architecture.

    Args:
        image: "registry.k8s.io/kueue/kueue:v0.20.3"; the tag's current content is ignored.
        digest: the pinned one: "sha256:…".
        architecture: as images call it: "amd64".

    Raises:
        LifecycleError: GC939: it is not available, or its digest doesn't match.
    """
    path, _ = split_tag(image)
    host, _, name = path.partition("/")
    root = f"{_root(host)}/v2/{name}"
    content, kind = _get(f"{root}/manifests/{digest}", accept=(*_INDEXES, *_MANIFESTS))
    _check(content, digest, image)
    blobs, read = {digest: content}, _decoded(content, image)
    if kind in _INDEXES:
        own = _of_architecture(read, architecture, image)
        content, _ = _get(f"{root}/manifests/{own}", accept=_MANIFESTS)
        _check(content, own, f"{image} for {architecture}")
        blobs[own], read = content, _decoded(content, image)
    return ArchivedImage(
        reference=image,
        digest=digest,
        media_type=kind,
        blobs=blobs | _parts(root, read, image),
        also=(f"{path}@{digest}",),
    )


def _parts(root: str, manifest: dict[str, Any], image: str) -> dict[str, bytes]:
    """Return the blobs that a manifest names."""
    blobs = {}
    for part in (manifest["config"], *manifest["layers"]):
        blob, _ = _get(f"{root}/blobs/{part['digest']}", accept=("*/*",))
        _check(blob, part["digest"], f"a blob of {image}")
        blobs[part["digest"]] = blob
    return blobs


def digest_of(image: str) -> str:
    """Return the digest that a registry has for an image by its tag: of its index, if it has one.

    Args:
        image: "registry.k8s.io/kueue/kueue:v0.20.3".

    Raises:
        LifecycleError: GC939: it is not to be had.
    """
    path, tag = split_tag(image)
    host, _, name = path.partition("/")
    content, _ = _get(f"{_root(host)}/v2/{name}/manifests/{tag}", accept=(*_INDEXES, *_MANIFESTS))
    _decoded(content, image)
    return _digest(content)


def pull_chart(chart: str, version: str) -> bytes:
    """Return a Helm chart's archive from a registry.

    Args:
        chart: "oci://registry.k8s.io/kueue/charts/kueue".
        version: of the chart, as its tag; tags have "_" for "+".

    Raises:
        LifecycleError: GC939: it is not available, or its digest doesn't match.
    """
    host, _, name = chart.removeprefix("oci://").partition("/")
    root, tag = f"{_root(host)}/v2/{name}", version.replace("+", "_")
    content, _ = _get(f"{root}/manifests/{tag}", accept=_MANIFESTS)
    layers = _decoded(content, f"{chart}:{tag}").get("layers", [])
    archive = next((part for part in layers if part.get("mediaType") == _CHART), None)
    if archive is None:
        raise failure("GC939", f"{chart}:{tag} is no chart")
    blob, _ = _get(f"{root}/blobs/{archive['digest']}", accept=("*/*",))
    _check(blob, archive["digest"], f"{chart}:{tag}")
    return blob


def _root(host: str) -> str:
    """Return a registry's URL; plain HTTP for one on this machine's loopback."""
    if host.startswith(f"{_LOOPBACK}:"):
        return f"http://{host}"
    return f"https://{_HOSTS.get(host, host)}"


def _is_fit(url: str) -> bool:
    """Whether it is fetched at all: by HTTPS, or by HTTP from this machine's loopback."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme, parts.hostname) == ("http", _LOOPBACK)


def fetched(url: str) -> bytes:
    """Return the content of a URL; raises LifecycleError (GC939) where it is not available."""
    return _get(url, accept=("*/*",))[0]


def _get(url: str, accept: tuple[str, ...], token: str | None = None) -> tuple[bytes, str]:
    if not _is_fit(url):
        raise failure("GC939", f"{url} was not fetched: it is no https URL")
    request = urllib.request.Request(url, headers={"Accept": ", ".join(accept)})  # noqa: S310  # fit
    if token:
        # Registries send on to stores of blobs, which are others and get no token.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with opened(request, timeout=_TIMEOUT_S) as answer:
            content = answer.read(_LARGEST)
            return content, answer.headers.get("Content-Type", "").partition(";")[0]
    except urllib.error.HTTPError as error:
        scheme, _, requested = error.headers.get("WWW-Authenticate", "").strip().partition(" ")
        bearer = dict(_CHALLENGE.findall(requested)) if scheme.lower() == _BEARER else {}
        if error.code == _UNAUTHORIZED and bearer and token is None:
            return _get(url, accept, _anonymous(bearer))
        raise failure("GC939", f"{url} was not fetched: {error.reason}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise failure(
            "GC939", f"{url} was not fetched: {getattr(error, 'reason', error)}"
        ) from None


def _anonymous(requested: dict[str, str]) -> str:
    """Return a registry's anonymous token (distribution spec, token authentication).

    "": none is needed.
    """
    query = urllib.parse.urlencode(
        {k: v for k, v in requested.items() if k in {"service", "scope"}}
    )
    content, _ = _get(
        f"{requested.get('realm', '')}?{query}", accept=("application/json",), token=_ANONYMOUS
    )
    answer = _decoded(content, "a token")
    return str(answer.get("token") or answer.get("access_token") or "")


def _of_architecture(index: dict[str, Any], architecture: str, name: str) -> str:
    for entry in index.get("manifests", ()):
        platform = entry.get("platform", {})
        if (platform.get("os"), platform.get("architecture")) == ("linux", architecture):
            return str(entry["digest"])
    raise failure("GC939", f"{name} has no image for linux on {architecture}")


def _decoded(content: bytes, name: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(content)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        raise failure("GC939", f"the registry's answer for {name} is no manifest")
    return found


def _check(content: bytes, digest: str, what: str) -> None:
    if _digest(content) != digest:
        raise failure("GC939", f"{what} doesn't match its digest: {digest}")


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
