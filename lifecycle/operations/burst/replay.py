"""A trace and a spec, from their files to a replay."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ....schemas.catalog import Catalog, load_catalog
from ....schemas.diagnostics import closest
from ....schemas.load import load
from ....schemas.spec import ClusterSpec
from ...cluster.cluster import SpecError
from ...cluster.outcome import Exit, failure
from .policy import spilling_partitions
from .simulate.report import Simulation, simulate
from .simulate.scenario import Assumed, scenario_of
from .simulate.swf import read_swf


class SpilledFrom(NamedTuple):
    """A checked spec, and the selected partition."""

    spec: ClusterSpec
    catalog: Catalog
    partition: str


def replay(spec: Path, trace: Path, partition: str | None, assumed: Assumed) -> Simulation:
    """Replay a trace on a partition of a spec.

    Args:
        spec: path of the spec.
        trace: path of the trace, in the Standard Workload Format.
        partition: its name; None: the one whose jobs spill.
        assumed: values that neither gives.

    Raises:
        LifecycleError: one of the two is wrong (exit code 2), or no partition matches (64).
    """
    found = open_partition(spec, partition)
    read = read_swf(trace)
    scenario = scenario_of(found.spec, found.catalog, read, found.partition, assumed)
    return simulate(scenario, str(trace), read.left_out)


def open_partition(path: Path, partition: str | None) -> SpilledFrom:
    """Load a spec and find the selected partition.

    Raises:
        LifecycleError: the spec is wrong (exit code 2), or which partition is unclear (64).
    """
    loaded = load(path)
    if loaded.spec is None:
        raise SpecError(loaded)
    catalog = load_catalog(loaded.catalogs)
    known = loaded.spec.scheduler.partitions
    if partition is not None:
        if partition not in known:
            near = closest(partition, known)
            has = f"the spec has {', '.join(known) or 'none'}"
            hint = f'did you mean "{near}"?' if near else has
            raise failure(
                "GC941", f'no partition is called "{partition}"', hint=hint, exit_code=Exit.USAGE
            )
        return SpilledFrom(loaded.spec, catalog, partition)
    spilling = spilling_partitions(loaded.spec)
    if len(spilling) != 1:
        which = f"jobs of {', '.join(spilling)} spill" if spilling else "no partition's jobs spill"
        raise failure(
            "GC941",
            f"{which}: say which partition is meant",
            hint="--partition NAME",
            exit_code=Exit.USAGE,
        )
    return SpilledFrom(loaded.spec, catalog, spilling[0])
