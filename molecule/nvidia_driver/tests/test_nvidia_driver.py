"""One version of everything, held; changed only on purpose; and a verify of what runs."""

from __future__ import annotations

import pytest
from conftest import Play, Recorded, Verified
from testinfra.host import Host

PACKAGES = ("nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-fabricmanager")


def versions(host: Host) -> set[str]:
    shown = host.check_output(
        "dpkg-query --show --showformat '${Version}\\n' '*nvidia*' libcuda1 | grep ."
    )
    return set(shown.split())


def test_everything_of_the_driver_has_one_version_though_a_newer_one_is_there(host: Host) -> None:
    assert versions(host) == {"595.58.03-1"}


def test_an_upgrade_of_the_node_moves_none_of_it(host: Host) -> None:
    moved = host.check_output("apt-get --simulate dist-upgrade | grep -c '^Inst.*nvidia' || true")
    assert moved == "0"
    assert set(PACKAGES) <= set(host.check_output("apt-mark showhold").split())


def test_nouveau_is_kept_away(host: Host) -> None:
    assert host.file("/etc/modprobe.d/gcluster-nvidia.conf").contains("^blacklist nouveau$")


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("gpu-lost", "7 GPUs answer, not 8"),
        ("no-persistence", "persistence mode Disabled"),
        ("fabric-not-ready", "the NVLink fabric is not ready"),
        ("closed-module", "isn't the open one"),
        ("old-driver", "runs driver 580.126.16, not 595.58.03"),
    ],
)
def test_verify_fails_on_a_machine_that_is_not_as_wanted(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.printed


def test_a_driver_that_auto_resolves_to_never_takes_a_node_back(host: Host, converge: Play) -> None:
    run = converge(driver="580.126.16")
    assert run.returncode != 0
    assert "is installed here and 580.126.16 is older" in run.printed
    assert versions(host) == {"595.58.03-1"}


def test_an_upgrade_and_the_way_back_move_everything_together(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    with recorded("upgraded"):
        assert converge(driver="595.112.07").returncode == 0
        assert versions(host) == {"595.112.07-1"}

    run = converge(driver="595.58.03", rollback=True)
    assert run.returncode == 0, run.printed
    assert versions(host) == {"595.58.03-1"}


def test_a_driver_is_exchanged_on_a_node_where_gdrdrv_holds_it(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    host.check_output("/usr/local/bin/modprobe gdrdrv")
    with recorded("old-driver"):
        run = converge(phases=["join", "verify"])
    assert run.returncode == 0, run.printed
    loaded = set(host.check_output("ls /srv/node/sys/module").split())
    assert loaded == {"gdrdrv", "nvidia", "nvidia_uvm"}
    assert host.service("nvidia-fabricmanager").is_running


def test_a_driver_that_stays_needs_a_restart_and_the_spec_s_permission(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    host.check_output("touch /srv/node/sys/module/nvidia/holders/unknown")
    try:
        with recorded("old-driver"):
            run = converge(phases=["join"])
    finally:
        host.check_output("rm /srv/node/sys/module/nvidia/holders/unknown")
    assert run.returncode != 0
    assert "unknown can't be taken out" in run.printed
    assert "boot: {reboot: when-drained}" in run.printed
    assert converge(phases=["join", "verify"]).returncode == 0


def test_an_interrupted_dpkg_is_reported_and_can_be_fixed(host: Host, converge: Play) -> None:
    host.check_output("echo 'Package: x' > /var/lib/dpkg/updates/0001")
    try:
        run = converge(driver="595.112.07")
    finally:
        host.check_output("rm /var/lib/dpkg/updates/0001")
    assert run.returncode != 0
    assert "dpkg was interrupted" in run.printed
    assert versions(host) == {"595.58.03-1"}
    assert converge(rollback=True).returncode == 0
