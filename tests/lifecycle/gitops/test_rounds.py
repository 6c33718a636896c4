"""Clusters follow what is merged: in order, with guards, and never against a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import Reporter
from gcluster.lifecycle.operations.gitops import act
from gcluster.lifecycle.operations.gitops.record import read_followed
from gcluster.lifecycle.state import Journal, acquire
from gcluster.lifecycle.up.phase import UpResult

from .conftest import Harness

BROKEN = "apiVersion: gcluster/v1\nname: broken\nsites: {lab: {provider: simulatd}}\n"


def test_what_is_merged_is_applied(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    assert harness.round() is Exit.OK
    assert (harness.phases(), harness.nodes("aa")) == ({"aa": "synced"}, 3)


def test_the_journal_names_the_commit(harness: Harness) -> None:
    commit = harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    (run,) = Journal(harness.cluster("aa").events).runs()
    assert run.why == f"commit {commit}"
    assert harness.followed("aa").applied == commit


def test_a_second_round_does_nothing_and_prints_nothing(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    before = harness.cluster("aa").events.last
    harness.later(minutes=5)
    assert harness.round() is Exit.OK
    assert (harness.cluster("aa").events.last, harness.answer) == (before, [])


def test_a_changed_spec_is_applied(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa", count=4)})
    assert harness.round() is Exit.OK
    assert harness.nodes("aa") == 5


def test_the_clusters_own_state_shows_it_too(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    followed = read_followed(harness.cluster("aa").store)
    assert followed is not None
    assert (followed.phase, followed.condition.status) == ("synced", "true")


def test_a_bad_merge_changes_nothing_and_reports_it(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    harness.merge({"broken.yaml": BROKEN, "aa.yaml": harness.spec("aa", count=4)})
    assert harness.round() is Exit.SPEC
    assert harness.nodes("aa") == 3
    found = harness.record.problem
    assert {each.file for each in found} == {"specs/broken.yaml"}
    assert [event.what for event in harness.answer] == ["repository"]
    assert harness.answer[0].diagnostics == found


def test_a_fixed_merge_is_applied(harness: Harness) -> None:
    harness.merge({"broken.yaml": BROKEN, "aa.yaml": harness.spec("aa")})
    harness.round()
    harness.merge({"broken.yaml": None})
    assert harness.round() is Exit.OK
    assert (harness.phases(), harness.record.problem) == ({"aa": "synced"}, ())


def test_a_spec_without_a_state_of_its_own_is_no_spec_to_follow(harness: Harness) -> None:
    lines = harness.spec("aa").splitlines(keepends=True)
    harness.merge({"aa.yaml": "".join(line for line in lines if not line.startswith("state:"))})
    assert harness.round() is Exit.SPEC
    assert [each.code for each in harness.record.problem] == ["GC1131"]


def test_a_policy_that_is_not_kept_changes_nothing(harness: Harness) -> None:
    policy = """\
apiVersion: gcluster/policies/v1
policies:
  - name: small
    owner: platform
    description: at most three nodes
    applies_to: pool
    rule: pool.count.max <= 3
