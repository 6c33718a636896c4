"""Node ranges: as few lines as the names allow, and every pair comes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.compile.slurm.nodes import folded_pairs
from gcluster.schemas.derived.hostlist import expand, host_order

NAMES = st.from_regex(r"[a-z]{1,2}([0-9]{1,4}|[0-9]n[0-9]{1,2}|[a-z])?", fullmatch=True)
ADDRESSES = st.one_of(
    st.ip_addresses(v=4, network="10.0.0.0/22").map(str),
    st.ip_addresses(v=6, network="fd00::/120").map(str),
    st.from_regex(r"[a-z]{1,3}[0-9]{0,3}(\.example)?", fullmatch=True),
)


def test_a_thousand_hosts_in_four_networks_take_four_lines() -> None:
    pairs = [(f"gpu{n:04d}", f"10.0.{n // 250}.{n % 250 + 1}") for n in range(1000)]
    assert folded_pairs(pairs) == [
        ("gpu[0000-0249]", "10.0.0.[1-250]"),
        ("gpu[0250-0499]", "10.0.1.[1-250]"),
        ("gpu[0500-0749]", "10.0.2.[1-250]"),
        ("gpu[0750-0999]", "10.0.3.[1-250]"),
    ]


def test_gaps_stay_gaps_on_both_sides() -> None:
    pairs = [("n1", "10.0.0.11"), ("n2", "10.0.0.12"), ("n4", "10.0.0.9")]
    assert folded_pairs(pairs) == [("n[1-2,4]", "10.0.0.[11-12,9]")]


def test_ipv6_addresses_are_not_counted_through() -> None:
    pairs = [("n1", "fd00::9"), ("n2", "fd00::10")]
    assert folded_pairs(pairs) == [("n1", "fd00::9"), ("n2", "fd00::10")]


def test_a_name_without_a_number_has_a_line_of_its_own() -> None:
    assert folded_pairs([("big", "10.0.0.1"), ("n1", "10.0.0.2")]) == [
        ("big", "10.0.0.1"),
        ("n1", "10.0.0.2"),
    ]


@given(st.dictionaries(NAMES, ADDRESSES, max_size=30))
def test_expanding_both_sides_gives_the_pairs_back(pairs: dict[str, str]) -> None:
    lines = folded_pairs(pairs.items())
    back = [
        pair
        for names, addresses in lines
        for pair in zip(expand(names), expand(addresses), strict=True)
    ]
    assert sorted(back) == sorted(pairs.items())


@given(st.dictionaries(NAMES, ADDRESSES, max_size=30))
def test_hosts_within_a_line_are_in_host_order(pairs: dict[str, str]) -> None:
    for names, _ in folded_pairs(pairs.items()):
        expanded = expand(names)
        assert expanded == sorted(expanded, key=host_order)
