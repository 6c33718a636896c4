"""What is kept of packages is enough to run their programs: the loader and the libraries."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from gcluster.lifecycle.kubernetes.release import image_archive as module
from gcluster.lifecycle.kubernetes.release.image_archive import package_layer

FILES = {
    "usr/sbin/nft": b"program",
    "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": b"loader",
    "usr/lib/x86_64-linux-gnu/libnftables.so.1.1.0": b"library",
    "usr/lib/x86_64-linux-gnu/gconv/ISO.so": b"no need",
    "usr/share/doc/nftables/copyright": b"no need",
    "dev/null": b"",
    "etc/hostname": b"builder",
}
LINKS = {
    "usr/lib/x86_64-linux-gnu/libnftables.so.1": "libnftables.so.1.1.0",
    "usr/lib64/ld-linux-x86-64.so.2": "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
}


def mmdebstrap(path: Path, date: int) -> None:
    """Write the archive that mmdebstrap would: doubled, for it takes half a minute and a mirror."""
    with tarfile.open(path, "w") as archive:
        for name, content in FILES.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size, entry.mode, entry.mtime = len(content), 0o755, date
            archive.addfile(entry, io.BytesIO(content))
        for name, target in LINKS.items():
            link = tarfile.TarInfo(f"./{name}")
            link.type, link.linkname, link.mtime = tarfile.SYMTYPE, target, date
            archive.addfile(link)


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, date: int = 1) -> bytes:
    class Done:
        returncode, stderr = 0, ""

    def run(command: list[str], **_: object) -> Done:
        mmdebstrap(Path(command[-1]), date)
        return Done()

    monkeypatch.setattr(module, "missing_tool", lambda: None)
    monkeypatch.setattr(subprocess, "run", run)
    return gzip.decompress(package_layer(["nftables"], "trixie", tmp_path).content)


def test_a_program_finds_its_loader_and_libraries_by_the_paths_it_was_linked_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(fileobj=io.BytesIO(made(tmp_path, monkeypatch))) as archive:
        archive.extractall(tmp_path / "root", filter="tar")
    root = tmp_path / "root"
    assert (root / "lib64/ld-linux-x86-64.so.2").read_bytes() == b"loader"
    assert (root / "lib/x86_64-linux-gnu/libnftables.so.1").read_bytes() == b"library"
    assert (root / "sbin/nft").read_bytes() == b"program"


def test_nothing_else_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(fileobj=io.BytesIO(made(tmp_path, monkeypatch))) as archive:
        names = set(archive.getnames())
    assert names == {
        *("bin", "sbin", "lib", "lib64", "etc/protocols"),
        *(name for name in FILES if FILES[name] in {b"program", b"loader", b"library"}),
        *LINKS,
    }


def test_nft_lists_protocols_by_the_names_that_kube_proxy_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(fileobj=io.BytesIO(made(tmp_path, monkeypatch))) as archive:
        file = archive.extractfile("etc/protocols")
        assert file is not None
        known = dict(line.split() for line in file.read().decode().splitlines())
    assert known == {"tcp": "6", "udp": "17", "sctp": "132", "icmp": "1", "ipv6-icmp": "58"}


def test_the_same_packages_give_the_same_bytes_on_another_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made(tmp_path, monkeypatch, 1) == made(tmp_path, monkeypatch, 2)
