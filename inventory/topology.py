"""Network topology of hosts: blocks and leaf groups, as far as a scheduler may rely on them.

A block is a scalable unit or an NVLink domain, a leaf a group of leaf switches that serves the same
hosts. Rails are no switches of hosts: each GPU's NIC has a plane of its own, and a host is
connected to all of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ..schemas.derived.hostlist import fold, host_order
from .hosts import Host

Plugin: TypeAlias = Literal["auto", "block", "tree", "none"]
"""The spec's choice; auto: what the facts support."""
SMALLEST_BLOCK = 2
"""A block of one node is of no use to a scheduler."""


class HostGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts that share a block or a leaf switch, as a host range."""

    name: str
    nodes: str


class SwitchGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Leaf switches of one block."""

    name: str
    switches: tuple[str, ...]


class Topology(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The network from a scheduler's view: flat, leaf switches under a spine, or blocks."""

    type: Literal["flat", "tree", "block"]
    groups: tuple[HostGroup, ...] = ()
    units: tuple[SwitchGroup, ...] = ()
    """Of a tree: the switches between leaves and spine, each leaf below exactly one."""
    block_size: int = 0
    """Hosts in the smallest block. A block smaller than Slurm's BlockSizes stops slurmctld and
    slurmd up to 24.11, so the smallest sets it."""
    block_sizes: tuple[int, ...] = ()
    """Hosts of a block, then of groups of blocks, from the spec; (): `block_size` alone."""


FLAT = Topology(type="flat")


def topology_of(
    hosts: Iterable[Host],
    plugin: Plugin = "auto",
    block_sizes: Sequence[int] = (),
    *,
    supports_blocks: bool = True,
) -> Topology:
    """Return the topology that is valid for all of these hosts.

    Blocks when every host has one and none is alone in it; else a tree when every host has a leaf
    and there are several; else flat. A scheduler keeps jobs away from hosts that a topology leaves
    out, so a partial topology is none. A setting can't create what the facts don't support.

    Args:
        hosts: those that run jobs.
        plugin: tree: blocks only above leaves, or as switches where no leaf is known; none: flat.
        block_sizes: of the spec: the first is the least that Slurm takes as a block.
        supports_blocks: whether the scheduler can keep jobs in blocks; else they are switches.
    """
    if plugin == "none":
        return FLAT
    members = tuple(hosts)
    blocks = _groups((host.placement.block, host.name) for host in members)
    smallest = min(map(len, blocks.values()), default=0)
    if plugin != "tree" and supports_blocks and smallest >= SMALLEST_BLOCK:
        return Topology(
            type="block",
            groups=_folded(blocks),
            block_size=smallest,
            block_sizes=tuple(block_sizes),
        )
    leaves = _groups((host.placement.leaf, host.name) for host in members)
    if (plugin == "tree" or not supports_blocks) and not leaves:
        leaves, blocks = blocks, {}
    if len(leaves) > 1:
        return Topology(type="tree", groups=_folded(leaves), units=_units(leaves, blocks))
    return FLAT


def _groups(placed: Iterable[tuple[str | None, str]]) -> dict[str, list[str]]:
    """Return group -> host names, or nothing at all when a host has no group."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for group, name in placed:
        if group is None:
            return {}
        groups[group].append(name)
    return groups


def _folded(groups: Mapping[str, Sequence[str]]) -> tuple[HostGroup, ...]:
    """Return the groups with their hosts folded, in host order of their names."""
    written = _written(groups)
    return tuple(
        HostGroup(name=written[name], nodes=fold(groups[name]))
        for name in sorted(groups, key=host_order)
    )


def _units(
    leaves: Mapping[str, Sequence[str]], blocks: Mapping[str, Sequence[str]]
) -> tuple[SwitchGroup, ...]:
    """Return the blocks as switches of leaves; () where that adds nothing, or a leaf is in two."""
    block_of = {host: block for block, hosts in blocks.items() for host in hosts}
    above = {leaf: {block_of.get(host) for host in hosts} for leaf, hosts in leaves.items()}
    if any(len(found) > 1 or None in found for found in above.values()):
        return ()
    if not 1 < len(blocks) < len(leaves):
        return ()
    leaf_names = _written(leaves)
    names = _written(blocks, taken=leaf_names.values())
    return tuple(
        SwitchGroup(
            name=names[block],
            switches=tuple(
                leaf_names[leaf]
                for leaf in sorted(leaves, key=host_order)
                if above[leaf] == {block}
            ),
        )
        for block in sorted(blocks, key=host_order)
    )


def _written(groups: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return group -> its name in Slurm's files, where a space or comma would end it."""
    used = set(taken)
    names: dict[str, str] = {}
    for group in sorted(groups, key=host_order):
        stem = name = re.sub(r"[^A-Za-z0-9_.-]", "-", group)
        while name in used:
            name = stem = f"{stem}-unit"
        used.add(name)
        names[group] = name
    return names
