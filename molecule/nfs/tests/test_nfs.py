"""Exports are limited to their clients; mounts wait for their server and change when unused."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Answered, Play
from testinfra.host import Host

SCRATCH: dict[str, Any] = {"path": "/scratch", "server": "127.0.0.1", "export": "/srv/scratch"}
SHARED = {"path": "/shared", "server": "127.0.0.1", "host": "node01", "export": "/srv/shared"}
DATA = {"path": "/data", "server": "127.0.0.1", "export": "/srv/data"}


def test_exports_of_this_host_are_served_and_those_of_another_are_not(host: Host) -> None:
    served = host.check_output("exportfs -s")
    assert "/srv/scratch  10.0.0.0/8(" in served
    assert "/srv/scratch  192.168.0.0/16(" in served
    assert "/srv/other" not in served
    scratch, shared = (
        next(line for line in served.splitlines() if line.startswith(path))
        for path in ("/srv/scratch", "/srv/shared")
    )
    assert ",rw," in scratch
    assert ",root_squash" in scratch
    assert ",ro," in shared
    assert ",no_root_squash" in shared


def test_a_mount_waits_for_its_server_and_is_there_before_jobs(host: Host) -> None:
    unit = host.file("/etc/systemd/system/scratch.mount").content_string
    assert "What=127.0.0.1:/srv/scratch" in unit
    for option in ("vers=4.2", "hard", "nconnect=8", "_netdev", "nosuid"):
        assert option in unit.split("Options=")[1].splitlines()[0].split(",")
    assert "Before=slurmd.service" in unit
    assert host.service("scratch.mount").is_running
    assert host.service("scratch.mount").is_enabled


def test_the_server_mounts_its_own_folder_through_a_bind_mount(host: Host) -> None:
    host.check_output("echo hello > /srv/shared/file")
    assert host.check_output("cat /shared/file") == "hello"


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("soft", "/scratch was requested with hard and is not so"),
        ("old-version", "/scratch was requested with vers=4.2 and is vers=4.0"),
        ("one-connection", "/scratch was requested with nconnect=8 and is not so"),
        ("read-only", "/scratch was requested with rw and is not so"),
        ("not-mounted", "/scratch is not mounted"),
    ],
)
def test_verify_fails_on_a_mount_that_is_not_as_wanted(
    answered: Answered, case: str, answer: str
) -> None:
    printed = answered(case)
    assert printed.rc != 0
    assert answer in printed.stdout + printed.stderr


def test_options_of_a_mount_in_use_are_not_changed(host: Host, converge: Play) -> None:
    host.check_output("systemd-run --unit=job sh -c 'cd /scratch && exec sleep infinity'")
    try:
        refused = converge(options=["actimeo=5"], phases=["join"])
        still = host.mount_point("/scratch").exists
    finally:
        host.check_output("systemctl stop job")
    assert refused.returncode != 0
    assert "/scratch has new options and is in use: drain the node" in refused.printed
    assert still
    assert converge(options=["actimeo=5"], phases=["join"]).returncode == 0
    unit = host.file("/etc/systemd/system/scratch.mount").content_string
    assert "actimeo=5" in unit
    assert converge().returncode == 0


def test_what_is_no_longer_requested_is_unmounted(host: Host, converge: Play) -> None:
    assert converge(mounts=[SCRATCH, SHARED, DATA], phases=["join"]).returncode == 0
    assert host.mount_point("/data").exists
    assert converge().returncode == 0
    assert not host.mount_point("/data").exists
    assert not host.file("/etc/systemd/system/data.mount").exists


def test_a_server_that_is_away_is_named_and_the_next_converge_mounts(
    host: Host, converge: Play
) -> None:
    host.check_output("systemctl stop nfs-server scratch.mount")
    run = converge(phases=["join"])
    assert run.returncode != 0
    assert "/scratch is not mounted: 127.0.0.1 doesn't answer on port 2049" in run.printed
    assert converge().returncode == 0
