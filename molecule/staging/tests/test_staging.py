"""Storage is filled from what it is a copy of, by people and before jobs, if both are mounted."""

from __future__ import annotations

import pytest
from conftest import Play
from testinfra.host import Host


def test_a_person_fills_it_by_name_and_a_second_time_copies_nothing(host: Host) -> None:
    assert "copied 1" in host.check_output("gcluster-stage fast")
    assert host.check_output("cmp /lake/train/shard /fast/train/shard && echo same") == "same"
    assert "copied 0, bytes 0, same 1" in host.check_output("gcluster-stage fast")


def test_a_plain_user_stages_nothing_that_he_may_not_write(host: Host) -> None:
    run = host.run("su nobody -s /bin/sh -c 'gcluster-stage fast'")
    assert run.rc == 1
    assert "Permission denied" in run.stderr


@pytest.mark.parametrize("side", ["/lake", "/fast"])
def test_a_side_that_is_not_mounted_is_named_and_fixed_by_mounting_it(
    host: Host, converge: Play, side: str
) -> None:
    host.check_output(f"umount {side}")
    run = converge(phases=["verify"])
    staged = host.run("gcluster-stage fast")
    host.check_output(f"mount -t tmpfs -o mode=0755 {side[1:]} {side}")
    assert run.returncode != 0
    assert f"nothing is mounted at {side}" in run.stdout
    assert staged.rc == 1
    assert converge(phases=["verify"]).returncode == 0


def test_another_limit_is_taken_up(host: Host, converge: Play) -> None:
    assert converge(phases=["configure"], within_s=90).returncode == 0
    assert '"within_s": 90' in host.file("/etc/gcluster/staging.json").content_string
    assert converge(phases=["configure"]).returncode == 0
