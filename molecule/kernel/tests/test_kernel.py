"""The kernel is held and booted with its parameters; a due reboot is reported, never done."""

from __future__ import annotations

from conftest import Play, Recorded
from testinfra.host import Host


def test_image_headers_and_the_metapackage_are_held(host: Host) -> None:
    assert set(host.check_output("apt-mark showhold").split()) >= {
        "linux-image-6.12.48+deb13-amd64",
        "linux-headers-6.12.48+deb13-amd64",
        "linux-image-amd64",
    }


def test_an_upgrade_of_the_node_brings_no_other_kernel(host: Host) -> None:
    assert host.check_output("apt-get --simulate dist-upgrade | grep -c ^Inst.linux || true") == "0"


def test_grub_starts_this_kernel_with_the_parameters(host: Host) -> None:
    menu = host.file("/boot/grub/grub.cfg").content_string
    assert "Debian GNU/Linux, with Linux 6.12.48+deb13-amd64" in menu
    assert "iommu=pt" in menu


def test_a_kernel_that_does_not_run_makes_a_reboot_due_and_nothing_restarts(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    started = host.check_output("cut -d ' ' -f 22 /proc/1/stat")
    with recorded("other-kernel"):
        run = converge(phases=["join", "verify"])
    assert run.returncode != 0
    assert "a reboot is due: 6.1.0-40-amd64 runs, not 6.12.48" in run.printed
    assert host.check_output("cut -d ' ' -f 22 /proc/1/stat") == started
    assert converge(phases=["join", "verify"]).returncode == 0


def test_a_kernel_without_packages_is_refused_by_name(converge: Play) -> None:
    run = converge(release="7.99")
    assert run.returncode != 0
    assert "no package of a kernel 7.99 here" in run.printed
    assert converge().returncode == 0
