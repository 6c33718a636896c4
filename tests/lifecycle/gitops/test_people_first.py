"""A controller fights no person, and removes nothing that nobody named."""

from __future__ import annotations

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.gitops.record import go_on, pause
from gcluster.lifecycle.state import acquire
from gcluster.lifecycle.up.up import up

from .conftest import Rig


def test_removals_count_as_changes(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa"), "bb.yaml": rig.spec("bb")})
    rig.round()
    fleet = "apiVersion: gcluster/fleet/v1\nremove: [bb]\n"
    rig.merge({"bb.yaml": None, "aa.yaml": rig.spec("aa", count=3), "fleet.yaml": fleet})
    assert rig.round(most=1) is Exit.REFUSED
    assert (rig.nodes("aa"), rig.nodes("bb")) == (3, 3)


def test_whoever_holds_the_lock_is_waited_for_and_that_is_no_failure(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa", count=3)})
    with acquire(rig.cluster("aa").store, ["lab"], reason="drain"):
        for _ in range(3):
            assert rig.round() is Exit.LOCKED
    followed = rig.followed("aa")
    assert (followed.phase, followed.failures, followed.next_try) == ("locked", 0, None)
    assert "for drain" in followed.reason
    assert rig.round() is Exit.OK


def test_a_deleted_spec_removes_no_cluster_and_its_price_is_told(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa"), "bb.yaml": rig.spec("bb")})
    rig.round()
    rig.merge({"bb.yaml": None})
    assert rig.round() is Exit.PENDING
    assert (rig.phases()["bb"], rig.nodes("bb")) == ("orphaned", 3)
    assert "/h" in rig.followed("bb").reason


def test_a_cluster_goes_when_the_fleet_says_so_by_name(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa"), "bb.yaml": rig.spec("bb")})
    rig.round()
    fleet = "apiVersion: gcluster/fleet/v1\nremove: [bb]\n"
    rig.merge({"bb.yaml": None, "fleet.yaml": fleet})
    assert rig.round() is Exit.OK
    assert (rig.phases(), rig.nodes("bb")) == ({"aa": "synced"}, 0)


def test_a_cluster_to_be_removed_that_has_a_spec_is_a_mistake(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    rig.merge({"fleet.yaml": "apiVersion: gcluster/fleet/v1\nremove: [aa]\n"})
    assert rig.round() is Exit.SPEC
    assert (rig.nodes("aa"), [d.code for d in rig.record.problem]) == (3, ["GC1133"])


def test_what_a_person_took_down_stays_down_until_another_spec_is_merged(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    down(rig.cluster("aa"), silent, confirm=lambda _: True)
    assert rig.round() is Exit.OK
    assert (rig.phases(), rig.nodes("aa")) == ({"aa": "down"}, 0)
    rig.merge({"aa.yaml": rig.spec("aa", count=3)})
    assert rig.round() is Exit.OK
    assert rig.nodes("aa") == 4


def test_what_a_person_applied_is_brought_back_to_what_is_merged(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    mine = rig.folder / "mine.yaml"
    mine.write_text(rig.spec("aa", count=3))
    up(open_cluster(str(mine)), silent, confirm=lambda _: True)
    assert rig.nodes("aa") == 4
    assert rig.round() is Exit.OK
    assert rig.nodes("aa") == 3


def test_a_paused_cluster_is_left_as_it_is(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    pause(rig.cluster("aa"), "firmware")
    rig.merge({"aa.yaml": rig.spec("aa", count=3)})
    assert rig.round() is Exit.PENDING
    assert (rig.phases(), rig.nodes("aa")) == ({"aa": "paused"}, 3)
    assert rig.followed("aa").reason.endswith(": firmware")
    go_on(rig.cluster("aa"))
    assert rig.round() is Exit.OK
    assert rig.nodes("aa") == 4


def test_a_spec_that_names_another_state_makes_no_second_cluster(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa").replace("/states/aa", "/states/moved")})
    assert rig.round() is Exit.REFUSED
    assert not (rig.folder / "states" / "moved").exists()
    assert rig.followed("aa").diagnostics[0].code == "GC1134"
