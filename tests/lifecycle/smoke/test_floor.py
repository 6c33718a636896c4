"""An automatic floor reaches the verdict, as a number or as the words that say why not."""

from __future__ import annotations

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Expectation
from gcluster.lifecycle.smoke.launch import launches
from gcluster.lifecycle.smoke.reading.log import AllReduceLog, Half, Row
from gcluster.lifecycle.smoke.run import floor_of
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.derived.floor import FloorFigure
from gcluster.schemas.load import load_text


def _floor(machine: str, hosts: tuple[str, ...]) -> FloorFigure:
    loaded = load_text(f"""apiVersion: gcluster/v1
name: demo
sites: {{room: {{provider: bare-metal, ssh: {{user: ops}}}}}}
pools:
  head: {{site: room, role: controller, hosts: head01}}
  gpu: {{site: room, machine: {machine}, hosts: "gpu[01-64]"}}
scheduler: {{type: slurm}}
smoke: {{allreduce: {{sizes: 8B..8GiB, floor: auto}}}}
""")
    assert loaded.spec is not None, loaded.diagnostics
    compute = tuple(
        Host(
            name=name,
            site="room",
            pool="gpu",
            role="compute",
            machine=machine,
            ssh=SshTarget(user="ops"),
        )
        for name in hosts
    )
    (launch,) = launches(loaded.spec, compute, "job", load_catalog())
    return floor_of(launch, loaded.spec, load_catalog(), compute)


def test_the_nodes_that_take_part_set_the_floor_and_not_those_of_the_spec() -> None:
    two = _floor("dgx-h100", ("gpu01", "gpu02"))
    all_of_them = _floor("dgx-h100", tuple(f"gpu{number:02d}" for number in range(1, 65)))

    assert two.reason.endswith("infiniband-ndr, 2 nodes")
    assert all_of_them.reason.endswith("infiniband-ndr, 64 nodes")
    assert (two.gbytes_per_s or 0) > (all_of_them.gbytes_per_s or 0) > 0


def test_simulated_nodes_have_none_and_the_verdict_reports_it_as_text() -> None:
    floor = _floor("sim.h100x8", ("gpu01", "gpu02"))
    expected = Expectation(
        ranks=2, min_bytes=8, max_bytes=8, floor=floor.gbytes_per_s, floor_reason=floor.reason
    )
    verdict = judge(AllReduceLog(), expected)

    assert verdict.floor is None
    assert verdict.floor_reason == "no floor: sim.h100x8 is simulated"


def test_a_run_below_an_automatic_floor_reports_where_the_floor_comes_from() -> None:
    half = Half(time_us=1, algbw=1, busbw=1, wrong=0)
    row = Row(size=8, count=2, type="float", redop="sum", out_of_place=half, in_place=half)
    expected = Expectation(ranks=2, min_bytes=8, max_bytes=8, floor=408, floor_reason="0.85 of 480")
    (reason,) = [r for r in judge(AllReduceLog(rows=(row,)), expected).reasons if "floor" in r.code]

    assert reason.message == "1.00 GB/s at 8 B, the floor is 408.00 GB/s (0.85 of 480)"
