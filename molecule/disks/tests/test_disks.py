"""File systems on a node's own disks: made once, brought back at each start, others spared."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host


def test_both_are_mounted_and_all_users_may_write_to_scratch(host: Host) -> None:
    for path, label in (("/scratch", "gc-scratch"), ("/export/home", "gc-home")):
        mount = host.mount_point(path)
        assert mount.exists
        assert mount.filesystem == "xfs"
        assert host.check_output(f"blkid -p -o value -s LABEL {mount.device}") == label
    host.check_output("su nobody -s /bin/sh -c 'touch /scratch/mine'")


def test_what_lay_below_the_mount_point_is_on_the_disk(host: Host) -> None:
    assert host.file("/export/home/ada").is_directory


def test_a_start_of_the_node_mounts_them_again_with_what_is_on_them(host: Host) -> None:
    host.check_output("echo thesis > /export/home/thesis && umount /scratch /export/home")
    host.check_output("systemctl restart gcluster-disks.service")
    assert host.file("/export/home/thesis").content_string == "thesis\n"
    assert host.file("/scratch/mine").exists


def test_local_disks_that_came_back_empty_are_recreated(host: Host) -> None:
    host.check_output("umount /scratch && wipefs --all --quiet /dev/loop6")
    host.check_output("systemctl restart gcluster-disks.service")
    assert host.mount_point("/scratch").exists
    assert not host.file("/scratch/mine").exists


def test_data_follows_a_disk_that_has_grown(host: Host, converge: Play) -> None:
    before = int(host.check_output("stat -f -c %b /export/home"))
    host.check_output("truncate --size 600M /var/tmp/disk5 && losetup --set-capacity /dev/loop5")
    assert converge(phases=["join"]).returncode == 0
    assert int(host.check_output("stat -f -c %b /export/home")) > before


def test_a_disk_with_foreign_data_is_never_formatted(host: Host, converge: Play) -> None:
    host.check_output("umount /scratch")
    run = converge(phases=["configure", "join"], scratch="/dev/loop7")
    assert run.returncode != 0
    assert "/dev/loop7 holds ext4, which gcluster did not make: it is not formatted" in run.printed
    assert host.check_output("blkid -p -o value -s LABEL /dev/loop7") == "results"
    assert converge(phases=["configure", "join", "verify"]).returncode == 0
