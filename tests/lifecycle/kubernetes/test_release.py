"""A release is taken by the sums published of it, here from doubles of its servers."""

from __future__ import annotations

import hashlib
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.kubernetes.release import Release, fetch_release, release
from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.progress import silent

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
VERSION = "1.35.4"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Servers(dict[str, tuple[bytes, str]]):
    """Path -> content and its type, as the download site and the registry would have it."""

    def publish(self, path: str, content: bytes) -> None:
        """Serve a file, and its sum beside it."""
        self[path] = (content, "application/octet-stream")
        self[f"{path}.sha256"] = (hashlib.sha256(content).hexdigest().encode(), "text/plain")

    def push(self, name: str, tag: str) -> None:
        """Serve an image."""
        config, layer = f'{{"name": "{name}"}}'.encode(), f"layer of {name}".encode()
        parts = [{"digest": digest(part), "size": len(part)} for part in (config, layer)]
        manifest = json.dumps({"config": parts[0], "layers": [parts[1]]}).encode()
        platform = {"os": "linux", "architecture": "amd64"}
        entry = {"digest": digest(manifest), "platform": platform}
        index = json.dumps({"manifests": [entry]}).encode()
        root = f"/v2/{name}"
        self[f"{root}/manifests/{tag}"] = (index, INDEX)
        self[f"{root}/manifests/{digest(manifest)}"] = (manifest, MANIFEST)
        for part in (config, layer):
            self[f"{root}/blobs/{digest(part)}"] = (part, "application/octet-stream")


@pytest.fixture
def servers() -> Iterator[tuple[Servers, Release]]:
    """Serve a release; return what is served, and where."""
    content = Servers()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is the library's
            found = content.get(self.path)
            self.send_response(404 if found is None else 200)
            body, kind = found or (b"", "text/plain")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    of = release()
    of = msgspec.structs.replace(
        of,
        programs=msgspec.structs.replace(of.programs, root=url),
        registry=msgspec.structs.replace(of.registry, url=url),
    )
    for name in of.programs.names:
        content.publish(f"/v{VERSION}/bin/linux/amd64/{name}", f"program {name}".encode())
    tags = dict.fromkeys(of.registry.own, f"v{VERSION}")
    beside = of.beside[0]
    tags |= {"etcd": beside.etcd, "pause": beside.pause, "coredns/coredns": f"v{beside.coredns}"}
    for name, tag in tags.items():
        content.push(name, tag)
    yield content, of
    server.shutdown()
    thread.join()
    server.server_close()


def test_programs_and_images_are_in_the_bundle_with_their_sums(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    made = fetch_release(VERSION, "amd64", tmp_path / "out", silent, servers[1])
    for file in made.files:
        content = (tmp_path / "out" / file.path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file.sha256
    assert {name for file in made.files for name in file.programs} == {
        "kubeadm",
        "kubectl",
        "kubelet",
    }
    with tarfile.open(tmp_path / "out/images.tar") as archive:
        names = set(archive.getnames())
    assert {f"blobs/{image.digest.replace(':', '/')}" for image in made.images} <= names
    assert made.image("pause").endswith("/pause:3.10.1")
    assert made.image("coredns").endswith("/coredns/coredns:v1.13.1")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("/v1.35.4/bin/linux/amd64/kubelet", "kubelet"),
        ("/v2/etcd/blobs/", "not what its digest says"),
        ("/v2/pause/manifests/sha256", "not what its digest says"),
    ],
)
def test_what_is_not_what_its_sum_says_ends_it_and_leaves_nothing(
    servers: tuple[Servers, Release], tmp_path: Path, part: str, said: str
) -> None:
    content, of = servers
    path = next(p for p in content if p.startswith(part) and not p.endswith(".sha256"))
    content[path] = (content[path][0] + b" and more", content[path][1])
    with pytest.raises(LifecycleError) as raised:
        fetch_release(VERSION, "amd64", tmp_path / "out", silent, of)
    assert any(said in d.summary for d in raised.value.diagnostics)
    assert list(tmp_path.iterdir()) == []


def test_a_version_whose_etcd_nobody_wrote_down_is_refused_before_anything_is_fetched(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    with pytest.raises(LifecycleError, match=r"1\.99\.0 is not known"):
        fetch_release("1.99.0", "amd64", tmp_path / "out", silent, servers[1])


def test_an_architecture_that_is_not_published_is_said(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    content, of = servers
    for name in of.programs.names:
        content.publish(f"/v{VERSION}/bin/linux/arm64/{name}", b"program")
    with pytest.raises(LifecycleError, match="has no image for linux on arm64"):
        fetch_release(VERSION, "arm64", tmp_path / "out", silent, of)
