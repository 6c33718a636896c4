"""Topology: only what holds for every host, and never a block Slurm would refuse."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.hosts import Host, Placement, SshTarget
from gcluster.inventory.topology import FLAT, HostGroup, Topology, topology_of
from gcluster.schemas.derived.hostlist import expand

GROUPS = st.sampled_from([None, "a", "b", "c"])


def hosts(*placed: tuple[str | None, str | None]) -> list[Host]:
    """Return one host for each (block, leaf)."""
    return [
        Host(
            name=f"n{number}",
            site="s",
            pool="p",
            role="compute",
            machine=None,
            ssh=SshTarget(user="u"),
            placement=Placement(block=block, leaf=leaf),
        )
        for number, (block, leaf) in enumerate(placed, start=1)
    ]


def test_blocks_come_before_leaves() -> None:
    found = topology_of(hosts(("b1", "l1"), ("b1", "l2"), ("b2", "l1"), ("b2", "l2")))
    assert found == Topology(
        type="block",
        groups=(HostGroup(name="b1", nodes="n[1-2]"), HostGroup(name="b2", nodes="n[3-4]")),
        block_size=2,
    )


def test_a_block_of_one_host_gives_way_to_leaves() -> None:
    found = topology_of(hosts(("b1", "l1"), ("b1", "l1"), ("b2", "l2")))
    assert found.type == "tree"


def test_one_leaf_for_all_adds_nothing() -> None:
    assert topology_of(hosts((None, "l1"), (None, "l1"))) == FLAT


def test_a_host_without_a_place_makes_it_flat() -> None:
    assert topology_of(hosts(("b1", "l1"), ("b1", "l1"), (None, None))) == FLAT


def test_no_hosts_are_flat() -> None:
    assert topology_of([]) == FLAT


@given(st.lists(st.tuples(GROUPS, GROUPS), max_size=12))
def test_every_host_is_in_exactly_one_group(
    placed: list[tuple[str | None, str | None]],
) -> None:
    found = topology_of(hosts(*placed))
    existing = Counter(name for group in found.groups for name in expand(group.nodes))
    everyone = [f"n{number}" for number in range(1, len(placed) + 1)]
    assert existing == Counter([] if found == FLAT else everyone)


@given(st.lists(st.tuples(GROUPS, GROUPS), max_size=12))
def test_no_block_is_smaller_than_the_block_size(
    placed: list[tuple[str | None, str | None]],
) -> None:
    found = topology_of(hosts(*placed))
    assert all(len(expand(group.nodes)) >= found.block_size for group in found.groups)


_UNITS = (("b1", "l1"), ("b1", "l2"), ("b2", "l1"), ("b2", "l2"))


def test_blocks_are_switches_for_a_scheduler_that_has_no_blocks() -> None:
    found = topology_of(hosts(("b1", None), ("b1", None), ("b2", None)), supports_blocks=False)
    assert (found.type, [group.name for group in found.groups]) == ("tree", ["b1", "b2"])


def test_a_requested_tree_has_the_leaves_as_switches() -> None:
    found = topology_of(hosts(*_UNITS), "tree")
    assert (found.type, [group.name for group in found.groups]) == ("tree", ["l1", "l2"])


def test_no_topology_is_none_whatever_is_known() -> None:
    assert topology_of(hosts(*_UNITS), "none") == FLAT


def test_block_sizes_of_the_spec_follow_the_smallest_block() -> None:
    found = topology_of(hosts(*_UNITS), "block", [2, 4])
    assert (found.type, found.block_size, found.block_sizes) == ("block", 2, (2, 4))


def test_requesting_blocks_makes_none_where_none_is_known() -> None:
    assert topology_of(hosts((None, "l1"), (None, "l2")), "block").type == "tree"
