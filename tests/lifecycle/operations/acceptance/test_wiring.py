"""A cable that hangs elsewhere than in the team's plan fails its node, and a plan is read whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lifecycle.controller import HEAD, LocalShell

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.nodes.ssh import SshResult
from gcluster.lifecycle.operations.acceptance.reading.wiring import Cable, read_plan, read_wiring
from gcluster.lifecycle.operations.acceptance.table import acceptance_tests

PLAN = """\
host,device,switch,port
gpu001,mlx5_0,leaf1,17
gpu001,mlx5_3,MF0;su1-leaf2:*,18

gpu002,mlx5_0,leaf3,Ethernet1/1
"""
FOUND = """\
srun: noise
cable mlx5_0|17|MF0;leaf1:MQM9700/U1
cable mlx5_3|18|MF0;su1-leaf2:MQM9700/U1
"""


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, dict[str, Cable]]:
    (tmp_path / "cables.csv").write_text(PLAN, encoding="utf-8")
    return read_plan(tmp_path / "cables.csv")


def test_cables_are_where_the_plan_has_them_by_name_or_by_description(
    plan: dict[str, dict[str, Cable]],
) -> None:
    read = read_wiring(FOUND, plan["gpu001"])
    assert (read.failures, [one.value for one in read.figures]) == ((), [2.0])
    ethernet = read_wiring("cable mlx5_0|Ethernet1/1|leaf3\n", plan["gpu002"])
    assert not ethernet.failures


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("|18|MF0;leaf1:MQM9700/U1", "mlx5_0 is on MF0;leaf1:MQM9700/U1 port 18"),
        ("|17|MF0;leaf2:MQM9700/U1", "mlx5_0 is on MF0;leaf2:MQM9700/U1 port 17"),
        ("|17|", "mlx5_0 is on ? port 17"),
        ("||", "mlx5_0 has no neighbour that answers"),
    ],
)
def test_a_cable_elsewhere_or_without_an_answer_fails(
    plan: dict[str, dict[str, Cable]], line: str, message: str
) -> None:
    read = read_wiring(FOUND.replace("|17|MF0;leaf1:MQM9700/U1", line), plan["gpu001"])
    assert read.failures == (f"{message}, the plan has it on leaf1 port 17",)


def test_a_port_that_is_down_fails_and_one_outside_of_the_plan_is_reported(
    plan: dict[str, dict[str, Cable]],
) -> None:
    read = read_wiring("cable mlx5_0|17|MF0;leaf1:x\ncable mlx5_9|2|MF0;l:x\n", plan["gpu001"])
    assert [text[:28] for text in read.failures] == ["mlx5_3 has no neighbour that"]
    assert read.remarks == ("mlx5_9: not in the plan",)


SMPQUERY = """
case "$*" in
"-C mlx5_0 -P 1 -D nodeinfo 0,1")
    echo '# Node info: DR path slid 65535; dlid 65535; 0,1'
    echo 'NodeType:........................Switch'
    echo 'LocalPort:.......................17'
    echo 'VendorId:........................0x0002c9' ;;
"-C mlx5_0 -P 1 -D nodedesc 0,1") echo 'Node Description:.............MF0;leaf1:MQM9700/U1' ;;
esac
"""
"""As smpquery prints it (linux-rdma/rdma-core: smpquery.c, and mad_dump_nodeinfo)."""
LLDPCLI = """
[ "$*" = "-f keyvalue show neighbors ports ens1f0" ] || exit 1
echo lldp.ens1f0.via=LLDP
echo lldp.ens1f0.chassis.name=leaf3
echo lldp.ens1f0.port.ifname=Ethernet1/1
echo 'lldp.ens1f0.port.descr=to gpu002=x'
"""


@pytest.mark.parametrize(("way", "host"), [(0, "gpu001"), (1, "gpu002")])
def test_what_a_node_s_shell_queries_its_ports_is_what_is_compared(
    tmp_path: Path, plan: dict[str, dict[str, Cable]], way: int, host: str
) -> None:
    for name in ("device/net/ens1f0", "ports/1"):
        (tmp_path / "sys/mlx5_0" / name).mkdir(parents=True)
    (tmp_path / "sys/mlx5_0/ports/1/link_layer").write_text("InfiniBand\n")
    (tmp_path / "sys/mlx5_0/ports/1/state").write_text("4: ACTIVE\n")
    node = LocalShell(tmp_path / "bin")
    node.has("smpquery", SMPQUERY)
    node.has("lldpcli", LLDPCLI)
    [test] = [one for one in acceptance_tests() if one.name == "wiring"]
    line = test.ways[way].command.format().replace("/sys/class/infiniband", f"{tmp_path}/sys")
    answer = node.run(HEAD, line)
    assert isinstance(answer, SshResult)
    read = read_wiring(answer.stdout, {"mlx5_0": plan[host]["mlx5_0"]})
    assert (read.failures, [one.value for one in read.figures]) == ((), [1.0])


def test_a_node_that_the_plan_does_not_have_proves_nothing() -> None:
    assert read_wiring(FOUND, {}).failures == ("the plan has no cable of this node",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 does not name the columns"),
        ("gpu001,mlx5_0,leaf1,17\n", "line 1 does not name the columns"),
        (f"{PLAN}gpu003,mlx5_0,leaf1\n", "line 6 has not four words"),
        (f"{PLAN}gpu001,mlx5_0,leaf9,1\n", "line 6 has gpu001 mlx5_0 again"),
    ],
)
def test_a_plan_that_is_none_is_refused_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "cables.csv").write_text(text, encoding="utf-8")
    with pytest.raises(LifecycleError, match=message):
        read_plan(tmp_path / "cables.csv")
