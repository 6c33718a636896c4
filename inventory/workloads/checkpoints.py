"""How often a workload saves, with the numbers that this follows from, and where."""

from __future__ import annotations

import posixpath

import msgspec

from ...schemas.catalog.figures import reliability
from ...schemas.derived.storage import daly_interval_s, mtbf_s, waste, write_bytes_per_s
from ...schemas.spec import ClusterSpec, WorkloadCheckpoint
from .place import Place

_ROUND_S = 10


class Interval(msgspec.Struct, frozen=True):
    """Time between two checkpoints."""

    seconds: int
    reason: tuple[str, ...]
    """Lines that say where it is from."""


def interval(spec: ClusterSpec, saved: WorkloadCheckpoint, place: Place) -> Interval:
    """Return how often a workload saves.

    For `auto` Daly's estimate of what wastes least, from the time to write one checkpoint and the
    mean time between failures of its GPUs; see `schemas/derived/storage.py` for both sources.
    """
    if not saved.every.is_auto:
        return Interval(max(1, round(saved.every.value)), ("as the workload says",))
    known = reliability()
    observed, per_parameter = known.failures[0], known.checkpoints.bytes_per_parameter
    size = saved.size.value if saved.size else (saved.parameters or 0) * per_parameter
    speed = write_bytes_per_s(spec.storage[saved.to])
    assert size, speed  # noqa: S101  # GC1209
    write_s = size / (speed or 1)
    gpus = place.nodes * max(1, place.gpus)
    mtbf = mtbf_s(gpus, observed.per_gpu_hour)
    best = daly_interval_s(write_s, mtbf)
    seconds = max(1, round(best / _ROUND_S) * _ROUND_S)
    lost = waste(seconds, write_s, mtbf)
    guess = "" if saved.size else f" ({per_parameter:g} bytes a parameter)"
    return Interval(
        seconds,
        (
            (
                f"auto (Young 1974, Daly 2006): {size / 1e9:,.0f} GB{guess} at "
                f"{(speed or 0) / 1e9:,.1f} GB/s take {write_s:,.0f} s to write;"
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
    return posixpath.join(place.mounts[saved.to], saved.path or f"checkpoints/{name}")
