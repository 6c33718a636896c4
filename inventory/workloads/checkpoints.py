"""How often a workload saves, with the numbers that this follows from, and where."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

import msgspec

from ...schemas.catalog.figures import reliability
from ...schemas.derived.storage import copy_place, daly_interval_s, mtbf_s, waste, write_bytes_per_s
from ...schemas.spec import ClusterSpec, WorkloadCheckpoint
from .place import Place

_ROUND_S = 10


class Interval(msgspec.Struct, frozen=True):
    """Time between two checkpoints."""

    seconds: int
    reason: tuple[str, ...]
    """Lines that say where it is from."""


class WriteSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """What `gcluster smoke --storage` has measured of a storage, in bytes per second."""

    nodes: int
    """That wrote together."""
    alone: float
    """One node."""
    together: float
    """All of `nodes`."""
    time: str
    """When, in UTC."""

    def of(self, nodes: int, nominal: float | None) -> float:
        """Return what a job on so many nodes is taken to write.

        More nodes than were measured may write more: as much in proportion, up to the nominal
        figure; where none is known, no more than was seen.
        """
        if nodes <= self.nodes:
            return min(self.alone * nodes, self.together)
        if nominal is None:
            return self.together
        return max(self.together, min(nominal, self.together * nodes / self.nodes))


_ASSUMED_S = 1800
"""Where nothing is known of the storage: on few GPUs failures are rare, and the time limit,
preemption and own mistakes decide (docs/checkpoint-interval.md)."""


def interval(
    spec: ClusterSpec,
    saved: WorkloadCheckpoint,
    place: Place,
    measured: Mapping[str, WriteSpeed] | None = None,
) -> Interval:
    """Return how often a workload saves.

    For `auto` Daly's estimate of what wastes least, from the time to write one checkpoint and the
    mean time between failures of its GPUs; see `schemas/derived/storage.py` for both sources.

    Args:
        spec: has the storage.
        saved: what the workload says of its checkpoints.
        place: its nodes and GPUs.
        measured: storage -> what it was seen to take, which comes before the spec's figures.
    """
    if not saved.every.is_auto:
        return Interval(max(1, round(saved.every.value)), ("as the workload says",))
    known = reliability()
    observed, per_parameter = known.failures[0], known.checkpoints.bytes_per_parameter
    size = saved.size.value if saved.size else (saved.parameters or 0) * per_parameter
    nominal = write_bytes_per_s(spec.storage[saved.to])
    seen = (measured or {}).get(saved.to)
    speed = nominal if seen is None else seen.of(place.nodes, nominal)
    if not speed or not size:
        return Interval(
            _ASSUMED_S,
            (
                f"assumed: what {saved.to} takes is neither in the spec nor measured yet",
                f"(gcluster smoke {spec.name} --storage), so auto can't be worked out",
            ),
        )
    source = (
        "by the spec"
        if seen is None
        else f"measured on {seen.nodes} node{'s' * (seen.nodes > 1)}, {seen.time}"
    )
    write_s = size / speed
    gpus = place.nodes * max(1, place.gpus)
    mtbf = mtbf_s(gpus, observed.per_gpu_hour)
    best = daly_interval_s(write_s, mtbf)
    seconds = max(_ROUND_S, round(best / _ROUND_S) * _ROUND_S)
    lost = waste(seconds, write_s, mtbf)
    guess = "" if saved.size else f" ({per_parameter:g} bytes a parameter)"
    return Interval(
        seconds,
        (
            (
                f"auto (Young 1974, Daly 2006): {size / 1e9:,.0f} GB{guess} at "
                f"{speed / 1e9:,.2g} GB/s ({source}) take {write_s:,.0f} s to write;"
            ),
            (
                f"{gpus:,} GPUs fail every {mtbf / 3600:,.0f} h at {observed.per_gpu_hour:.3g} "
                f"failures per GPU and hour ({observed.name}, {observed.date});"
            ),
            f"saving every {seconds:,} s then wastes {lost:.2%} of the time, the least there is",
        ),
    )


def folder(name: str, saved: WorkloadCheckpoint, place: Place) -> str:
    """Return the folder of a workload's checkpoints on its nodes."""
    return posixpath.join(place.mounts[saved.to], _path(name, saved))


def _path(name: str, saved: WorkloadCheckpoint) -> str:
    return saved.path or f"checkpoints/{name}"


def copy_folders(name: str, saved: WorkloadCheckpoint, place: Place) -> list[str]:
    """Return the folders that a workload's checkpoints are copied to; they passed GC1219."""
    found = [copy_place(place.node.spec.storage, to) for to in saved.copies]
    return [
        posixpath.join(place.mounts[where[0]], where[1], _path(name, saved))
        for where in found
        if where is not None
    ]
