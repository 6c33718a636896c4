"""One held DOCA-OFED, its modules loaded again only without a job, memory that can be locked."""

from __future__ import annotations

import pytest
from conftest import Play, Verified
from testinfra.host import Host


def version_of(host: Host, package: str) -> str:
    return host.check_output(f"dpkg-query --show --showformat '${{Version}}' {package}")


def test_the_wanted_version_is_installed_though_a_newer_one_exists_and_nothing_changes_it(
    host: Host,
) -> None:
    assert version_of(host, "doca-ofed") == "3.2.0-125000"
    held = set(host.check_output("apt-mark showhold").split())
    assert {"doca-ofed", "mlnx-ofed-kernel-dkms", "libibverbs1", "opensm"} <= held
    moved = host.check_output("apt-get --simulate dist-upgrade | grep -c '^Inst' || true")
    assert moved == "0"


def test_jobs_and_logins_may_lock_all_memory(host: Host) -> None:
    assert host.file("/etc/security/limits.d/90-gcluster-rdma.conf").contains("memlock unlimited")
    shown = host.check_output("systemctl show --property=LimitMEMLOCK --value slurmd")
    assert shown == "infinity"


@pytest.mark.parametrize(
    ("case", "answer"),
    [("other-module", "another one is installed"), ("no-ofed", "ofed_info doesn't answer")],
)
def test_verify_fails_on_a_driver_that_is_not_as_installed(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.printed


def test_modules_are_not_loaded_again_under_a_job(host: Host, converge: Play) -> None:
    host.check_output("echo 0 > /srv/sys/module/mlx5_core/srcversion")
    host.check_output(
        "cp /bin/sleep /opt/slurmstepd && systemd-run --unit=job /opt/slurmstepd infinity"
    )
    try:
        refused = converge(phases=["join"])
    finally:
        host.check_output("systemctl stop job")
    assert refused.returncode != 0
    assert "a job runs here: not changed" in refused.printed
    assert converge(phases=["join", "verify"]).returncode == 0


def test_a_version_that_the_repository_lacks_is_reported_and_nothing_moves(
    host: Host, converge: Play
) -> None:
    run = converge(release="3.9.9", phases=["install"])
    assert run.returncode != 0
    assert "doca-ofed=3.9.9*" in run.printed
    assert version_of(host, "doca-ofed") == "3.2.0-125000"
    assert converge().returncode == 0


def test_roce_without_its_tools_is_refused_before_anything_is_changed(converge: Play) -> None:
    run = converge(fabric="roce", drivers="inbox", phases=["preflight"])
    assert run.returncode != 0
    assert "mlnx_qos of DOCA-OFED's mlnx-tools, which isn't here" in run.printed
