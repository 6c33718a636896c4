"""Lustre matches the kernel and is held; mounts have a time limit; verify checks the servers."""

from __future__ import annotations

import pytest
from conftest import Answered, Play, Recorded
from testinfra.host import Host

MODULES, PROGRAMS = "lustre-client-modules-6.12.48+deb13-amd64", "lustre-client-utils"
PATH = "/lustre/scratch-1"
UNIT = r"lustre-scratch\x2d1.mount"


def version(host: Host, package: str) -> str:
    return str(host.package(package).version)


def test_modules_for_the_running_kernel_and_programs_have_the_wanted_version(host: Host) -> None:
    assert {version(host, MODULES), version(host, PROGRAMS)} == {"2.15.6-1"}


def test_an_upgrade_of_the_node_moves_neither(host: Host) -> None:
    assert set(host.check_output("apt-mark showhold").split()) >= {MODULES, PROGRAMS}
    moved = host.check_output("apt-get --simulate dist-upgrade | grep -c '^Inst.*lustre' || true")
    assert moved == "0"


def test_lnet_runs_over_the_interface_that_leads_to_the_servers(host: Host) -> None:
    conf = host.file("/etc/lnet.conf").content_string
    assert "net type: o2ib" in conf
    assert "0: ib0" in conf
    assert host.service("lnet").is_enabled


def test_systemd_mounts_it_after_the_network_and_before_jobs(host: Host) -> None:
    assert host.mount_point(PATH).exists
    shown = host.check_output(f"systemctl show --property After,Before,What '{UNIT}'")
    assert "lnet.service" in shown
    assert "slurmd.service" in shown
    assert "What=10.20.8.1@o2ib:10.20.8.2@o2ib:/scratch" in shown
    options = host.file(f"/etc/systemd/system/{UNIT}").content_string
    assert "Options=_netdev,flock,noatime,user_xattr" in options


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("other-version", "Lustre 2.14.0 runs, not 2.15"),
        ("lnet-down", "LNet is not up"),
        ("net-down", "LNet's o2ib has interfaces that are down"),
        ("mgs-away", "no management server answers over LNet"),
        ("ost-inactive", "scratch-OST0001 is INACTIVE"),
        ("ost-missing", "1 OSTs, not 2"),
    ],
)
def test_verify_fails_where_the_file_system_is_not_as_wanted(
    answered: Answered, case: str, answer: str
) -> None:
    printed = answered(case)
    assert printed.rc != 0
    assert answer in printed.stdout + printed.stderr


def test_a_kernel_without_modules_is_refused_with_those_that_have_some(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    with recorded("other-kernel"):
        run = converge(phases=["install"])
    assert run.returncode != 0
    assert "no package of Lustre 2.15 for kernel 6.1.0-40-amd64" in run.printed
    assert "6.12.48+deb13-amd64" in run.printed
    assert version(host, PROGRAMS) == "2.15.6-1"


def test_a_mount_that_fails_reports_why_and_comes_with_the_next_converge(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    host.check_output(f"touch /srv/mgs-is-away; systemctl stop '{UNIT}'")
    with recorded("mgs-away"):
        run = converge(phases=["join"])
    host.check_output("rm /srv/mgs-is-away")
    assert run.returncode != 0
    assert "no management server answers over LNet: 10.20.8.1@o2ib" in run.printed
    assert not host.mount_point(PATH).exists
    assert converge(phases=["join", "verify"]).returncode == 0
    assert host.mount_point(PATH).exists


def test_a_newer_lustre_comes_whole_and_the_way_back_needs_a_setting(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    with recorded("upgraded"):
        assert converge(lustre="2.16").returncode == 0
    assert {version(host, MODULES), version(host, PROGRAMS)} == {"2.16.1-1"}
    run = converge(phases=["install"])
    assert run.returncode != 0
    run = converge(rollback=True)
    assert run.returncode == 0, run.stdout
    assert {version(host, MODULES), version(host, PROGRAMS)} == {"2.15.6-1"}