"""
    harness.merge({"aa.yaml": harness.spec("aa", count=4), "policies.yaml": policy})
    assert harness.round() is Exit.SPEC
    assert (harness.nodes("aa"), harness.record.clusters) == (0, {})
    assert "small" in harness.record.problem[0].summary + harness.record.problem[0].detail


def test_more_clusters_than_the_limit_are_all_left_alone(harness: Harness) -> None:
    harness.merge({f"{name}.yaml": harness.spec(name) for name in ("aa", "bb", "cc")})
    assert harness.round(most=2) is Exit.REFUSED
    assert [harness.nodes(name) for name in ("aa", "bb", "cc")] == [0, 0, 0]
    assert {each.code for each in harness.followed("aa").diagnostics} == {"GC1132"}
    assert harness.round(most=3) is Exit.OK
    assert [harness.nodes(name) for name in ("aa", "bb", "cc")] == [3, 3, 3]


def test_a_step_waits_for_the_one_before(harness: Harness) -> None:
    fleet = "apiVersion: gcluster/fleet/v1\norder: [zz, aa]\n"
    specs = {
        "zz.yaml": harness.spec("zz"),
        "aa.yaml": harness.spec("aa"),
        "mm.yaml": harness.spec("mm"),
    }
    harness.merge({**specs, "fleet.yaml": fleet})
    harness.round()
    harness.merge({f"{name}.yaml": harness.spec(name, count=3) for name in ("zz", "aa", "mm")})
    with acquire(harness.cluster("zz").store, ["lab"], reason="smoke"):
        assert harness.round() is Exit.LOCKED
    assert harness.phases() == {"zz": "locked", "aa": "waiting", "mm": "waiting"}
    assert (harness.nodes("aa"), harness.nodes("mm")) == (3, 3)
    harness.round()
    assert harness.phases() == dict.fromkeys(("zz", "aa", "mm"), "synced")


def test_clusters_of_a_step_do_not_wait_for_each_other(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa"), "bb.yaml": harness.spec("bb")})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa", count=3), "bb.yaml": harness.spec("bb", count=3)})
    with acquire(harness.cluster("aa").store, ["lab"], reason="smoke"):
        harness.round()
    assert harness.phases() == {"aa": "locked", "bb": "synced"}


def test_a_guard_holds_back_what_that_was_not_named(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa", count=4)})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa", count=1)})
    assert harness.round() is Exit.REFUSED
    assert harness.nodes("aa") == 5
    assert "--allow pool:gpu" in harness.followed("aa").diagnostics[0].hint
    harness.later(hours=2)
    assert harness.round(allow="bb/pool:gpu aa/pool:other") is Exit.REFUSED
    assert harness.round(allow="bb/pool:gpu") is Exit.REFUSED
    assert harness.followed("aa").failures == 2, "in its pause, and nothing of it was allowed"
    assert harness.round(allow="aa/pool:gpu") is Exit.OK, "who allows it doesn't wait for a pause"
    assert harness.nodes("aa") == 2


def test_a_refused_cluster_is_tried_again_after_growing_pauses(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa", count=4)})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa", count=1)})
    pauses = []
    for _ in range(3):
        harness.round()
        followed = harness.followed("aa")
        assert followed.next_try is not None
        pauses.append(followed.next_try - harness.now)
        harness.later(seconds=1)
        harness.round()
        assert harness.followed("aa").failures == len(pauses)  # too early: not tried
        harness.now = followed.next_try
    assert pauses == [timedelta(seconds=s) for s in (30, 60, 120)]


def test_another_spec_is_tried_at_once(harness: Harness) -> None:
    harness.merge({"aa.yaml": harness.spec("aa", count=4)})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa", count=1)})
    harness.round()
    harness.merge({"aa.yaml": harness.spec("aa", count=3)})
    assert harness.round() is Exit.OK
    assert harness.followed("aa").failures == 0


def test_a_repository_that_is_away_changes_nothing_and_is_polled_with_backoff(
    harness: Harness,
) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})
    harness.round()
    harness.server.answers = False
    assert harness.round() is Exit.FAILED
    requested = len(harness.server.calls)
    assert harness.round() is Exit.FAILED
    assert len(harness.server.calls) == requested
    assert [each.code for each in harness.record.problem] == ["GC1100"]
    assert (harness.nodes("aa"), harness.phases()) == (3, {"aa": "synced"})
    harness.server.answers = True
    harness.later(minutes=1)
    assert harness.round() is Exit.OK
    assert (harness.record.failures, harness.record.problem) == (0, ())


def test_a_run_that_was_killed_is_gone_on_with(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.merge({"aa.yaml": harness.spec("aa")})

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("gcluster.lifecycle.up.apply.converge_nodes", die)
        with pytest.raises(Killed):
            harness.round()
    assert harness.round() is Exit.OK
    assert harness.nodes("aa") == 3


def test_one_clusters_trouble_ends_no_others_round(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = act.up

    def stumble(cluster: Cluster, report: Reporter, **options: Any) -> UpResult:
        if cluster.name == "aa":
            raise ZeroDivisionError
        return real(cluster, report, **options)

    monkeypatch.setattr(act, "up", stumble)
    harness.merge({"aa.yaml": harness.spec("aa"), "bb.yaml": harness.spec("bb")})
    assert harness.round() is Exit.FAILED
    assert harness.phases() == {"aa": "failed", "bb": "synced"}
    assert harness.followed("aa").diagnostics[0].code == "GC949"
