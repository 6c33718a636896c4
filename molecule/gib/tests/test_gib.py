"""One held version, the vendor's environment in shells, and a verify that loads the plugin."""

from __future__ import annotations

import pytest
from conftest import Play, Verified
from testinfra.host import Host


def test_the_plugin_has_its_version_held_though_a_newer_one_is_there(host: Host) -> None:
    assert host.package("nccl-gib").version == "1.1.0"
    assert "nccl-gib" in host.check_output("apt-mark showhold").split()
    assert host.check_output("apt-get --simulate dist-upgrade | grep -c nccl-gib || true") == "0"


def test_login_shells_have_the_vendors_environment(host: Host) -> None:
    assert host.check_output("bash --login -c 'echo $NCCL_NET $NCCL_IB_TC'") == "gIB 52"


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("link-down", "7 RDMA links are active, not 8: down are mlx5_3"),
        ("link-lost", "7 RDMA links are active, not 8"),
    ],
)
def test_verify_fails_where_a_link_is_missing(verified: Verified, case: str, answer: str) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.stdout


def test_an_interrupted_dpkg_is_reported_and_can_be_fixed(host: Host, converge: Play) -> None:
    host.check_output("echo 'Package: x' > /var/lib/dpkg/updates/0001")
    try:
        run = converge(version="1.1.2")
    finally:
        host.check_output("rm /var/lib/dpkg/updates/0001")
    assert run.returncode != 0
    assert "dpkg was interrupted" in run.stdout
    assert converge().returncode == 0
    assert host.package("nccl-gib").version == "1.1.0"
