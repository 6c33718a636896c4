"""Rails, leaves, partitions and the subnet manager are checked; IPoIB gets its address and MTU."""

from __future__ import annotations

from conftest import Play, Recorded
from testinfra.host import Host


def test_ipoib_has_the_host_part_of_the_nodes_own_address(host: Host) -> None:
    interface = host.interface("ibp24s0")
    own = host.check_output("hostname -I").split()[0].split(".")
    assert interface.addresses[0] == f"10.100.{own[2]}.{own[3]}"
    assert host.file("/sys/class/net/ibp24s0/mtu").content_string.strip() == "4092"


def test_opensm_runs_and_has_the_partition(host: Host) -> None:
    assert host.service("opensm").is_running
    assert host.service("opensm").is_enabled
    partitions = host.file("/etc/opensm/partitions.conf").content_string
    assert "gcluster1=0x0001, defmember=full : ALL=full, SELF=full ;" in partitions


def test_opensm_leaves_a_host_that_is_not_named_and_starts_there_no_more(
    host: Host, converge: Play
) -> None:
    assert converge(phases=["configure"], managers=["node02"]).returncode == 0
    assert not host.service("opensm").is_running
    assert not host.service("opensm").is_enabled
    assert converge().returncode == 0


def test_verify_names_a_rail_on_another_leaf_and_a_partition_that_ports_are_not_in(
    converge: Play, recorded: Recorded
) -> None:
    with recorded("wrong-leaf"):
        run = converge(phases=["verify"], key="0x8002")
    assert run.returncode != 0
    assert "rail 3, mlx5_5: it hangs on MF0;su1-leaf5:MQM9700/U1, not *-leaf4:*" in run.printed
    assert "mlx5_0: the port isn't in partition 0x8002" in run.printed


def test_a_device_that_is_not_there_is_named_and_the_next_converge_continues(
    converge: Play,
) -> None:
    run = converge(phases=["configure"], devices=["mlx5_77"])
    assert run.returncode != 0
    assert "there is no device mlx5_77" in run.printed
    assert converge().returncode == 0
