"""Clusters follow what is merged: in order, with guards, and never against a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import Reporter
from gcluster.lifecycle.gitops import act
from gcluster.lifecycle.gitops.record import read_followed
from gcluster.lifecycle.state import Journal, acquire
from gcluster.lifecycle.up.phase import UpResult

from .conftest import Rig

BROKEN = "apiVersion: gcluster/v1\nname: broken\nsites: {lab: {provider: simulatd}}\n"


def test_what_is_merged_is_applied(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    assert rig.round() is Exit.OK
    assert (rig.phases(), rig.nodes("aa")) == ({"aa": "synced"}, 3)


def test_the_journal_names_the_commit(rig: Rig) -> None:
    commit = rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    (run,) = Journal(rig.cluster("aa").events).runs()
    assert run.why == f"commit {commit}"
    assert rig.followed("aa").applied == commit


def test_a_second_round_does_nothing_and_says_nothing(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    before = rig.cluster("aa").events.last
    rig.later(minutes=5)
    assert rig.round() is Exit.OK
    assert (rig.cluster("aa").events.last, rig.told) == (before, [])


def test_a_changed_spec_is_applied(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa", count=4)})
    assert rig.round() is Exit.OK
    assert rig.nodes("aa") == 5


def test_the_clusters_own_state_tells_it_too(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    followed = read_followed(rig.cluster("aa").store)
    assert followed is not None
    assert (followed.phase, followed.condition.status) == ("synced", "true")


def test_a_bad_merge_changes_nothing_and_says_so(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    rig.merge({"broken.yaml": BROKEN, "aa.yaml": rig.spec("aa", count=4)})
    assert rig.round() is Exit.SPEC
    assert rig.nodes("aa") == 3
    found = rig.record.problem
    assert {each.file for each in found} == {"specs/broken.yaml"}
    assert [event.what for event in rig.told] == ["repository"]
    assert rig.told[0].diagnostics == found


def test_a_fixed_merge_is_applied(rig: Rig) -> None:
    rig.merge({"broken.yaml": BROKEN, "aa.yaml": rig.spec("aa")})
    rig.round()
    rig.merge({"broken.yaml": None})
    assert rig.round() is Exit.OK
    assert (rig.phases(), rig.record.problem) == ({"aa": "synced"}, ())


def test_a_spec_without_a_state_of_its_own_is_no_spec_to_follow(rig: Rig) -> None:
    lines = rig.spec("aa").splitlines(keepends=True)
    rig.merge({"aa.yaml": "".join(line for line in lines if not line.startswith("state:"))})
    assert rig.round() is Exit.SPEC
    assert [each.code for each in rig.record.problem] == ["GC1131"]


def test_a_policy_that_is_not_kept_changes_nothing(rig: Rig) -> None:
    policy = """\
apiVersion: gcluster/policies/v1
policies:
  - name: small
    owner: platform
    description: at most three nodes
    applies_to: pool
    rule: pool.count.max <= 3
