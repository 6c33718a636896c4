"""The batch scheduler and how its partitions map to pools."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from gcluster.schemas.spec.noun import Name, Noun
from gcluster.schemas.spec.units import Duration


class Partition(Noun, frozen=True):
    """A Slurm partition: pools that jobs are sent to together."""

    pools: Annotated[list[Name], Meta(min_length=1, description="Compute pools in this partition.")]
    default: Annotated[
        bool, Meta(description="Jobs that name no partition go here; one partition at most.")
    ] = False
    max_time: Annotated[
        Duration | None, Meta(description="Longest run time of a job; default unlimited.")
    ] = None


class SlurmScheduler(Noun, frozen=True, tag_field="type", tag="slurm"):
    """Slurm, configless: nodes fetch their configuration from the controller."""

    partitions: Annotated[
        dict[Name, Partition],
        Meta(description='Default: one partition "main" with every compute pool.'),
    ] = field(default_factory=dict)
