"""Nodes take packages that their cluster has built, and no others."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from running import module, run_module

KEY = b"the cluster's MUNGE key"
BUILD = "25.11.8-34ace13f8101-1"


class Mirror:
    """A mirror with the packages of one build for this machine."""

    def __init__(self, root: Path) -> None:
        """Make it, with two packages."""
        self.url = f"file://{root}/slurm/{BUILD}"
        platform = "-".join(module("slurm_packages").this_distribution())
        self.folder = root / "slurm" / BUILD / platform
        self.folder.mkdir(parents=True)
        (self.folder / "slurm-smd_25.11.8-1_amd64.deb").write_bytes(b"one")
        (self.folder / "Packages").write_bytes(b"index")
        self.target, self.key = root / "taken", root / "munge.key"
        self.key.write_bytes(KEY)
        self.sign(f"{BUILD}/{platform}")

    def sign(self, what: str, key: bytes = KEY) -> None:
        """Write the list of checksums and its code."""
        files = sorted(p for p in self.folder.iterdir() if not p.name.startswith("SHA256SUMS"))
        lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in files]
        text = "".join(lines)
        (self.folder / "SHA256SUMS").write_text(text)
        code = hmac.new(key, f"{what}\n{text}".encode(), hashlib.sha256).hexdigest()
        (self.folder / "SHA256SUMS.hmac").write_text(code)

    def take(self, *, check: bool = False) -> dict[str, Any]:
        """Run the module."""
        requested = {
            "mirror": self.url,
            "path": str(self.target),
            "munge_key": str(self.key),
            "wait_seconds": 0,
        }
        return run_module("slurm_packages", requested, check=check)

    def taken(self) -> list[str]:
        """Return what is in the folder of the node."""
        return sorted(path.name for path in self.target.glob("*"))


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path)


def test_packages_are_taken_once_and_old_ones_go(mirror: Mirror) -> None:
    assert mirror.take(check=True)["changed"]
    assert not mirror.target.exists()
    mirror.target.mkdir()
    (mirror.target / "slurm-smd_25.05.8-1_amd64.deb").write_bytes(b"of before")
    assert mirror.take()["fetched"] == ["Packages", "slurm-smd_25.11.8-1_amd64.deb"]
    assert mirror.taken() == ["Packages", "SHA256SUMS", "slurm-smd_25.11.8-1_amd64.deb"]
    assert not mirror.take()["changed"]


def test_a_list_of_another_cluster_is_refused(mirror: Mirror) -> None:
    mirror.sign(f"{BUILD}/{mirror.folder.name}", key=b"another")
    answer = mirror.take()
    assert "does not carry this cluster's code" in answer["msg"]
    assert not mirror.target.exists()


def test_the_list_of_another_build_is_refused(mirror: Mirror) -> None:
    mirror.sign(f"25.05.8-3f77fa80fdce-1/{mirror.folder.name}")
    assert "does not carry this cluster's code" in mirror.take()["msg"]


def test_a_package_that_is_not_what_the_list_has_is_not_kept(mirror: Mirror) -> None:
    (mirror.folder / "slurm-smd_25.11.8-1_amd64.deb").write_bytes(b"other")
    assert "is not what the list of packages says" in mirror.take()["msg"]
    assert mirror.taken() == ["Packages"]


def test_a_list_that_names_files_elsewhere_is_refused(mirror: Mirror) -> None:
    text = f"{'0' * 64}  ../../etc/cron.d/x\n"
    (mirror.folder / "SHA256SUMS").write_text(text)
    what = f"{BUILD}/{mirror.folder.name}\n{text}".encode()
    code = hmac.new(KEY, what, hashlib.sha256).hexdigest()
    (mirror.folder / "SHA256SUMS.hmac").write_text(code)
    assert "files elsewhere" in mirror.take()["msg"]


def test_a_build_that_failed_is_reported_with_its_own_message(mirror: Mirror) -> None:
    (mirror.folder / "SHA256SUMS").unlink()
    (mirror.folder / "FAILED").write_text("Slurm 25.11.8 was not built on head: no space left\n")
    assert mirror.take()["msg"] == "Slurm 25.11.8 was not built on head: no space left"


def test_where_nothing_builds_the_node_reports_what_would(mirror: Mirror) -> None:
    (mirror.folder / "SHA256SUMS").unlink()
    assert "gcluster up builds them on a node of this" in mirror.take()["msg"]
