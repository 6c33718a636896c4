"""How long an AllReduce may take before it is given up."""

from __future__ import annotations

import msgspec

from gcluster.lifecycle.smoke.launch import Launch
from gcluster.lifecycle.smoke.launching.job import time_limit_s
from gcluster.lifecycle.smoke.launching.slurm import command

SMALL = Launch(
    job="j",
    label="j",
    partition="p",
    nodes=("gpu1", "gpu2"),
    min_bytes=8,
    max_bytes=16 * 2**20,
    iterations=5,
    gpus=8,
)
LARGE = msgspec.structs.replace(SMALL, max_bytes=16 * 2**30)


def test_it_grows_with_message_iterations_and_nodes() -> None:
    small = time_limit_s(SMALL, None, 300)
    assert 300 < small < 310
    assert time_limit_s(LARGE, None, 300) > 600
    more = msgspec.structs.replace(LARGE, iterations=100)
    assert time_limit_s(more, None, 300) > 3 * time_limit_s(LARGE, None, 300)
    wide = msgspec.structs.replace(SMALL, nodes=tuple(f"gpu{i}" for i in range(1000)))
    assert time_limit_s(wide, None, 300) > small + 1900


def test_a_cluster_whose_floor_is_known_is_not_waited_for_as_if_it_were_slow() -> None:
    assert time_limit_s(LARGE, 320, 300) < 400


def test_slurm_is_reported_the_longer_of_the_two() -> None:
    assert "--time=15 " in command(SMALL, 300)
    assert "--time=60 " in command(SMALL, 3600)
