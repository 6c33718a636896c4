"""A node answers its own containerd out of its archives, as a registry would."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.free_port import free_port

from gcluster.inventory.compile.kubernetes import IMAGES_PORT
from gcluster.lifecycle.kubernetes.release.image_archive import (
    ArchivedImage,
    Image,
    archived,
    packed,
    write_archive,
)

ROLE = Path(__file__).parents[2] / "roles" / "kubernetes"
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
NAME = "gcluster.local/k8s/coredns:v1"


def image(content: bytes, reference: str = NAME) -> ArchivedImage:
    return archived(Image(reference=reference, layers=(packed(content),)), "amd64")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A host with archives of two versions, of which it runs the second."""
    for version in ("1.35.3", "1.35.4"):
        (tmp_path / version).mkdir()
        write_archive([image(version.encode())], tmp_path / version / "images.tar")
    return tmp_path


@pytest.fixture
def address(store: Path) -> Iterator[str]:
    """The running program's URL."""
    port = free_port()
    program = ROLE / "files/libexec/kubernetes-registry.py"
    with subprocess.Popen(
        [sys.executable, str(program), str(store), "1.35.4", str(port)]
    ) as running:
        until = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < until
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        running.terminate()


def get(url: str, method: str = "GET") -> tuple[bytes, str, str]:
    """Return content, type and digest."""
    request = urllib.request.Request(url, method=method)  # noqa: S310  # the program just started
    with urllib.request.urlopen(request) as answer:  # noqa: S310  # as above
        headers = answer.headers
        return answer.read(), headers["Content-Type"], headers["Docker-Content-Digest"]


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def is_absent(url: str) -> bool:
    with pytest.raises(urllib.error.HTTPError) as answer:
        get(url)
    answer.value.close()
    return answer.value.code == 404


def test_an_image_of_the_version_that_runs_is_found_by_its_tag(address: str) -> None:
    wanted = image(b"1.35.4").digest
    content, kind, reported = get(f"{address}/v2/k8s/coredns/manifests/v1?ns=gcluster.local")
    assert (kind, reported, digest(content)) == (MANIFEST, wanted, wanted)


def test_all_that_a_manifest_names_is_given(address: str) -> None:
    content, _, _ = get(f"{address}/v2/k8s/coredns/manifests/v1?ns=gcluster.local")
    read = json.loads(content)
    for part in (read["config"], *read["layers"]):
        url = f"{address}/v2/k8s/coredns/blobs/{part['digest']}?ns=gcluster.local"
        blob, _, reported = get(url)
        assert (digest(blob), reported, len(blob)) == (part["digest"], part["digest"], part["size"])


def test_an_image_of_another_version_is_found_by_its_digest(address: str) -> None:
    old = image(b"1.35.3").digest
    content, kind, _ = get(f"{address}/v2/k8s/coredns/manifests/{old}?ns=gcluster.local")
    assert (digest(content), kind) == (old, MANIFEST)


def test_a_manifest_that_an_index_names_is_given_with_its_own_type(
    address: str, store: Path
) -> None:
    manifest = json.dumps({"mediaType": MANIFEST, "layers": []}).encode()
    index = json.dumps({"manifests": [{"digest": digest(manifest)}]}).encode()
    pulled = ArchivedImage(
        reference="registry.k8s.io/kueue/kueue:v1",
        digest=digest(index),
        media_type=INDEX,
        blobs={digest(index): index, digest(manifest): manifest},
        also=(f"registry.k8s.io/kueue/kueue@{digest(index)}",),
    )
    write_archive([pulled], store / "1.35.4" / "more-images.tar")
    where = f"{address}/v2/kueue/kueue/manifests"
    for which in ("v1", digest(index)):
        assert get(f"{where}/{which}?ns=registry.k8s.io")[:2] == (index, INDEX)
    assert get(f"{where}/{digest(manifest)}?ns=registry.k8s.io")[:2] == (manifest, MANIFEST)


@pytest.mark.parametrize(
    "requested",
    [
        "k8s/coredns/manifests/v2?ns=gcluster.local",
        "k8s/coredns/manifests/v1?ns=registry.k8s.io",
        "k8s/coredns/manifests/v1",
        "k8s/coredns/blobs/sha256:0000",
        "k8s/coredns/blobs/..%2f..%2fetc%2fpasswd",
    ],
)
def test_what_no_archive_holds_is_not_found(address: str, requested: str) -> None:
    assert is_absent(f"{address}/v2/{requested}")


def test_an_archive_that_is_damaged_hides_no_other(address: str, store: Path) -> None:
    (store / "1.35.4" / "another.tar").write_bytes(b"no archive")
    content, _, _ = get(f"{address}/v2/k8s/coredns/manifests/v1?ns=gcluster.local")
    assert json.loads(content)["layers"]


def test_who_requests_the_head_gets_no_body(address: str) -> None:
    url = f"{address}/v2/k8s/coredns/manifests/v1?ns=gcluster.local"
    body, kind, reported = get(url, "HEAD")
    assert (body, kind) == (b"", MANIFEST)
    assert reported == digest(get(url)[0])


def test_containerd_queries_where_the_role_serves() -> None:
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text(encoding="utf-8"))
    assert defaults["kubernetes_registry_port"] == IMAGES_PORT
