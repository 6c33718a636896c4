"""Maintenance windows as Slurm's reservations: the desired ones, and the commands to reach them.

A reservation with MAINT and IGNORE_JOBS may be made over nodes that have jobs: Slurm starts no job
that would still run when it begins, and ends none. Those that gcluster created have its prefix;
other reservations are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import msgspec

from ..schemas.derived.hostlist import expand, fold
from ..schemas.spec import ClusterSpec, SlurmScheduler
from .hosts import Host

PREFIX = "gcluster-"
"""Of the names of reservations that gcluster makes; the spec's name of the window follows."""

Repeat: TypeAlias = Literal["", "day", "week"]
_REPEAT_FLAGS: dict[Repeat, tuple[str, ...]] = {"": (), "day": ("DAILY",), "week": ("WEEKLY",)}
_PERIOD_S: dict[Repeat, int] = {"day": 86_400, "week": 7 * 86_400}
_FIELD = re.compile(r"(\w+)=(\S*)")


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """A window in which no job runs on some nodes."""

    name: str
    start: int
    """Seconds since 1970, UTC; of a window that repeats the next one."""
    minutes: int
    nodes: str
    """Host range, folded and in host order."""
    every: Repeat = ""

    @property
    def end(self) -> int:
        """When it is over, in seconds since 1970."""
        return self.start + 60 * self.minutes

    @property
    def settings(self) -> tuple[str, ...]:
        """What it is, as scontrol takes it."""
        flags = ("MAINT", "IGNORE_JOBS", *_REPEAT_FLAGS[self.every])
        return (
            f"StartTime={_local(self.start)}",
            f"Duration={self.minutes}",
            f"Nodes={self.nodes}",
            f"Flags={','.join(flags)}",
            "Users=root",
        )

    @property
    def words(self) -> str:
        """When and where, for a plan."""
        again = f", every {self.every}" if self.every else ""
        when = datetime.fromtimestamp(self.start, UTC).strftime("%Y-%m-%dT%H:%MZ")
        return f"{when} for {self.minutes:,} minutes{again} on {self.nodes}"


class ReservationChange(msgspec.Struct, frozen=True, kw_only=True):
    """One scontrol command; they need UTC as their time zone (`ENVIRONMENT`)."""

    command: tuple[str, ...]
    words: str
    exact: str
    """What it creates, without the time: the command of a window that has begun has the minute."""


ENVIRONMENT = {"TZ": "UTC"}
"""For scontrol: it reads and prints times in its caller's time zone."""


def show_command() -> tuple[str, ...]:
    """Return the command whose output `read_reservations` takes."""
    return ("scontrol", "--oneliner", "show", "reservation")


def desired_reservations(
    spec: ClusterSpec, compute: Mapping[str, Iterable[Host]], now: int
) -> tuple[Reservation, ...]:
    """Return the reservations for a spec's windows, by name.

    A window that is over is none; one that repeats starts next at the first time that isn't over.

    Args:
        spec: a spec that passed its checks.
        compute: compute pool -> its hosts.
        now: seconds since 1970, UTC.
    """
    slurm = spec.scheduler
    found = []
    for name, window in slurm.maintenance.items() if isinstance(slurm, SlurmScheduler) else ():
        length = int(window.duration.value)
        every: Repeat = window.every or ""
        start = int(datetime.fromisoformat(window.start).timestamp())
        if every and start + length <= now:
            periods = (now - start - length) // _PERIOD_S[every] + 1
            start += periods * _PERIOD_S[every]
        hosts = [host.name for pool in window.pools or compute for host in compute[pool]]
        if start + length <= now or not hosts:
            continue
        found.append(
            Reservation(
                name=f"{PREFIX}{name}",
                start=start,
                minutes=max(1, -(-length // 60)),
                nodes=fold(hosts),
                every=every,
            )
        )
    return tuple(sorted(found, key=lambda one: one.name))


def reconcile_reservations(
    desired: Iterable[Reservation], actual: Iterable[Reservation], now: int
) -> tuple[ReservationChange, ...]:
    """Return the changes that make gcluster's reservations the desired ones, by name.

    One that differs is recreated: a window that has begun can't be changed in all its parts. One
    that should have begun already begins now, since scontrol takes no time that has passed.

    Args:
        desired: of `desired_reservations` at the same time.
        actual: of `read_reservations`.
        now: seconds since 1970, UTC.
    """
    wanted = {one.name: one for one in desired}
    there = {one.name: one for one in actual if one.name.startswith(PREFIX)}
    changes = []
    for name in sorted({*wanted, *there}):
        if name in wanted and name in there and _same_window(wanted[name], there[name], now):
            continue
        if name in there:
            why = "of " if name in wanted else ", which the spec has no more: "
            changes.append(
                ReservationChange(
                    command=("scontrol", "delete", f"ReservationName={name}"),
                    words=f"remove maintenance {name}{why}{there[name].words}",
                    exact=f"delete {name}",
                )
            )
        if name in wanted:
            changes.append(
                ReservationChange(
                    command=(
                        "scontrol",
                        "create",
                        "reservation",
                        f"ReservationName={name}",
                        *_from_now(wanted[name], now).settings,
                    ),
                    words=f"reserve maintenance {name}: {wanted[name].words}",
                    exact=f"create {name} {' '.join(wanted[name].settings)}",
                )
            )
    return tuple(changes)


def _same_window(one: Reservation, other: Reservation, now: int) -> bool:
    """Whether two are the same window from now on: a start that has passed is one like another."""
    starts = one.start == other.start or max(one.start, other.start) <= now
    return starts and (one.end, one.nodes, one.every) == (other.end, other.nodes, other.every)


def _from_now(one: Reservation, now: int) -> Reservation:
    """Return what is left of a window, to the minute."""
    begun = now // 60 * 60
    if one.start >= begun:
        return one
    return msgspec.structs.replace(one, start=begun, minutes=(one.end - begun) // 60)


def read_reservations(text: str) -> tuple[Reservation, ...]:
    """Return the reservations of `scontrol --oneliner show reservation` in UTC, by name.

    What has no nodes or no end is no window of gcluster's and is left out.

    Raises:
        ValueError: a time or a node range that can't be read.
    """
    found = []
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        if not {"ReservationName", "StartTime", "EndTime", "Nodes"} <= fields.keys():
            continue
        if not fields["ReservationName"].startswith(PREFIX):
            continue
        flags = fields.get("Flags", "").split(",")
        start, end = _seconds(fields["StartTime"]), _seconds(fields["EndTime"])
        every: Repeat = "day" if "DAILY" in flags else "week" if "WEEKLY" in flags else ""
        found.append(
            Reservation(
                name=fields["ReservationName"],
                start=start,
                minutes=(end - start) // 60,
                nodes=fold(expand(fields["Nodes"])),
                every=every,
            )
        )
    return tuple(sorted(found, key=lambda one: one.name))


def _local(seconds: int) -> str:
    """Return a time as scontrol takes it where TZ is UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
