"""A controller reverts no manual change, and removes nothing that was not named."""

from __future__ import annotations

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.operations.gitops.record import go_on, pause
from gcluster.lifecycle.state import acquire
from gcluster.lifecycle.up.up import up

from .conftest import Harness


def test_removals_count_as_changes(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa"), "bb.yaml": harness.spec("bb")})
    harness.round()
    fleet = "apiVersion: gcluster/fleet/v1\nremove: [bb]\n"
    harness.merge({"bb.yaml": None, "aa.yaml": harness.spec("aa", count=3), "fleet.yaml": fleet})
    assert harness.round(most=1) is Exit.REFUSED
    assert (harness.nodes("aa"), harness.nodes("bb")) == (3, 3)


def test_those_who_holds_the_lock_is_waited_for_and_that_is_no_failure(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa", count=3)})
    with acquire(harness.cluster("aa").store, ["lab"], reason="drain"):
        for _ in range(3):
            assert harness.round() is Exit.LOCKED
    followed = harness.followed("aa")
    assert (followed.phase, followed.failures, followed.next_try) == ("locked", 0, None)
    assert "for drain" in followed.reason
    assert harness.round() is Exit.OK


def test_a_deleted_spec_removes_no_cluster_and_its_price_is_reported(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa"), "bb.yaml": harness.spec("bb")})
    harness.round()
    harness.merge({"bb.yaml": None})
    assert harness.round() is Exit.PENDING
    assert (harness.phases()["bb"], harness.nodes("bb")) == ("orphaned", 3)
    assert "/h" in harness.followed("bb").reason


def test_a_cluster_goes_when_the_fleet_names_it(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa"), "bb.yaml": harness.spec("bb")})
    harness.round()
    fleet = "apiVersion: gcluster/fleet/v1\nremove: [bb]\n"
    harness.merge({"bb.yaml": None, "fleet.yaml": fleet})
    assert harness.round() is Exit.OK
    assert (harness.phases(), harness.nodes("bb")) == ({"aa": "synced"}, 0)


def test_a_cluster_to_be_removed_that_has_a_spec_is_a_mistake(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    harness.merge({"fleet.yaml": "apiVersion: gcluster/fleet/v1\nremove: [aa]\n"})
    assert harness.round() is Exit.SPEC
    assert (harness.nodes("aa"), [d.code for d in harness.record.problem]) == (3, ["GC1133"])


def test_what_a_person_took_down_stays_down_until_another_spec_is_merged(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    down(harness.cluster("aa"), silent, confirm=lambda _: True)
    assert harness.round() is Exit.OK
    assert (harness.phases(), harness.nodes("aa")) == ({"aa": "down"}, 0)
    harness.merge({"aa.yaml": harness.spec("aa", count=3)})
    assert harness.round() is Exit.OK
    assert harness.nodes("aa") == 4


def test_what_a_person_applied_is_brought_back_to_what_is_merged(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    mine = harness.folder / "mine.yaml"
    mine.write_text(harness.spec("aa", count=3))
    up(open_cluster(str(mine)), silent, confirm=lambda _: True)
    assert harness.nodes("aa") == 4
    assert harness.round() is Exit.OK
    assert harness.nodes("aa") == 3


def test_a_paused_cluster_is_left_as_it_is(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    pause(harness.cluster("aa"), "firmware")
    harness.merge({"aa.yaml": harness.spec("aa", count=3)})
    assert harness.round() is Exit.PENDING
    assert (harness.phases(), harness.nodes("aa")) == ({"aa": "paused"}, 3)
    assert harness.followed("aa").reason.endswith(": firmware")
    go_on(harness.cluster("aa"))
    assert harness.round() is Exit.OK
    assert harness.nodes("aa") == 4


def test_a_spec_that_names_another_state_makes_no_second_cluster(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa").replace("/states/aa", "/states/moved")})
    assert harness.round() is Exit.REFUSED
    assert not (harness.folder / "states" / "moved").exists()
    assert harness.followed("aa").diagnostics[0].code == "GC1134"
