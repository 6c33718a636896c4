"""The kernel's and the directory's modules find, set and compare what a node starts and queries."""

from __future__ import annotations

import pytest
from recorded_machine import Machine

DEBIAN = "\n".join(
    f"linux-image-{name}"
    for name in (
        "6.12.9+deb13-amd64", "6.12.48+deb13-amd64", "6.12.48+deb13-cloud-amd64", "amd64",
        "6.12.48+deb13-amd64-dbg", "6.12.48+deb13-amd64-unsigned", "6.1.0-40-amd64",
    )
)  # fmt: skip
INSTALLED = """installed linux-image-amd64
installed linux-headers-generic-hwe-24.04
installed linux-image-6.1.0-40-amd64
not-installed linux-image-rt-amd64
installed linux-base"""


@pytest.fixture
def node(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine.tool("uname", "echo 6.1.0-40-amd64")
    machine.tool("apt-cache", f"echo '{DEBIAN}'")
    machine.tool("dpkg-query", f"echo '{INSTALLED}'")
    machine.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt\n")
    from running import module  # noqa: PLC0415  # next to this file

    monkeypatch.setattr(module("kernel_info"), "PROC", machine.root / "proc")
    return machine


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("", "6.1.0-40-amd64"),
        ("6.1.0-40", "6.1.0-40-amd64"),
        ("6.12", "6.12.48+deb13-amd64"),
        ("6.12.48", "6.12.48+deb13-amd64"),
        ("6.12.9", "6.12.9+deb13-amd64"),
    ],
)
def test_a_version_means_the_running_kernel_or_the_newest_of_its_flavour(
    node: Machine, version: str, release: str
) -> None:
    found = node.call("kernel_info", {"version": version, "find": True})
    assert found["release"] == release
    assert found["metapackages"] == ["linux-image-amd64", "linux-headers-generic-hwe-24.04"]


def test_a_kernel_without_packages_is_refused_by_name(node: Machine) -> None:
    found = node.call("kernel_info", {"version": "6.1.0-4", "find": True})
    assert found["failed"]
    assert found["msg"] == "no package of a kernel 6.1.0-4 here"


@pytest.mark.parametrize(
    ("version", "parameters", "reboot"),
    [
        ("", [], ""),
        ("6.1", ["iommu=pt"], ""),
        ("6.12.48", [], "a reboot is due: 6.1.0-40-amd64 runs, not 6.12.48"),
        (
            "6.2",
            ["iommu"],
            "a reboot is due: 6.1.0-40-amd64 runs, not 6.2; the kernel was started without iommu",
        ),
    ],
)
def test_a_reboot_is_due_where_only_it_brings_what_is_requested(
    node: Machine, version: str, parameters: list[str], reboot: str
) -> None:
    found = node.call("kernel_info", {"version": version, "parameters": parameters})
    assert found["reboot"] == reboot
    assert "release" not in found


def test_the_boot_loader_of_el_is_set_once_and_only_our_parameters_go(machine: Machine) -> None:
    machine.tool(
        "grubby",
        f'echo "$*" >>{machine.root}/calls; case $1 in --default-kernel) '
        f"cat {machine.root}/default ;; "
        f"--set-default=*) echo ${{1#*=}} >{machine.root}/default ;; esac",
    )
    machine.file("default", "/boot/vmlinuz-old\n")
    machine.file("etc/kernel/gcluster-parameters", "quiet\n")
    requested = {"release": "new", "parameters": ["iommu=pt", "hugepages=2"]}
    changes = ["parameters: iommu=pt hugepages=2", "default: new"]
    assert machine.call("kernel_boot", requested, check=True)["changes"] == changes
    assert (machine.root / "calls").read_text() == "--default-kernel\n"
    assert machine.call("kernel_boot", requested)["changes"] == changes
    calls = (machine.root / "calls").read_text()
    assert "--remove-args=quiet\n--update-kernel=ALL --args=iommu=pt hugepages=2\n" in calls
    assert machine.call("kernel_boot", requested)["changed"] is False


@pytest.mark.parametrize(("session", "homes"), [("", True), ("pam_mkhomedir.so", False)])
def test_homes_are_made_by_pam_where_there_is_no_authselect(
    machine: Machine, session: str, *, homes: bool
) -> None:
    file = machine.file("etc/pam.d/common-session", session)
    machine.tool("pam-auth-update", f"echo {'pam_mkhomedir.so' if homes else ''} >{file}")
    requested = {"make_homes": homes}
    assert machine.call("directory_logins", requested, check=True)["changed"]
    assert file.read_text() == session
    assert machine.call("directory_logins", requested)["changed"]
    assert machine.call("directory_logins", requested)["changed"] is False


def test_authselect_chooses_sssd_once(machine: Machine) -> None:
    chosen = machine.file("chosen", "local")
    machine.tool(
        "authselect",
        f"case $1 in current) cat {chosen} ;; "
        f'select) shift; echo "${{*% --force}}" >{chosen} ;; esac',
    )
    done = machine.call("directory_logins", {"make_homes": True})
    assert done["changes"] == ["authselect: sssd with-mkhomedir"]
    assert machine.call("directory_logins", {"make_homes": True})["changed"] is False
    assert machine.call("directory_logins", {"make_homes": False})["changed"]
    assert chosen.read_text() == "sssd\n"
