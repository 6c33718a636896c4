"""What is checked between a disk and mkfs.lustre, on files that real tools have written to."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from running import module, module_util

TARGETS = module("lustre_targets")
Failed = module_util("state").Failed
MIB = 1 << 20
SBIN = "/usr/sbin:/sbin"
HOSTS = [{"name": f"oss0{n}", "address": f"10.0.8.{n}"} for n in (1, 2, 3, 4)]


@pytest.fixture(autouse=True)
def files_are_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCLUSTER_DISKS", "files")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{SBIN}")


def params(host: str = "oss01", **changes: Any) -> dict[str, Any]:
    return {
        "host": host,
        "fsname": "scratch",
        "hosts": HOSTS,
        "network": "o2ib",
        "backend": "ldiskfs",
        "failover": False,
        "format": True,
        "seconds": 10,
        "metadata_devices": ["/dev/disk/by-id/m"],
        "object_devices": ["/dev/disk/by-id/a", "/dev/disk/by-id/b"],
        **changes,
    }


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a blank disk of 64 MiB."""
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(64 * MIB)
    return path


def write(*argv: str) -> None:
    program = shutil.which(argv[0], path=f"{os.environ['PATH']}:{SBIN}")
    subprocess.run([program or argv[0], *argv[1:]], check=True, capture_output=True)


def test_a_blank_disk_holds_nothing(disk: Path) -> None:
    assert TARGETS.device_content(str(disk)) == ""


@pytest.mark.parametrize(
    "argv", [("mke2fs", "-q", "-F"), ("mkswap", "-q")], ids=["a file system", "swap"]
)
def test_a_signature_is_found(disk: Path, argv: tuple[str, ...]) -> None:
    write(*argv, str(disk))
    assert "isn't blank" in TARGETS.device_content(str(disk))


@pytest.mark.parametrize("place", [0, 4096, 32 * MIB, 64 * MIB - 1])
def test_data_without_a_signature_is_found(disk: Path, place: int) -> None:
    with disk.open("r+b") as file:
        file.seek(place)
        file.write(b"x")
    assert "isn't blank" in TARGETS.device_content(str(disk))


def test_a_disk_that_is_not_there_or_no_disk_is_refused(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert TARGETS.device_content(str(disk.with_name("away"))) == "it isn't there"
    monkeypatch.delenv("GCLUSTER_DISKS")
    assert TARGETS.device_content(str(disk)) == "it is no block device"


@pytest.mark.parametrize("written", ["scratch-OST0001", "scratch:OST0001", "scratch=OST0001"])
def test_a_target_is_known_by_its_label_before_and_after_it_registered(
    disk: Path, written: str
) -> None:
    write("mke2fs", "-q", "-F", "-L", written, str(disk))
    one = {"name": "scratch-OST0001", "device": str(disk), "dataset": str(disk)}
    assert TARGETS.refusal(one, params(format=False)) == ""


def test_a_blank_disk_needs_a_lasting_name_and_a_permission(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"name": "scratch-OST0001", "device": str(disk), "dataset": str(disk)}
    assert "name it by /dev/disk/by-id/" in TARGETS.refusal(one, params())
    monkeypatch.setattr(TARGETS, "BY_ID", f"{disk.parent}/")
    assert "needs the word format: true" in TARGETS.refusal(one, params(format=False))
    assert TARGETS.refusal(one, params()) == ""


def test_targets_are_numbered_over_all_hosts() -> None:
    names = [[one["name"] for one in TARGETS.targets(params(host["name"]))] for host in HOSTS[:2]]
    assert names == [
        ["scratch-MDT0000", "scratch-OST0000", "scratch-OST0001"],
        ["scratch-OST0002", "scratch-OST0003"],
    ]


def test_pairs_serve_each_others_targets() -> None:
    (first, *_) = TARGETS.targets(params("oss04", failover=True))
    serving = [option for option in first["options"] if option.startswith("--servicenode=")]
    assert serving == ["--servicenode=10.0.8.4@o2ib", "--servicenode=10.0.8.3@o2ib"]
    assert "--mgsnode=10.0.8.2@o2ib" in first["options"]


def test_nothing_is_ever_formatted_again() -> None:
    for failover in (False, True):
        for one in TARGETS.targets(params(failover=failover)):
            assert not [option for option in one["options"] if "reformat" in option]


def test_a_host_that_is_no_server_is_refused() -> None:
    with pytest.raises(Failed, match="gpu01 is none of the file system's servers"):
        TARGETS.targets(params("gpu01"))
