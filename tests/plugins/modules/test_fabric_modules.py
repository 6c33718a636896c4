"""The modules of InfiniBand and RoCE on recorded machines: good ones and others."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_machine import Machine

INFINIBAND: dict[str, Any] = {
    "devices": [], "rails": 8, "gbps": 400, "leaves": [f"*-leaf{rail}:*" for rail in range(1, 9)],
    "partition_keys": ["0x8001"], "ipoib": {}, "subnet_manager": "opensm",
}  # fmt: skip
ROCE: dict[str, Any] = {
    "devices": [], "rails": 4, "gbps": 400, "mtu": 9000, "priority": 3,
    "dscp": 26, "congestion_dscp": 48, "ring": 8192,
}  # fmt: skip
MODULES: dict[str, tuple[str, dict[str, Any]]] = {
    "infiniband": ("infiniband_check", INFINIBAND),
    "roce": ("roce", ROCE | {"state": "verified"}),
}
"""Role -> its module and what it verifies."""
RDMA: dict[str, Any] = {"drivers": "inbox", "modules": ["mlx5_core", "mlx5_ib"]}


@pytest.fixture(autouse=True)
def kernel(machine: Machine) -> None:
    """Write what sysfs says of InfiniBand's ports and RoCE's interfaces."""
    for rail in (0, 3, 4, 5, 6, 9, 10, 11):
        machine.file(f"sys/class/infiniband/mlx5_{rail}/ports/1/pkeys/0", "0x8001\n")
    for rail in range(4):
        device, net = f"sys/class/infiniband/mlx5_{rail}", f"sys/class/net/rail{rail}"
        machine.file(f"{device}/device/net/rail{rail}/name")
        files = {
            f"{device}/tc/1/traffic_class": "Global tclass=106",
            f"{net}/mtu": "9000",
            f"{net}/ecn/roce_np/enable/3": "1",
            f"{net}/ecn/roce_rp/enable/3": "1",
            f"{net}/ecn/roce_np/cnp_dscp": "48",
            f"{net}/ecn/roce_np/cnp_802p_prio": "6",
            f"{device}/ports/1/gids/1": "fe80:0000:0000:0000:a288:c2ff:fe4d:1b00",
            f"{device}/ports/1/gid_attrs/types/1": "RoCE v2",
            f"{device}/ports/1/gids/2": f"0000:0000:0000:0000:0000:ffff:0a0{rail}:0101",
            f"{device}/ports/1/gid_attrs/types/2": "IB/RoCE v1",
            f"{device}/ports/1/gids/3": f"0000:0000:0000:0000:0000:ffff:0a0{rail}:0101",
            f"{device}/ports/1/gid_attrs/types/3": "RoCE v2",
        }
        for path, text in files.items():
            machine.file(path, f"{text}\n")
    machine.tool("systemctl", "[ $1 != is-failed ] && [ $3 != lldpad ]")


@pytest.mark.parametrize(
    ("role", "case", "message"),
    [
        ("infiniband", "port-down", "mlx5_4: the port is Down, Polling"),
        ("infiniband", "slow-rail", "mlx5_9: 200 Gb/s, not 400"),
        ("infiniband", "adapter-lost", "7 rails are up at their rate"),
        ("infiniband", "wrong-leaf", "mlx5_5: it hangs on MF0;su1-leaf5"),
        ("infiniband", "no-subnet-manager", "mlx5_11: no subnet manager answers"),
        ("infiniband", "manager-lost", "no subnet manager rules"),
        ("roce", "port-down", "mlx5_2: the port is Down, Disabled"),
        ("roce", "trust-lost", "not rail1 sorts packets by DSCP"),
        ("roce", "pfc-lost", "not rail3 keeps priority 3 lossless"),
        ("roce", "small-mtu", "mlx5_0 sends packets of 1024 bytes"),
        ("roce", "pause", "not rail0 pauses priorities, not all"),
    ],
)
def test_verification_names_what_is_wrong_with_a_recorded_machine(
    machine: Machine, role: str, case: str, message: str
) -> None:
    machine.play(role, case)
    module, requested = MODULES[role]
    result = machine.call(module, requested)
    assert result["failed"]
    assert message in result["msg"]


@pytest.mark.parametrize("role", MODULES)
def test_a_recorded_machine_that_is_as_wanted_passes(machine: Machine, role: str) -> None:
    machine.play(role, "good")
    module, requested = MODULES[role]
    result = machine.call(module, requested)
    assert (result["failed"], result["changed"]) == (False, False), result


def test_adapters_with_different_firmware_are_named_and_no_failure(machine: Machine) -> None:
    machine.play("infiniband", "mixed-firmware")
    result = machine.call("infiniband_check", INFINIBAND)
    assert not result["failed"]
    notes = "\n".join(result["notes"])
    assert "adapters MT4129 have different firmware" in notes
    assert "28.36.1010 on mlx5_3" in notes


def test_adapters_that_lost_their_settings_are_set_by_name_and_value(machine: Machine) -> None:
    machine.play("roce", "fresh")
    result = machine.call("roce", ROCE, check=True)
    assert result["changed"]
    assert "rail0 sorts packets by DSCP" in result["changes"]
    assert "rail3 keeps priority 3 lossless" in result["changes"]
    assert len(result["changes"]) == 4 * 4  # trust, PFC, rings and pause of four rails


def test_only_the_rails_that_the_health_check_keeps_are_set(machine: Machine) -> None:
    machine.play("roce", "fresh")
    machine.file("var/lib/gcluster/rails", "mlx5_0\nmlx5_1\n")
    result = machine.call("roce", ROCE | {"rails": 2}, check=True)
    assert {change.split()[0] for change in result["changes"]} == {"rail0", "rail1"}


def test_the_address_for_ipoib_keeps_the_host_part_of_the_nodes_own(machine: Machine) -> None:
    machine.play("infiniband", "good")
    missing = machine.call("ipoib_info", {"devices": ["mlx5_5"], "network": "10.200.0.0/16"})
    assert missing["msg"] == "mlx5_5 has no interface of its own: is ib_ipoib loaded?"

    machine.file("sys/class/infiniband/mlx5_5/device/net/ibp24s0/name")
    found = machine.call("ipoib_info", {"devices": ["mlx5_5"], "network": "10.200.0.0/16"})
    assert found["interface"] == "ibp24s0"
    assert found["address"].startswith("10.200.")
    assert found["address"].endswith("/16")


def test_missing_rdma_modules_are_loaded_but_never_under_a_job(machine: Machine) -> None:
    machine.tool("modinfo", "echo 0123")
    machine.tool("modprobe", 'echo "$@" > "$GCLUSTER_NODE_ROOT/loaded"')
    machine.file("sys/module/mlx5_core/version", "5.0\n")
    machine.tool("pgrep", "echo '10 slurmstepd: [7.batch]'")

    refused = machine.call("rdma_drivers", RDMA)
    assert refused["msg"] == "a job runs here: not changed: not loaded: mlx5_ib"
    assert machine.call("rdma_drivers", RDMA, check=True)["changes"] == ["not loaded: mlx5_ib"]

    machine.tool("pgrep", "exit 1")
    assert machine.call("rdma_drivers", RDMA)["changed"]
    assert (machine.root / "loaded").read_text() == "--all mlx5_ib\n"


def test_peer_memory_is_out_while_doca_loads_its_modules_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from running import module  # noqa: PLC0415  # next to this file

    for name in ("rmmod", "modprobe", "openibd"):
        machine.tool(name, f'echo "{name} $*" >>{machine.root}/calls')
    monkeypatch.setattr(module("rdma_drivers"), "OPENIBD", "openibd")
    machine.tool("modinfo", "echo 0123")
    machine.file("sys/module/mlx5_core/srcversion", "4567\n")
    machine.file("sys/module/mlx5_core/version", "25.04\n")
    machine.file("sys/module/nvidia_peermem/version")
    done = machine.call("rdma_drivers", {"drivers": "doca", "modules": ["mlx5_core"]})
    assert done["changes"] == ["mlx5_core 25.04 runs, another one is installed"], done
    calls = (machine.root / "calls").read_text().splitlines()
    assert calls == ["rmmod nvidia_peermem", "openibd restart", "modprobe nvidia_peermem"]


def test_a_rail_without_an_address_or_with_its_gid_elsewhere_is_named(machine: Machine) -> None:
    machine.play("roce", "good")
    port = machine.root / "sys/class/infiniband/mlx5_2/ports/1"
    (port / "gid_attrs/types/3").rename(port / "gid_attrs/types/5")
    (port / "gids/3").rename(port / "gids/5")
    result = machine.call("roce", ROCE | {"state": "verified"})
    assert "3 on mlx5_1, 5 on mlx5_2" in result["msg"]

    (port / "gids/5").unlink()
    result = machine.call("roce", ROCE | {"state": "verified"})
    assert "mlx5_2 has no RoCE v2 GID with an IPv4 address" in result["msg"]


def test_what_takes_settings_from_a_switch_is_named(machine: Machine) -> None:
    machine.play("roce", "good")
    answer = (
        "DCBX mode: Firmware controlled\nPriority trust state: dscp\n"
        "dscp2prio mapping:\n\tprio:3 dscp:31,26,\nPFC configuration:\n"
        "\tenabled     0   0   0   1   0   0   0   0   \n"
    )
    machine.tool("mlnx_qos", f"printf '{answer}'")
    machine.tool("systemctl", "[ $1 != is-failed ]")
    result = machine.call("roce", ROCE | {"state": "verified"})
    assert "not rail0 takes no settings from its switch" in result["msg"]
    assert "lldpad runs" in result["msg"]


def test_adapters_of_another_maker_are_verified_but_never_set(machine: Machine) -> None:
    machine.play("roce", "good")
    machine.tool("mlnx_qos", "exit 1")
    for rail in range(4):
        link = machine.root / f"sys/class/infiniband/mlx5_{rail}/device/driver"
        link.symlink_to("/sys/bus/pci/drivers/bnxt_en")
    refused = machine.call("roce", ROCE)
    assert "mlx5_0 is driven by bnxt_en, and only NVIDIA's adapters are set here" in refused["msg"]
    assert machine.call("roce", ROCE | {"managed": False})["changes"] == []
    verified = machine.call("roce", ROCE | {"managed": False, "state": "verified"})
    assert not verified["failed"], verified["msg"]
    assert "NCCL_IB_GID_INDEX=3" in verified["notes"]


IP = """cd {root}
echo "ip $*" >>calls
case "$*" in
*"address show dev rail0") echo '[{{"addr_info":[{{"local":"{address}","prefixlen":16}}]}}]' ;;
*"route show table 2000") echo '[{{"dst":"10.0.0.0/16","dev":"rail0","prefsrc":"{address}"}}]' ;;
*"rule show") echo '[{{"priority":20000,"src":"{address}","table":"2000"}},{{"src":"all"}}]' ;;
*"route show"*) echo 'Error: ipv4: FIB table does not exist.'; exit 2 ;;
*show*) echo '[{{}}]' ;;
esac"""


def test_each_rail_gets_an_address_routes_and_answers_of_its_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ipaddress  # noqa: PLC0415  # this test alone

    from running import module_util  # noqa: PLC0415  # next to this file

    own = ipaddress.IPv4Address("192.168.7.21")
    monkeypatch.setattr(module_util("interface_settings"), "own_address", lambda: own)
    machine.play("roce", "good")
    machine.tool("ip", IP.format(root=machine.root, address="10.0.7.21"))
    machine.tool("nmcli", "echo '100 (connected)'")
    for rail, text in ((0, "1"), (1, "0")):
        for name in ("arp_ignore", "arp_announce", "rp_filter"):
            wanted = "1" if name == "arp_ignore" else "2"
            machine.file(f"proc/sys/net/ipv4/conf/rail{rail}/{name}", wanted if rail == 0 else text)
    requested = ROCE | {"rails": 2, "devices": ["mlx5_0", "mlx5_1"], "managed": False}
    requested["networks"] = ["10.0.0.0/16", "10.1.0.0/16"]

    done = machine.call("roce", requested)

    assert not done["failed"], done
    assert done["changes"][0] == "rail0 is left alone by NetworkManager"
    assert [change for change in done["changes"] if "rail0" in change] == done["changes"][:1]
    made = [
        line for line in (machine.root / "calls").read_text().splitlines() if "show" not in line
    ]
    assert made == [
        "ip address replace 10.1.7.21/16 dev rail1",
        "ip route replace 10.1.0.0/16 dev rail1 src 10.1.7.21 table 2001",
        "ip rule add from 10.1.7.21 table 2001 priority 20001",
    ]
    conf = machine.root / "proc/sys/net/ipv4/conf/rail1"
    assert {path.name: path.read_text() for path in conf.iterdir()} == {
        "arp_ignore": "1", "arp_announce": "2", "rp_filter": "2",
    }  # fmt: skip


def lldp(name: str) -> bytes:
    """Return a switch's announcement: chassis, port, lifetime, name, end."""
    parts = (
        (1, b"\x04" + bytes(6)),
        (2, b"\x05swp1"),
        (3, b"\x00\x78"),
        (5, name.encode()),
        (0, b""),
    )
    entries = [((kind << 9) | len(text)).to_bytes(2, "big") + text for kind, text in parts]
    return bytes.fromhex("0180c200000e") + bytes(6) + b"\x88\xcc" + b"".join(entries)


def test_a_rail_on_another_leaf_is_named_by_what_its_switch_announces(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket  # noqa: PLC0415  # this test alone

    from running import module_util  # noqa: PLC0415  # next to this file

    def listen(interface: str) -> socket.socket:
        ours, switch = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        if interface != "rail3":
            switch.send(lldp({"rail2": "rack1-leaf5"}.get(interface, f"rack1-leaf{interface[-1]}")))
        return ours

    monkeypatch.setattr(module_util("lldp"), "_listen", listen)
    monkeypatch.setattr(module_util("lldp").neighbours, "__defaults__", (0.2,))
    machine.play("roce", "good")
    leaves = [f"*-leaf{rail}" for rail in range(4)]
    result = machine.call("roce", ROCE | {"state": "verified", "leaves": leaves})
    assert result["differences"] == [
        "rail 2, mlx5_2: it hangs on rack1-leaf5, not *-leaf2",
        "rail 3, mlx5_3: its switch announces no name by LLDP",
    ]
