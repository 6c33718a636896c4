"""One toolkit, held at its update, chosen among others, and no driver behind it."""

from __future__ import annotations

import pytest
from conftest import Play, Recorded, Verified
from testinfra.host import Host


def test_the_toolkit_has_its_update_though_a_newer_one_is_there(host: Host) -> None:
    assert host.package("cuda-toolkit-13-0").version == "13.0.2-1"
    assert "cuda-toolkit-13-0" in host.check_output("apt-mark showhold").split()
    assert "Inst cuda-toolkit" not in host.check_output("apt-get --simulate dist-upgrade")


def test_nothing_can_bring_a_driver(host: Host) -> None:
    assert not host.package("cuda-drivers").is_installed
    assert host.run("apt-get --simulate install cuda-13-0").rc != 0


def test_all_users_compiles_with_it(host: Host) -> None:
    assert host.check_output("bash -lc 'readlink -f $(dirname $(command -v nvcc))/..'") == (
        "/usr/local/cuda-13.0"
    )


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("old-driver", "the driver runs CUDA up to 12.8, so no program of CUDA 13"),
        ("old-compiler", "nvcc is of release 12.9, not 13.0.2"),
    ],
)
def test_verify_fails_on_a_node_that_is_not_as_wanted(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.printed


def test_a_version_that_is_unknown_is_reported_and_changes_nothing(
    host: Host, converge: Play
) -> None:
    run = converge(toolkit="13.0.9")
    assert run.returncode != 0
    assert "no cuda-toolkit-13-0 13.0.9-* in the node's repositories" in run.printed
    assert "13.0.3-1, 13.0.2-1" in run.printed
    assert host.package("cuda-toolkit-13-0").version == "13.0.2-1"


def test_another_toolkit_is_installed_next_to_it_and_is_the_chosen_one(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    with recorded("newer"):
        run = converge(toolkit="13.1.0")
    assert run.returncode == 0, run.printed
    assert host.file("/usr/local/cuda/bin/nvcc").exists
    assert host.check_output("readlink -f /usr/local/cuda") == "/usr/local/cuda-13.1"
    assert host.package("cuda-toolkit-13-0").is_installed
    assert converge().returncode == 0
    assert host.check_output("readlink -f /usr/local/cuda") == "/usr/local/cuda-13.0"
