"""The wanted HPC-X, and its aggregation manager only where OpenSM runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Play
    from testinfra.host import Host

NAME = "hpcx-v{}-gcc-doca_ofed-ubuntu24.04-cuda13-x86_64"


def test_the_aggregation_manager_runs_and_starts_with_the_host(host: Host) -> None:
    assert host.service("sharp_am").is_running
    assert host.service("sharp_am").is_enabled
    assert host.file("/opt/hpcx").linked_to == f"/opt/{NAME.format('2.25.1')}"


def test_an_archive_with_another_checksum_is_refused(converge: Play) -> None:
    run = converge(version="2.26", checksum="sha256:" + "0" * 64, phases=["install"])
    assert run.returncode != 0
    assert "checksum" in run.stdout


def test_another_version_takes_its_place_with_its_own_manager(host: Host, converge: Play) -> None:
    assert converge(version="2.26").returncode == 0
    assert host.file("/opt/hpcx").linked_to == f"/opt/{NAME.format('2.26')}"
    assert "2.26" in host.file("/etc/gcluster/hpcx").content_string
    assert converge().returncode == 0


def test_without_opensm_no_manager_stays(host: Host, converge: Play) -> None:
    assert converge(manager=False).returncode == 0
    assert not host.service("sharp_am").is_running
    assert not host.file("/etc/systemd/system/sharp_am.service").exists
    assert converge().returncode == 0


def test_nothing_stays_of_what_the_spec_no_longer_requests(host: Host, converge: Play) -> None:
    assert converge(phases=["remove"]).returncode == 0
    assert not host.file("/opt/hpcx").exists
    assert not host.service("sharp_am").is_running
    assert converge().returncode == 0
