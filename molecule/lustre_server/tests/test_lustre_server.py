"""Only blank disks with stable names are formatted, with the spec's permission."""

from __future__ import annotations

import pytest
from conftest import Answered, Play
from testinfra.host import Host

BY_ID = "/dev/disk/by-id/nvme-SAMSUNG_MZQL23T8_"
NEW = f"{BY_ID}new"


def new_disk(host: Host, fill: str) -> None:
    host.check_output(
        "mkdir -p /srv/disks && rm -f /srv/disks/new && truncate -s 64M /srv/disks/new"
    )
    host.check_output(f"cd /srv/disks && {fill}")
    host.check_output(f"ln -sf /srv/disks/new {NEW}")


def label(host: Host, disk: str) -> str:
    return str(
        host.check_output(f"blkid --probe --match-tag LABEL --output value /srv/disks/{disk}")
    )


def test_each_disk_holds_its_target_and_was_formatted_once(host: Host) -> None:
    assert label(host, "mdt0") == "scratch:MDT0000"
    assert [label(host, "ost0"), label(host, "ost1")] == ["scratch:OST0000", "scratch:OST0001"]
    assert host.check_output("wc -l < /srv/mkfs.log") == "3"


def test_either_host_of_a_pair_may_serve_and_both_are_managers(host: Host) -> None:
    first, *rest = host.check_output("cat /srv/mkfs.log").splitlines()
    assert "--mgs" in first.split()
    for line in rest:
        assert "--mgsnode=10.20.8.1@o2ib --mgsnode=10.20.8.2@o2ib" in line
        assert "--servicenode=10.20.8.1@o2ib --servicenode=10.20.8.2@o2ib" in line


def test_targets_are_mounted_by_systemd_after_lnet(host: Host) -> None:
    for name in ("scratch-MDT0000", "scratch-OST0000", "scratch-OST0001"):
        assert host.mount_point(f"/srv/lustre/{name}").exists
    unit = r"srv-lustre-scratch\x2dOST0001.mount"
    assert "lnet.service" in host.check_output(f"systemctl show --property After '{unit}'")
    assert host.check_output(f"systemctl is-enabled '{unit}'") == "enabled"


@pytest.mark.parametrize(
    ("fill", "answer"),
    [
        ("mke2fs -q -F -L home new", "it holds home, not scratch-OST0001"),
        ("mkswap -q new", "isn't blank: swap"),
        ("printf 'EFI PART' | dd of=new bs=1 seek=512 conv=notrunc status=none", "isn't blank: "),
        (
            "printf data | dd of=new bs=1 seek=32M conv=notrunc status=none",
            "there is data at byte 33554432 without a signature",
        ),
        ("mke2fs -q -F -L other:OST0001 new", "it holds other-OST0001"),
        ("mke2fs -q -F -L scratch-OST0005 new", "it holds scratch-OST0005"),
    ],
)
def test_a_disk_that_holds_anything_else_is_refused_and_stays_as_it_is(
    host: Host, converge: Play, fill: str, answer: str
) -> None:
    new_disk(host, fill)
    before = host.check_output("sha256sum /srv/disks/new")
    run = converge(phases=["preflight", "join"], osts=[f"{BY_ID}ost0", NEW])
    assert run.returncode != 0
    assert answer in run.printed
    assert "Nothing was changed" in run.printed
    assert host.check_output("sha256sum /srv/disks/new") == before


def test_a_blank_disk_needs_a_permission_and_a_name_that_lasts(host: Host, converge: Play) -> None:
    new_disk(host, "true")
    run = converge(phases=["join"], osts=[f"{BY_ID}ost0", NEW], format=False)
    assert run.returncode != 0
    assert "needs the word format: true" in run.printed
    run = converge(phases=["join"], osts=[f"{BY_ID}ost0", "/srv/disks/new"])
    assert run.returncode != 0
    assert "name it by /dev/disk/by-id/" in run.printed
    assert host.check_output("wc -l < /srv/mkfs.log") == "3"


def test_another_file_systems_disks_are_refused(converge: Play) -> None:
    run = converge(phases=["preflight"], fsname="other")
    assert run.returncode != 0
    assert "it holds scratch-MDT0000, not other-MDT0000" in run.printed


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("ost-stopped", "scratch-OST0001 is ST"),
        ("mgs-stopped", "the MGS is not running"),
        ("unhealthy", "device scratch-OST0001 reported unhealthy"),
    ],
)
def test_verify_fails_where_a_target_does_not_serve(
    answered: Answered, case: str, answer: str
) -> None:
    printed = answered(case)
    assert printed.rc != 0
    assert answer in printed.stdout + printed.stderr
    assert answered("good").rc == 0
