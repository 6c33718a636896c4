"""Rails, leaves, partitions and the subnet manager are asked; IPoIB gets its address and MTU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Play, Recorded, Verified
    from testinfra.host import Host


def test_ipoib_has_the_host_part_of_the_nodes_own_address(host: Host) -> None:
    interface = host.interface("ibp24s0")
    own = host.check_output("hostname -I").split()[0].split(".")
    assert interface.addresses[0] == f"10.100.{own[2]}.{own[3]}"
    assert host.file("/sys/class/net/ibp24s0/mtu").content_string.strip() == "65520"


def test_opensm_runs_and_knows_the_partition(host: Host) -> None:
    assert host.service("opensm").is_running
    assert host.service("opensm").is_enabled
    partitions = host.file("/etc/opensm/partitions.conf").content_string
    assert "gcluster1=0x0001, defmember=full : ALL=full, SELF=full ;" in partitions


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("port-down", "rail 2, mlx5_4: the port is Down, Polling"),
        ("slow-rail", "rail 5, mlx5_9: 200 Gb/s, not 400"),
        ("no-subnet-manager", "rail 7, mlx5_11: no subnet manager answers there"),
        ("adapter-lost", "7 rails are up at their rate, not 8"),
        ("wrong-leaf", "rail 3, mlx5_5: it hangs on MF0;su1-leaf5:MQM9700/U1, not *-leaf4:*"),
        ("manager-lost", "no subnet manager rules"),
    ],
)
def test_verify_fails_on_a_fabric_that_is_not_as_asked(
    verified: Verified, case: str, told: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert told in run.said


def test_adapters_with_different_firmware_are_told_and_no_failure(
    converge: Play, recorded: Recorded
) -> None:
    with recorded("mixed-firmware"):
        run = converge("-v", phases=["verify"])
    assert run.returncode == 0
    assert "adapters MT4129 have different firmware" in run.said
    assert "28.36.1010 on mlx5_3" in run.said


def test_a_partition_that_a_port_is_not_in_is_named(converge: Play) -> None:
    run = converge(phases=["verify"], key="0x8002")
    assert run.returncode != 0
    assert "mlx5_0: the port isn't in partition 0x8002" in run.said


def test_a_device_that_is_not_there_is_named_and_the_next_converge_goes_on(converge: Play) -> None:
    run = converge(devices=["mlx5_77"])
    assert run.returncode != 0
    assert "there is no device mlx5_77" in run.said
    assert converge().returncode == 0
