"""NCCL in one build, its tests built for these GPUs, and the fabric's settings in every job."""

from __future__ import annotations

import pytest
from conftest import Play, Verified
from testinfra.host import Host

GIVEN = "/usr/local/libexec/gcluster/job-environment.sh"


def test_the_library_has_its_build_though_others_are_there(host: Host) -> None:
    assert host.package("libnccl2").version == "2.30.4-1+cuda13.2"
    assert host.package("libnccl-dev").version == "2.30.4-1+cuda13.2"
    assert {"libnccl2", "libnccl-dev"} <= set(host.check_output("apt-mark showhold").split())
    assert "libnccl" not in host.check_output("apt-get --simulate dist-upgrade")


def test_the_tests_were_built_for_these_gpus_where_the_smoke_test_searches(host: Host) -> None:
    made = host.file("/opt/nccl-tests/bin/made_with_perf").content_string
    assert "-gencode=arch=compute_90,code=sm_90" in made
    assert "MPI=1 /usr/lib/x86_64-linux-gnu/openmpi /usr/local/cuda-13.0 /usr" in made
    assert host.file("/opt/nccl-tests/bin/all_reduce_perf").mode & 0o111


def test_nccl_s_own_file_holds_its_own_settings(host: Host) -> None:
    settings = host.file("/etc/nccl.conf").content_string
    assert "NCCL_SOCKET_IFNAME=enp0s12" in settings
    assert "LD_LIBRARY_PATH" not in settings


def test_a_job_is_given_what_it_does_not_set_itself(host: Host) -> None:
    given = host.check_output(f"env -i NCCL_SOCKET_IFNAME=eth9 LD_LIBRARY_PATH=/mine sh {GIVEN}")
    assert "NCCL_SOCKET_IFNAME" not in given
    assert "export LD_LIBRARY_PATH=/var/lib/tcpx/lib64:/mine" in given
    # Slurm takes the rest of the line as it is.
    assert "BINDINGS=enp6s0:8-21,112-125;enp12s0:8-21,112-125" in given


def test_users_s_shells_have_it_too(host: Host) -> None:
    shell = "echo $NCCL_GPUDIRECTTCPX_TX_BINDINGS $NCCL_SOCKET_IFNAME"
    assert host.check_output(f"bash -lc '{shell}'") == (
        "enp6s0:8-21,112-125;enp12s0:8-21,112-125 enp0s12"
    )


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("wrong-numbers", "gives wrong numbers"),
        ("missing-rows", "has no numbers for 16777216, 33554432 B"),
        ("other-library", "the tests run with 2.27.5, not 2.30.4-1"),
        ("aborted", "an AllReduce in the node fails"),
    ],
)
def test_verify_fails_on_a_node_that_is_not_as_wanted(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.printed


def test_a_tarball_without_a_trusted_key_or_checksum_is_refused(host: Host, converge: Play) -> None:
    unknown = converge(checksum="")
    assert unknown.returncode != 0
    assert "software.sources.nccl-tests.checksums" in unknown.printed
    host.check_output("rm /usr/local/src/gcluster/nccl-tests-2.17.6.tar.gz")
    other = converge(checksum="sha256:" + "0" * 64)
    assert other.returncode != 0
    assert "did not match" in other.printed
    assert not host.file("/usr/local/src/gcluster/nccl-tests-2.17.6.tar.gz").exists
    assert converge().returncode == 0


def test_tests_that_can_not_be_built_leave_the_old_ones(host: Host, converge: Play) -> None:
    host.check_output("mv /usr/bin/make /usr/bin/make.away")
    try:
        run = converge(architecture="10.0")
    finally:
        host.check_output("mv /usr/bin/make.away /usr/bin/make")
    assert run.returncode != 0
    assert "nccl-tests can't be built" in run.printed
    assert host.file("/opt/nccl-tests/bin/all_reduce_perf").exists
    assert converge(phases=["verify"]).returncode == 0
