"""A certificate is of a network and of a pool: one idle node proves neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lifecycle.controller import DownShell

from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.smoke.certificate import certificate
from gcluster.lifecycle.smoke.judging.verdict import Verdict
from gcluster.lifecycle.smoke.reading.log import AllReduceLog
from gcluster.lifecycle.smoke.run import SmokeResult, lacking
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
def test_idle_nodes_prove_the_cluster_or_it_is_reported_what_lacks(
    everyone: tuple[Host, ...], idle: tuple[Host, ...], why: str
) -> None:
    spec = load_text(SPEC, file="spec.yaml").spec
    assert spec is not None
    assert lacking(spec, everyone, idle) == why


@pytest.mark.parametrize("simulated", [True, False])
def test_a_certificate_names_who_was_left_out_and_calls_no_double_real(
    simulated: bool, tmp_path: Path
) -> None:
    verdict = Verdict(
        verdict="pass", reasons=(), ranks=4, wrong=0, largest=64, busbw=40, floor=None,
        transport="ethernet btl=tcp", simulated=simulated,
    )  # fmt: skip
    result = SmokeResult(verdict=verdict, log=AllReduceLog(), runs=(), left_out="gpu[005-006]")
    inventory = ClusterInventory(cluster="demo", hosts=hosts("gpu", 6))
    document = certificate("0" * 64, inventory, result, DownShell(tmp_path))
    assert document["left_out"] == "gpu[005-006]"
    assert (document["gpus"] == "simulated") is simulated
    assert str(document["transport"]).endswith("(simulated)") is simulated
    assert document["verdict"]["simulated"] is simulated  # type: ignore[index]  # a mapping
