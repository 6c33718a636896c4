"""Maintenance windows become reservations, and only what differs is recreated."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.inventory.reservations import (
    Reservation,
    desired_reservations,
    read_reservations,
    reconcile_reservations,
)
from gcluster.schemas.load import load_text

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  a: {site: here, machine: sim.h100x8, count: 2}
  b: {site: here, machine: sim.h100x8, count: 1}
scheduler:
  type: slurm
  maintenance:
    firmware: {start: "2027-01-15T06:00Z", duration: 8h}
    weekly: {start: "2026-12-01T20:00Z", duration: 90m, pools: [b], every: week}
"""
# As Slurm 24.11.5 prints it.
_SHOWN = (
    "ReservationName=gcluster-firmware StartTime=2027-01-15T06:00:00 EndTime=2027-01-15T14:00:00 "
    "Duration=08:00:00 Nodes=a[001-002],b001 NodeCnt=3 CoreCnt=288 Features=(null) "
    "PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=576 Users=root "
    "Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) "
    "MaxStartDelay=(null)\n"
)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def desired(now: str) -> dict[str, Reservation]:
    loaded = load_text(_SPEC)
    assert loaded.spec is not None, loaded.diagnostics
    hosts = {
        pool: [
            Host(
                name=f"{pool}{number:03}",
                site="here",
                pool=pool,
                role="compute",
                machine="sim.h100x8",
                ssh=SshTarget(user="root"),
            )
            for number in range(1, 3 if pool == "a" else 2)
        ]
        for pool in ("a", "b")
    }
    found = desired_reservations(loaded.spec, hosts, at(now))
    return {one.name: one for one in found}


def test_a_window_is_for_all_compute_pools_unless_it_names_some() -> None:
    windows = desired("2026-11-22T00:00")
    assert windows["gcluster-firmware"].nodes == "a[001-002],b001"
    assert windows["gcluster-weekly"].nodes == "b001"


def test_a_window_that_is_over_is_none_and_one_that_repeats_comes_again() -> None:
    windows = desired("2027-01-15T14:00")
    assert set(windows) == {"gcluster-weekly"}
    assert windows["gcluster-weekly"].start == at("2027-01-19T20:00")


def test_a_window_that_continues_is_still_this_one() -> None:
    windows = desired("2026-12-08T21:29")
    assert windows["gcluster-weekly"].start == at("2026-12-08T20:00")


def test_what_slurm_prints_is_the_window_that_was_requested() -> None:
    window = desired("2026-11-22T00:00")["gcluster-firmware"]
    assert read_reservations(_SHOWN) == (window,)
    assert reconcile_reservations([window], read_reservations(_SHOWN), at("2026-11-22")) == ()


def test_a_missing_window_is_reserved_with_scontrol_s_message() -> None:
    window = desired("2026-11-22T00:00")["gcluster-weekly"]
    (change,) = reconcile_reservations([window], [], at("2026-11-22"))
    assert change.command == (
        "scontrol", "create", "reservation", "ReservationName=gcluster-weekly",
        "StartTime=2026-12-01T20:00:00", "Duration=90", "Nodes=b001",
        "Flags=MAINT,IGNORE_JOBS,WEEKLY", "Users=root",
    )  # fmt: skip
    assert change.words == (
        "reserve maintenance gcluster-weekly: 2026-12-01T20:00Z for 90 minutes, every week on b001"
    )


def test_a_window_that_left_the_spec_goes_and_others_reservations_stay() -> None:
    shown = _SHOWN + _SHOWN.replace("gcluster-firmware", "of-the-lab")
    (change,) = reconcile_reservations([], read_reservations(shown), at("2026-11-22"))
    assert change.command == ("scontrol", "delete", "ReservationName=gcluster-firmware")


def test_a_window_that_should_have_begun_begins_now() -> None:
    window = desired("2026-11-22T00:00")["gcluster-firmware"]
    now = at("2027-01-15T07:30:20")
    (change,) = reconcile_reservations([window], [], now)
    assert "StartTime=2027-01-15T07:30:00" in change.command
    assert "Duration=390" in change.command


_windows = st.builds(
    Reservation,
    name=st.sampled_from(("gcluster-a", "gcluster-b")),
    start=st.integers(0, 10**7).map(lambda minutes: 60 * minutes),
    minutes=st.integers(1, 10_000),
    nodes=st.sampled_from(("n1", "n[1-3]")),
    every=st.sampled_from(("", "day", "week")),
)
_some = st.lists(_windows, unique_by=lambda one: one.name)


@given(wanted=_some, there=_some, now=st.integers(0, 6 * 10**8))
def test_after_the_changes_there_is_nothing_to_change(
    wanted: list[Reservation], there: list[Reservation], now: int
) -> None:
    wanted = [one for one in wanted if one.end > now + 60]
    found = {one.name: one for one in there}
    for change in reconcile_reservations(wanted, there, now):
        name = next(w for w in change.command if w.startswith("ReservationName=")).split("=")[1]
        if change.command[1] == "delete":
            del found[name]
            continue
        fields = dict(word.split("=", 1) for word in change.command[4:])
        answer = next(one for one in wanted if one.name == name)
        found[name] = msgspec.structs.replace(
            answer, start=at(fields["StartTime"]), minutes=int(fields["Duration"])
        )
    assert {*found} == {one.name for one in wanted}
    assert reconcile_reservations(wanted, found.values(), now) == ()
