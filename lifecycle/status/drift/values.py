"""Drift as values: what differs, where, and since when and by whom where known."""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

import msgspec

from ...cluster.outcome import Exit
from ...state.repair_queue import Repair

Plane: TypeAlias = Literal["cloud", "node", "fabric", "scheduler"]
PLANES: tuple[Plane, ...] = ("cloud", "node", "fabric", "scheduler")

IN_THE_API = frozenset({"object", "label"})
"""Kinds of drift that are fixed in Kubernetes' API and by no step on a host."""


def stamp_of(seconds: float) -> str:
    """Return RFC 3339 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """One item that differs from what `up` left."""

    plane: Plane
    where: str
    """Host, or site."""
    kind: str
    """"stamp", "file", "key", "mode", "block", "package", "mount", "sysctl", "kernel", "unit",
    "link", "user" (a person's account), "entry" (a file that decides who can log in and that no
    role wrote), "account" (not in the spec), "health", "bandwidth", "state", "partition", "object",
    "label", or the kind of a resource of a site."""
    name: str
    """Path, package, setting, resource."""
    was: str = ""
    """"" where the content is not to be shown, or it wasn't there."""
    now: str = ""
    when: str = ""
    """RFC 3339, UTC; "" when it isn't known."""
    who: str = ""
    steps: tuple[str, ...] = ()
    """What `--fix` does again on the host."""
    fixable: bool = False
    """Whether `--fix` fixes it."""
    hint: str = ""
    """What to do about it otherwise."""

    @property
    def is_deviation(self) -> bool:
        """Whether a node is otherwise than its steps left it.

        What its own health check finds is left to the scheduler, which takes the node out.
        """
        return self.plane in {"node", "fabric"} and self.kind not in {"health", "bandwidth"}


class SchedulerFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler's answer comes to."""

    drifts: tuple[Drift, ...] = ()
    problem: str = ""
    """Why it gave no answer; "" when it did."""


class Behind(msgspec.Struct, frozen=True, kw_only=True):
    """A step that has not been done as it is compiled now, without a manual change."""

    host: str
    step: str
    reason: str


class DriftReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster drift`."""

    cluster: str
    drifts: tuple[Drift, ...]
    behind: tuple[Behind, ...] = ()
    """Left by an `up` that was not finished, by a restart, or by another version of gcluster."""
    silent: dict[str, str] = {}
    """Host, site or scheduler -> why it could not be queried."""
    unsealed: dict[str, int] = {}
    """Host -> steps of which nothing was noted when they were done: they can't be compared."""
    repairs: tuple[Repair, ...] = ()
    """Nodes that the cluster runs without: no drift is reported of them."""
    hosts: int = 0
    """Number of checked items."""
    seconds: float = 0.0

    @property
    def exit_code(self) -> Exit:
        """PENDING where something differs; FAILED where something could not be queried."""
        if self.drifts:
            return Exit.PENDING
        return Exit.FAILED if self.silent else Exit.OK
