"""IBM's packages in one held version; a host of the cluster adds the node, or refuses it."""

from __future__ import annotations

import pytest
from conftest import Answered, Play, Recorded
from testinfra.host import Host


def test_the_wanted_version_is_held_though_a_newer_one_exists(host: Host) -> None:
    shown = host.check_output(
        "dpkg-query --show --showformat '${Package} ${Version}\\n' 'gpfs.*' | grep -v gskit"
    )
    assert {line.split()[1] for line in shown.splitlines()} == {"5.2.3-0"}
    held = set(host.check_output("apt-mark showhold").split())
    assert {"gpfs.base", "gpfs.gpl", "gpfs.gskit", "gpfs.license.dm"} <= held


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("other-cluster", "the node is in old.example.edu, not in storage.example.edu"),
        ("arbitrating", "GPFS is arbitrating here"),
        ("down", "GPFS is down here"),
        ("not-mounted", "/gpfs/fs1 is not mounted"),
        ("other-filesystem", "/gpfs/fs1 is /dev/sda2 (ext4), not fs1 (gpfs)"),
        ("no-module", "there is no portability layer for"),
        ("small-pagepool", "GPFS runs with pagepool 1073741824, not 17179869184"),
    ],
)
def test_verify_fails_on_a_node_that_is_not_as_wanted(
    answered: Answered, case: str, answer: str
) -> None:
    printed = answered(case)
    assert printed.rc != 0
    assert answer in printed.stdout + printed.stderr


def test_another_host_of_the_cluster_adds_the_node_when_one_refuses(
    converge: Play, recorded: Recorded
) -> None:
    with recorded("not-joined"):
        run = converge(phases=["join", "verify"])
    assert run.returncode == 0, run.stdout


def test_where_every_host_refuses_the_commands_for_its_administrator_are_reported(
    converge: Play, recorded: Recorded
) -> None:
    with recorded("not-joined"):
        run = converge(contacts=["nsd02"], phases=["join"])
    assert run.returncode != 0
    assert "Permission denied (publickey)" in run.printed
    assert "/usr/lpp/mmfs/bin/mmaddnode -N node01 --accept" in run.printed
    assert converge().returncode == 0


def test_headers_that_are_missing_are_reported_and_the_next_converge_continues(
    converge: Play, recorded: Recorded
) -> None:
    with recorded("no-module"):
        run = converge(phases=["configure"])
    assert run.returncode != 0
    assert "Cannot find kernel headers" in run.printed
    assert converge().returncode == 0


def test_a_licence_that_was_not_accepted_stops_it_before_anything_is_installed(
    converge: Play,
) -> None:
    run = converge(accepted=False, phases=["preflight"])
    assert run.returncode != 0
    assert "accept_license: true" in run.printed
