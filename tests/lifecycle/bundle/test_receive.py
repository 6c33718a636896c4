"""The controller's end takes only what it lacks, and keeps only what is whole."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from gcluster.lifecycle.bundle import mirror

PROGRAM = Path(mirror.__file__).with_name("receive.py")
FILES = {"apt/a.deb": b"a" * 3000, "files/b": b"b", "manifest.json": b"{}"}


def described(path: str) -> dict[str, Any]:
    content = FILES[path]
    return {
        "path": path,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def receiver(what: str, folder: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), what, str(folder)],
        input=stdin,
        capture_output=True,
        check=False,
    )


def missing(folder: Path) -> list[str]:
    listed = json.dumps([described(path) for path in FILES]).encode() + b"\n"
    return list(json.loads(receiver("compare", folder, listed).stdout))


def send(folder: Path, *paths: str) -> subprocess.CompletedProcess[bytes]:
    stream = b"".join(json.dumps(described(p)).encode() + b"\n" + FILES[p] for p in paths)
    return receiver("receive", folder, stream)


def test_what_arrived_is_not_requested_again(tmp_path: Path) -> None:
    assert missing(tmp_path) == list(FILES)
    assert send(tmp_path, "apt/a.deb").returncode == 0
    assert missing(tmp_path) == ["files/b", "manifest.json"]
    send(tmp_path, "files/b", "manifest.json")
    assert missing(tmp_path) == []


def test_a_file_that_was_changed_there_is_requested_again(tmp_path: Path) -> None:
    send(tmp_path, *FILES)
    assert missing(tmp_path) == []
    (tmp_path / "apt/a.deb").write_bytes(b"x" * 3000)
    assert missing(tmp_path) == ["apt/a.deb"]


def test_a_connection_that_is_cut_leaves_the_whole_files_and_no_half_one(tmp_path: Path) -> None:
    whole = json.dumps(described("files/b")).encode() + b"\n" + FILES["files/b"]
    half = json.dumps(described("apt/a.deb")).encode() + b"\n" + FILES["apt/a.deb"][:100]
    done = receiver("receive", tmp_path, whole + half)
    assert done.returncode != 0
    assert b"apt/a.deb did not arrive whole" in done.stderr
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["b"]


def test_what_no_longer_belongs_to_the_bundle_goes(tmp_path: Path) -> None:
    send(tmp_path, *FILES)
    (tmp_path / "apt/old.deb").write_bytes(b"old")
    missing(tmp_path)
    assert not (tmp_path / "apt/old.deb").exists()
