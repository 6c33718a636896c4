"""Which subnet a local site takes and which address a node gets."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.stacks.local import network
from gcluster.stacks.provider import ProviderError

SUBNET = IPv4Network("10.210.7.0/24")
node_names = st.lists(st.from_regex(r"gpu[0-9]{3}", fullmatch=True), unique=True, max_size=200)
blocks = st.integers(0, 255).map(lambda third: IPv4Network(f"10.210.{third}.0/24"))


@given(st.text(), st.lists(blocks, max_size=255))
def test_a_free_subnet_never_overlaps_what_is_used(key: str, used: list[IPv4Network]) -> None:
    for subnet in network.free_subnets(key, used):
        assert subnet.subnet_of(network.AUTO_RANGE)
        assert not any(subnet.overlaps(other) for other in used)


@given(st.text())
def test_the_same_cluster_tries_the_same_subnets_in_the_same_order(key: str) -> None:
    first = list(network.free_subnets(key, []))
    assert list(network.free_subnets(key, [])) == first
    assert len(set(first)) == 256


def test_a_route_that_covers_the_whole_range_leaves_no_subnet() -> None:
    assert list(network.free_subnets("demo", [IPv4Network("10.0.0.0/8")])) == []


def test_a_cidr_that_overlaps_a_route_is_refused_with_the_route_named() -> None:
    with pytest.raises(ProviderError, match=r"overlaps 192\.0\.2\.0/24"):
        list(network.candidates("192.0.2.128/25", "demo", [IPv4Network("192.0.2.0/24")]))


@pytest.mark.parametrize("cidr", ["10.210.7.1/24", "fd00::/64", "everywhere"])
def test_a_cidr_that_is_no_ipv4_network_is_refused(cidr: str) -> None:
    with pytest.raises(ProviderError, match="is not an IPv4 network"):
        network.requested_subnet(cidr)


@given(st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_a_hardware_address_is_that_of_its_address_alone(
    one: IPv4Address, two: IPv4Address
) -> None:
    assert (network.hardware_address(str(one)) == network.hardware_address(str(two))) == (
        one == two
    )


def test_a_hardware_address_is_a_locally_administered_one_of_a_single_machine() -> None:
    assert network.hardware_address("10.210.7.11") == "02:00:0a:d2:07:0b"


@given(node_names)
def test_nodes_get_their_addresses_from_ten_on_in_order(names: list[str]) -> None:
    given_ = network.assign(SUBNET, names, {})
    assert list(given_) == names
    assert list(given_.values()) == [str(SUBNET[10 + i]) for i in range(len(names))]


@given(node_names, st.data())
def test_a_node_keeps_its_address_when_others_come_and_go(
    names: list[str], data: st.DataObject
) -> None:
    before = network.assign(SUBNET, names, {})
    left = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    known = {name: before[name] for name in left}
    after = network.assign(SUBNET, [*reversed(names), "new001"], known)
    assert {name: after[name] for name in left} == known
    assert len(set(after.values())) == len(after)
    assert all(IPv4Address(address) in SUBNET for address in after.values())


def test_a_full_subnet_is_an_error_that_reports_how_many_fit() -> None:
    small = IPv4Network("10.210.7.0/28")
    assert network.capacity(small) == 5
    network.assign(small, [f"n{i}" for i in range(5)], {})
    with pytest.raises(ProviderError, match="room for 5 nodes, and no address for n5"):
        network.assign(small, [f"n{i}" for i in range(6)], {})


def test_an_address_of_another_network_is_not_kept() -> None:
    assert network.assign(SUBNET, ["a"], {"a": "10.9.9.9"}) == {"a": "10.210.7.10"}


def test_the_routing_table_is_read_without_its_default_route(tmp_path: Path) -> None:
    table = tmp_path / "route"
    table.write_text(
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
        "cni0\t0000580A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
    )
    expected = (IPv4Network("192.0.2.0/24"), IPv4Network("10.88.0.0/16"))
    assert network.host_routes(table) == expected


def test_ipv6_container_networks_take_no_ipv4_room() -> None:
    assert network.used_networks(["fd00::/64", "10.88.0.0/16"], []) == [IPv4Network("10.88.0.0/16")]


def test_neighbouring_clusters_start_at_different_places() -> None:
    starts = {next(network.free_subnets(f"gcluster-c{i}-here", [])) for i in range(20)}
    assert len(starts) > 10
    assert len(list(islice(network.free_subnets("x", []), 3))) == 3
