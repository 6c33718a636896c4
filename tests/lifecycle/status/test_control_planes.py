"""Certificates that run out and snapshots that are not made are reported before they are missed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.lifecycle.status.control_planes import (
    Keeping,
    Watched,
    judged,
    read_keeping,
    watch_control_planes,
)

NOW = 1_800_000_000.0
HOUR = 3600.0
WELL = Keeping(
    host="head",
    days={"/etc/kubernetes/pki/apiserver.crt": 364, "/etc/kubernetes/admin.conf": 300},
    snapshot=NOW - 2 * HOUR,
    timer="active",
    due=NOW - 2 * HOUR - 60,
    now=NOW,
    size=2e9,
    quota=8e9,
)


def status(watched: Watched) -> dict[str, str]:
    return {c.name: c.status for c in watched.conditions}


def test_a_control_plane_that_is_kept_well_reports_how_long_and_how_old() -> None:
    watched = judged("demo", [WELL])
    assert [(c.name, c.status, c.reason) for c in watched.conditions] == [
        ("CertificatesHold", "true", "300 days"),
        ("EtcdSnapshots", "true", "the newest is 2 h old"),
        ("EtcdHasRoom", "true", "25% of its quota"),
    ]
    assert watched.causes == ()


def test_a_certificate_that_ends_soon_is_named_with_what_renews_it() -> None:
    soon = msgspec.structs.replace(WELL, days={**WELL.days, "/etc/kubernetes/admin.conf": 29})
    watched = judged("demo", [WELL, soon])
    assert status(watched) == {
        "CertificatesHold": "false",
        "EtcdSnapshots": "true",
        "EtcdHasRoom": "true",
    }
    (cause,) = watched.causes
    assert "/etc/kubernetes/admin.conf holds for 29 days" in cause.summary
    assert "--renew" in cause.next_step


def test_a_control_plane_that_can_not_report_its_certificates_is_in_danger() -> None:
    assert status(judged("demo", [msgspec.structs.replace(WELL, days={})])) == {
        "CertificatesHold": "false",
        "EtcdSnapshots": "true",
        "EtcdHasRoom": "true",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"timer": "failed"}, "its timer is failed"),
        ({"timer": ""}, "its timer is gone"),
        ({"due": NOW - HOUR}, "the last one failed, the newest snapshot: 2 h old"),
        ({"due": NOW - HOUR, "snapshot": None}, "none was made"),
    ],
)
def test_a_snapshot_that_was_due_and_is_not_there_is_reported(
    changes: dict[str, object], message: str
) -> None:
    (cause,) = judged("demo", [msgspec.structs.replace(WELL, **changes)]).causes
    assert message in cause.summary


def test_an_etcd_that_fills_up_is_reported_before_it_takes_no_more_writes() -> None:
    full = msgspec.structs.replace(WELL, size=7e9)
    watched = judged("demo", [WELL, full])
    assert status(watched)["EtcdHasRoom"] == "false"
    (cause,) = watched.causes
    assert "88% of its quota" in cause.summary
    assert "kubernetes-defragment.sh" in cause.next_step
    silent = msgspec.structs.replace(WELL, size=None, quota=None)
    assert status(judged("demo", [silent]))["EtcdHasRoom"] == "unknown"


@pytest.mark.parametrize("changes", [{"due": NOW - 60}, {"due": None, "snapshot": None}])
def test_one_that_is_being_made_or_not_due_yet_is_not_missed(changes: dict[str, object]) -> None:
    assert judged("demo", [msgspec.structs.replace(WELL, **changes)]).causes == ()


def test_every_control_plane_is_queried_by_one_exec(tmp_path: Path) -> None:
    shell = LocalShell(tmp_path / "bin")
    shell.has("id", "echo 1000")
    shell.has("sudo", 'echo "$*" | grep -q certificates && echo \'{"/a.crt": 12}\'; true')
    shell.has("systemctl", '[ "$1" = show ] && echo n/a || echo active')
    watched = watch_control_planes("demo", shell, [HEAD])
    assert status(watched)["CertificatesHold"] == "false"
    assert "/a.crt holds for 12 days" in watched.conditions[0].reason


def test_one_that_is_off_reports_nothing_here(tmp_path: Path) -> None:
    assert watch_control_planes("demo", DownShell(tmp_path), [HEAD]) == Watched()


def test_an_answer_that_was_cut_short_counts_as_none() -> None:
    read = read_keeping("head", "=== certificates\n{\n=== timer\nactive\n")
    assert (read.days, read.snapshot, read.timer, read.due) == ({}, None, "active", None)
