"""All of DCGM in one version, its host engine running, and out of the way of a new driver."""

from __future__ import annotations

import pytest
from conftest import Play, Verified
from testinfra.host import Host


def test_all_parts_have_one_version_and_are_held(host: Host) -> None:
    shown = host.check_output("dpkg-query -W -f '${Package} ${Version}\\n' 'datacenter-gpu-*'")
    # dpkg also names those that are only conflicted with: they have no version.
    parts = dict(line.split() for line in shown.splitlines() if not line.endswith(" "))
    assert set(parts.values()) == {"1:4.5.1-1"}
    assert {"datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda13"} <= set(parts)
    assert set(parts) <= set(host.check_output("apt-mark showhold").split())


def test_it_stops_and_starts_with_the_driver_s_daemon(host: Host) -> None:
    host.check_output("systemctl stop nvidia-persistenced")
    assert not host.service("nvidia-dcgm").is_running
    host.check_output("systemctl start nvidia-persistenced")
    host.check_output("systemctl is-active nvidia-dcgm")
    assert host.service("nvidia-dcgm").is_enabled


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("gpu-lost", "sees 7 GPUs, not 8"),
        ("old-engine", "the host engine is 4.4.2, not 4.5.1"),
        ("no-engine", "the host engine doesn't answer"),
    ],
)
def test_verify_fails_on_a_node_that_is_not_as_wanted(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.printed


def test_a_part_that_the_mirror_lacks_is_reported_and_nothing_moves(
    host: Host, converge: Play
) -> None:
    run = converge(version="4.6.0")
    assert run.returncode != 0
    assert "no datacenter-gpu-manager-4-core 1:4.6.0*" in run.printed
    assert host.package("datacenter-gpu-manager-4-core").version == "1:4.5.1-1"
    assert converge(phases=["verify"]).returncode == 0
