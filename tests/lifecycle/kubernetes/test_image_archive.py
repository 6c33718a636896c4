"""An archive is what the image specification says: every digest is that of the bytes it names."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from gcluster.lifecycle.kubernetes.release.image_archive import (
    Image,
    archived,
    packed,
    program_layer,
    write_archive,
)


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]  # all are files


def blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    content = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
    assert digest(content) == descriptor["digest"]
    assert len(content) == descriptor["size"]
    return content


def write(images: list[Image], out: Path) -> dict[str, str]:
    made = [archived(image, "amd64") for image in images]
    write_archive(made, out)
    return {image.reference: image.digest for image in made}


def program(tmp_path: Path) -> Path:
    path = tmp_path / "kube"
    path.write_bytes(b"#!/bin/sh\necho kube\n")
    return path


def test_every_digest_and_size_is_that_of_its_blob(tmp_path: Path) -> None:
    layer = program_layer(program(tmp_path), "kube", ["kubelet", "kubeadm"])
    images = [
        Image(reference="gcluster.local/k8s/one:v1", layers=(layer,)),
        Image(reference="gcluster.local/k8s/two:v1", layers=(layer,), entrypoint=("/two",)),
    ]
    digests = write(images, tmp_path / "images.tar")
    files = read(tmp_path / "images.tar")
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(files["index.json"])["manifests"]
    named = {m["annotations"]["io.containerd.image.name"]: m for m in index}
    assert {name: m["digest"] for name, m in named.items()} == digests
    for image in images:
        manifest = json.loads(blob(files, named[image.reference]))
        config = json.loads(blob(files, manifest["config"]))
        unpacked = [digest(gzip.decompress(blob(files, part))) for part in manifest["layers"]]
        assert config["rootfs"]["diff_ids"] == unpacked
        assert config["config"].get("Entrypoint", []) == list(image.entrypoint)
        assert config["architecture"] == "amd64"


def test_a_layer_of_two_images_is_in_the_archive_once(tmp_path: Path) -> None:
    layer = program_layer(program(tmp_path), "kube", ["kubelet"])
    images = [Image(reference=f"gcluster.local/{n}:1", layers=(layer,)) for n in ("a", "b")]
    write(images, tmp_path / "images.tar")
    files = read(tmp_path / "images.tar")
    assert sum(content == layer.content for content in files.values()) == 1


def test_a_program_answers_to_all_its_names(tmp_path: Path) -> None:
    layer = program_layer(program(tmp_path), "kube", ["kubelet", "kubeadm", "kube"])
    with tarfile.open(fileobj=io.BytesIO(layer.content)) as archive:
        found = {m.name: m for m in archive.getmembers()}
    assert found["usr/local/bin/kube"].mode == 0o755
    assert {name: found[f"usr/local/bin/{name}"].linkname for name in ("kubelet", "kubeadm")} == {
        "kubelet": "kube",
        "kubeadm": "kube",
    }


def test_the_same_files_give_the_same_bytes_whenever_they_were_written(tmp_path: Path) -> None:
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        layer = program_layer(program(tmp_path / name), "kube", ["kubelet"])
        image = Image(reference="gcluster.local/k8s/one:v1", layers=(layer,))
        write([image], tmp_path / name / "images.tar")
        written.append((tmp_path / name / "images.tar").read_bytes())
        (tmp_path / name / "kube").touch()
    assert written[0] == written[1]


def test_a_packed_layer_has_the_digest_of_both_its_forms() -> None:
    layer = packed(b"any bytes")
    assert layer.digest == digest(layer.content)
    assert layer.unpacked == digest(b"any bytes")
