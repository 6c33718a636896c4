"""A signed installer, held packages, and a verify that counts the interfaces of the machine."""

from __future__ import annotations

import pytest
from conftest import Play, Verified
from testinfra.host import Host

LIST = "/opt/amazon/efa_installed_packages"


def test_what_the_installer_brought_is_held(host: Host) -> None:
    held = set(host.check_output("apt-mark showhold").split())
    assert {"efa", "libfabric1-aws", "libfabric-aws-bin", "libnccl-ofi"} <= held
    assert host.package("libnccl-ofi").version == "1.22.0-1"


def test_jobs_may_pin_memory_and_read_their_neighbours(host: Host) -> None:
    assert host.file("/etc/security/limits.d/90-gcluster-efa.conf").contains("memlock unlimited")
    assert host.file("/etc/sysctl.d/90-gcluster-efa.conf").contains("ptrace_scope = 0")
    assert host.file("/etc/modules-load.d/gcluster-efa.conf").contains("^efa$")


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("interface-lost", "libfabric sees 31 EFA interfaces, not 32"),
        ("no-interface", "libfabric finds no EFA interface"),
        ("no-plugin", "NCCL would fall back to TCP"),
        ("old-module", "the kernel runs module efa none, 3.4.0g is installed"),
    ],
)
def test_verify_fails_on_a_machine_that_is_not_as_wanted(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.stdout


@pytest.mark.parametrize(
    ("variables", "answer"),
    [
        ({"source": "aws-efa-forged"}, "isn't signed by"),
        ({"key": "other"}, "isn't signed by"),
        ({"checksum": "sha256:" + "0" * 64}, "it was not unpacked"),
        ({"source": "nowhere"}, "can't be read"),
    ],
)
def test_an_installer_without_a_trusted_key_or_checksum_is_not_run(
    host: Host, converge: Play, variables: dict[str, str], answer: str
) -> None:
    host.check_output(f"mv {LIST} {LIST}.kept")
    try:
        run = converge(phases=["install"], **variables)
    finally:
        host.check_output(f"mv {LIST}.kept {LIST}")
    assert run.returncode != 0
    assert answer in run.stdout


def test_an_archive_of_another_version_is_reported(converge: Play) -> None:
    run = converge(phases=["install"], version="1.52.0")
    assert run.returncode != 0
    assert "the archive held installer 1.51.0, not 1.52.0" in run.stdout


def test_an_interrupted_installer_is_reported_and_can_be_run_again(
    host: Host, converge: Play
) -> None:
    host.check_output(f"rm {LIST} && touch /run/efa-interrupt")
    run = converge(phases=["install"])
    host.check_output("rm /run/efa-interrupt")
    assert run.returncode != 0
    assert "Failed to install packages" in run.stdout
    assert converge().returncode == 0
