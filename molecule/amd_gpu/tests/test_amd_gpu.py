"""Driver, ROCm and RCCL of one release, held; and a verify that checks every GPU and link."""

from __future__ import annotations

import pytest
from conftest import Play, Recorded, Verified
from testinfra.host import Host


def test_everything_is_of_one_release_though_the_repositories_have_two(host: Host) -> None:
    shown = host.check_output(
        "dpkg-query -W -f '${Package} ${Version}\\n' amdgpu-dkms 'rocm*' 'rccl*'"
    )
    parts = dict(line.split() for line in shown.splitlines())
    assert {"amdgpu-dkms", "rocm-core", "rccl", "rccl-dev"} <= set(parts)
    assert {version for version in parts.values() if ".60404-" not in version} == set()
    assert {"amdgpu-dkms", "rccl"} <= set(host.check_output("apt-mark showhold").split())


def test_users_and_devices_meet_in_the_group(host: Host) -> None:
    assert {"render", "video"} <= set(host.user("nobody").groups)
    assert host.file("/etc/udev/rules.d/70-gcluster-amdgpu.rules").contains('GROUP="render"')


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("gpu-lost", "7 GPUs answer, not 8"),
        ("link-lost", "GPUs 2 and 5 are joined by PCIE ENABLED, not by XGMI"),
        ("mixed-firmware", "firmware PM differs"),
        ("old-driver", "driver 6.10.5 runs, not the installed 6.12.12"),
        ("old-rocm", "ROCm is 6.4.3, not 6.4.4"),
        ("no-driver", "Unable to detect any GPU devices"),
    ],
)
def test_verify_fails_on_a_machine_that_is_not_as_wanted(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.printed


def test_a_driver_that_can_not_be_loaded_needs_a_reboot(converge: Play, recorded: Recorded) -> None:
    with recorded("old-driver"):
        run = converge(phases=["join"])
    assert run.returncode != 0
    assert "a reboot of the drained node brings the new driver" in run.printed


def test_an_rccl_that_this_release_has_not_is_reported_and_moves_nothing(
    host: Host, converge: Play
) -> None:
    run = converge(rccl="2.20.5")
    assert run.returncode != 0
    assert "no rccl 2.20.5.60404-* in the node's repositories" in run.printed
    assert host.package("rccl").version == "2.22.3.60404-129~24.04"
    assert converge().returncode == 0
