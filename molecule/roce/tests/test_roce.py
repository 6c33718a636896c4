"""Rails are lossless, marked and large; an interface that appears is set by its unit."""

from __future__ import annotations

from conftest import Play, Recorded, Verified
from testinfra.host import Host


def mtu(host: Host, interface: str) -> str:
    return host.file(f"/sys/class/net/{interface}/mtu").content_string.strip()


def test_every_rail_has_its_mtu_and_marks_what_it_sends(host: Host) -> None:
    for rail in range(4):
        assert mtu(host, f"rail{rail}") == "9000"
        marked = host.file(f"/srv/sys/class/infiniband/mlx5_{rail}/tc/1/traffic_class")
        assert marked.content_string.strip() == "106"  # 26 * 4 + 2
        ecn = f"/srv/sys/class/net/rail{rail}/ecn"
        assert host.file(f"{ecn}/roce_rp/enable/3").content_string.strip() == "1"
        assert host.file(f"{ecn}/roce_rp/enable/0").content_string.strip() == "0"
        assert host.file(f"{ecn}/roce_np/cnp_dscp").content_string.strip() == "48"


def test_an_interface_that_appears_is_set_by_its_unit_and_another_is_left_alone(host: Host) -> None:
    host.check_output("ip link set rail1 mtu 1500; ip link set peer1 mtu 1500")
    host.check_output("systemctl start gcluster-roce@rail1 gcluster-roce@peer1")
    assert mtu(host, "rail1") == "9000"
    assert mtu(host, "peer1") == "1500"
    rule = host.file("/etc/udev/rules.d/90-gcluster-roce.rules").content_string
    assert 'DRIVERS=="mlx5_core|' in rule


def test_packets_of_a_rails_address_leave_by_that_rail(host: Host) -> None:
    own = host.check_output("hostname -I").split()
    rest = next(each for each in own if not each.startswith("10.11")).split(".", 2)[2]
    for rail in range(4):
        address = f"10.11{rail}.{rest}"
        assert f"{address}/16" in host.check_output(f"ip -4 address show dev rail{rail}")
        way = host.check_output(f"ip route get 10.11{rail}.255.254 from {address}")
        assert f"dev rail{rail} table {2000 + rail}" in way
        conf = f"/srv/proc/sys/net/ipv4/conf/rail{rail}"
        assert host.check_output(f"cat {conf}/arp_ignore {conf}/arp_announce").split() == ["12"]


def test_an_adapter_that_lost_its_settings_is_set_again(converge: Play, recorded: Recorded) -> None:
    with recorded("fresh"):
        run = converge("-v", phases=["join"])
    assert run.returncode == 0, run.stdout
    answer = run.printed
    for change in ("rail0 sorts packets by DSCP", "rail3 keeps priority 3 lossless"):
        assert change in answer
    assert "rail1 has rings of 8192" in answer


def test_verify_fails_on_a_rail_that_is_not_as_wanted(verified: Verified) -> None:
    run = verified("pfc-lost")
    assert run.returncode != 0
    assert "not rail3 keeps priority 3 lossless" in run.printed


def test_where_a_cloud_sets_the_adapters_only_links_and_gids_are_queried(
    converge: Play, recorded: Recorded
) -> None:
    with recorded("pfc-lost"):
        run = converge(phases=["verify"], managed=False)
    assert run.returncode == 0, run.stdout


def test_adapters_that_are_ambiguous_are_not_touched(converge: Play) -> None:
    run = converge(phases=["join"], gbps=0)
    assert run.returncode != 0
    assert "which adapters carry RoCE isn't known: write devices under rdma" in run.printed
    assert converge().returncode == 0
