"""The role staging: storage that jobs' nodes fill from another one before a job, or on request."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.derived.storage import data_locations, staged
from ....schemas.spec import SlurmScheduler
from ..node import NodeFacts
from ..roles import role_compiler
from ..slurm.scheduling import spill_partitions, written_partitions
from ..steps import Json, Phase, Stage, Step


@role_compiler("staging")
def staging_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role staging; none where a pool fills no storage from another.

    Containers mount no storage and are left out.
    """
    copies = staged(node.spec, node.name) if node.is_machine else ()
    if not copies:
        return []
    variables: dict[str, Json] = {
        "staging_copies": [
            {
                "name": each.storage,
                "source": each.source,
                "destination": each.destination,
                "within_s": int(each.within),
                **({"own": True} if each.own else {}),
            }
            for each in copies
        ],
        "staging_before_jobs": {
            partition: {"needs": list(needs), "copies": copies}
            for partition, needs, copies in _before_jobs(node)
        },
    }
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", {}),
        ("configure", variables),
        ("verify", variables),
    )
    return [
        Step(stage=Stage.STORAGE, role="staging", phase=phase, variables=given, spares_jobs=True)
        for phase, given in phases
    ]


def _before_jobs(node: NodeFacts) -> Iterator[tuple[str, tuple[str, ...], dict[str, Json]]]:
    """Yield the partitions of a pool, what their jobs need, and which copies hold it.

    A job may name other data than its partition does (`--comment data=...`), so all go there. Only
    of jobs that spilled here it is known what they need when they don't say it.
    """
    pool, spec = node.name, node.spec
    spilled = spill_partitions(spec).get(pool)
    can = {each.storage for each in staged(spec, pool)}
    copies: dict[str, Json] = {
        word: there.storage
        for word, there in data_locations(spec, pool).items()
        if there.storage in can
    }
    needs = {
        word
        for partition_spec in spec.scheduler.partitions.values()
        if partition_spec.spill is not None and partition_spec.spill.to == pool
        for word in partition_spec.spill.only.data
    }
    if not copies or not isinstance(spec.scheduler, SlurmScheduler):
        return
    for name, partition in written_partitions(spec).items():
        if pool in partition.pools:
            yield name, tuple(sorted(needs)) if name == spilled else (), copies