"""
    rig.merge({"aa.yaml": rig.spec("aa", count=4), "policies.yaml": policy})
    assert rig.round() is Exit.SPEC
    assert (rig.nodes("aa"), rig.record.clusters) == (0, {})
    assert "small" in rig.record.problem[0].summary + rig.record.problem[0].detail


def test_more_clusters_than_the_limit_are_all_left_alone(rig: Rig) -> None:
    rig.merge({f"{name}.yaml": rig.spec(name) for name in ("aa", "bb", "cc")})
    assert rig.round(most=2) is Exit.REFUSED
    assert [rig.nodes(name) for name in ("aa", "bb", "cc")] == [0, 0, 0]
    assert {each.code for each in rig.followed("aa").diagnostics} == {"GC1132"}
    assert rig.round(most=3) is Exit.OK
    assert [rig.nodes(name) for name in ("aa", "bb", "cc")] == [3, 3, 3]


def test_a_step_waits_for_the_one_before(rig: Rig) -> None:
    fleet = "apiVersion: gcluster/fleet/v1\norder: [zz, aa]\n"
    specs = {"zz.yaml": rig.spec("zz"), "aa.yaml": rig.spec("aa"), "mm.yaml": rig.spec("mm")}
    rig.merge({**specs, "fleet.yaml": fleet})
    rig.round()
    rig.merge({f"{name}.yaml": rig.spec(name, count=3) for name in ("zz", "aa", "mm")})
    with acquire(rig.cluster("zz").store, ["lab"], reason="smoke"):
        assert rig.round() is Exit.LOCKED
    assert rig.phases() == {"zz": "locked", "aa": "waiting", "mm": "waiting"}
    assert (rig.nodes("aa"), rig.nodes("mm")) == (3, 3)
    rig.round()
    assert rig.phases() == dict.fromkeys(("zz", "aa", "mm"), "synced")


def test_clusters_of_a_step_do_not_wait_for_each_other(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa"), "bb.yaml": rig.spec("bb")})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa", count=3), "bb.yaml": rig.spec("bb", count=3)})
    with acquire(rig.cluster("aa").store, ["lab"], reason="smoke"):
        rig.round()
    assert rig.phases() == {"aa": "locked", "bb": "synced"}


def test_a_guard_holds_back_what_nobody_named(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa", count=4)})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa", count=1)})
    assert rig.round() is Exit.REFUSED
    assert rig.nodes("aa") == 5
    assert "--allow pool:gpu" in rig.followed("aa").diagnostics[0].hint
    rig.later(hours=2)
    assert rig.round(allow="bb/pool:gpu aa/pool:other") is Exit.REFUSED
    assert rig.round(allow="bb/pool:gpu") is Exit.REFUSED
    assert rig.followed("aa").failures == 2, "in its pause, and nothing of it was allowed"
    assert rig.round(allow="aa/pool:gpu") is Exit.OK, "who allows it doesn't wait for a pause"
    assert rig.nodes("aa") == 2


def test_a_refused_cluster_is_tried_again_after_growing_pauses(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa", count=4)})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa", count=1)})
    pauses = []
    for _ in range(3):
        rig.round()
        followed = rig.followed("aa")
        assert followed.next_try is not None
        pauses.append(followed.next_try - rig.now)
        rig.later(seconds=1)
        rig.round()
        assert rig.followed("aa").failures == len(pauses)  # too early: not tried
        rig.now = followed.next_try
    assert pauses == [timedelta(seconds=s) for s in (30, 60, 120)]


def test_another_spec_is_tried_at_once(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa", count=4)})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa", count=1)})
    rig.round()
    rig.merge({"aa.yaml": rig.spec("aa", count=3)})
    assert rig.round() is Exit.OK
    assert rig.followed("aa").failures == 0


def test_a_repository_that_is_away_changes_nothing_and_is_asked_less_and_less(rig: Rig) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})
    rig.round()
    rig.server.answers = False
    assert rig.round() is Exit.FAILED
    asked = len(rig.server.asked)
    assert rig.round() is Exit.FAILED
    assert len(rig.server.asked) == asked
    assert [each.code for each in rig.record.problem] == ["GC1100"]
    assert (rig.nodes("aa"), rig.phases()) == (3, {"aa": "synced"})
    rig.server.answers = True
    rig.later(minutes=1)
    assert rig.round() is Exit.OK
    assert (rig.record.failures, rig.record.problem) == (0, ())


def test_a_run_that_was_killed_is_gone_on_with(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.merge({"aa.yaml": rig.spec("aa")})

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("gcluster.lifecycle.up.apply.converge_nodes", die)
        with pytest.raises(Killed):
            rig.round()
    assert rig.round() is Exit.OK
    assert rig.nodes("aa") == 3


def test_one_clusters_trouble_ends_no_others_round(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = act.up

    def stumble(cluster: Cluster, report: Reporter, **options: Any) -> UpResult:
        if cluster.name == "aa":
            raise ZeroDivisionError
        return real(cluster, report, **options)

    monkeypatch.setattr(act, "up", stumble)
    rig.merge({"aa.yaml": rig.spec("aa"), "bb.yaml": rig.spec("bb")})
    assert rig.round() is Exit.FAILED
    assert rig.phases() == {"aa": "failed", "bb": "synced"}
    assert rig.followed("aa").diagnostics[0].code == "GC949"
