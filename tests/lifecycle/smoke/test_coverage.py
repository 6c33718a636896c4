"""A certificate is of a network and of a pool: one idle node proves neither."""

from __future__ import annotations

import pytest

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.smoke.run import lacking
from gcluster.schemas.load import load_text

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 6, quorum: 4}
  cpu: {site: here, machine: sim.h100x1, count: 2}
scheduler: {type: slurm}
"""


def hosts(pool: str, count: int) -> tuple[Host, ...]:
    return tuple(
        Host(
            name=f"{pool}{number:03d}",
            site="here",
            pool=pool,
            role="compute",
            machine=None,
            ssh=SshTarget(user="root"),
        )
        for number in range(1, count + 1)
    )


@pytest.mark.parametrize(
    ("everyone", "idle", "why"),
    [
        (hosts("gpu", 6), hosts("gpu", 6), ""),
        (hosts("gpu", 6), hosts("gpu", 4), ""),
        (hosts("gpu", 6), hosts("gpu", 3), "3 nodes of pool gpu are idle, and its quorum is 4"),
        (hosts("cpu", 2), hosts("cpu", 1), "1 of 2 compute nodes is idle, and it takes 2"),
        (hosts("cpu", 1), hosts("cpu", 1), ""),
    ],
    ids=["all", "the quorum", "below the quorum", "one of two", "a cluster of one"],
)
def test_idle_nodes_prove_the_cluster_or_it_is_said_what_lacks(
    everyone: tuple[Host, ...], idle: tuple[Host, ...], why: str
) -> None:
    spec = load_text(SPEC, file="spec.yaml").spec
    assert spec is not None
    assert lacking(spec, everyone, idle) == why
