"""Fabric domains: hosts whose GPUs reach each other over one fabric, and are tested together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from ...inventory.hosts import Host
from ...schemas.catalog import Catalog, Fabric, Machine
from ...schemas.checks.capacity.placement import is_fabric_domain
from ...schemas.derived.rails import machine_in_pool
from ...schemas.spec import ClusterSpec
from ..nodes.ssh import SshSession, Unreachable


def fabric_domains(
    spec: ClusterSpec, catalog: Catalog, hosts: Iterable[Host]
) -> tuple[tuple[Host, ...], ...]:
    """Return the hosts in groups that one fabric joins, in the order of their first hosts.

    Hosts of another fabric class or site are another domain. A zone ends EFA and Google's fabrics,
    and one placement Azure's, so there each pool is one; NVLink ends at its block. Nodes whose GPUs
    are cut into MIG slices are apart: the others' AllReduce runs on whole ones.
    """
    groups: defaultdict[tuple[str, ...], list[Host]] = defaultdict(list)
    for host in hosts:
        groups[_domain(spec, catalog, host)].append(host)
    return tuple(tuple(group) for group in groups.values())


def machine_of(catalog: Catalog, host: Host) -> Machine | None:
    """Return a host's machine type; None: it has none, or one that is not in the catalog."""
    return catalog.machines.get(host.machine or "")


def machine_in_pool_of(spec: ClusterSpec, catalog: Catalog, host: Host) -> Machine | None:
    """Return a host's machine type with the rails of its pool's nodes; None: as `machine_of`."""
    machine, fabric = machine_of(catalog, host), fabric_of(spec, catalog, host)
    return machine_in_pool(machine, spec.pools[host.pool], fabric)


def fabric_of(spec: ClusterSpec, catalog: Catalog, host: Host) -> Fabric | None:
    """Return the fabric class that carries a host's traffic to others; None: it isn't known."""
    machine = machine_of(catalog, host)
    name = spec.pools[host.pool].fabric or (machine.fabric if machine else None)
    return catalog.fabrics.get(name or "")


def blocks_of(hosts: Iterable[Host]) -> tuple[tuple[str, ...], ...]:
    """Return the hosts' names by block, or by leaf switch where no block is known."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        groups[host.placement.block or host.placement.leaf or ""].append(host.name)
    return tuple(tuple(group) for group in groups.values())


def _domain(spec: ClusterSpec, catalog: Catalog, host: Host) -> tuple[str, ...]:
    fabric, machine = fabric_of(spec, catalog, host), machine_of(catalog, host)
    key = (host.site, fabric.name if fabric else "")
    if spec.pools[host.pool].is_sliced:
        return *key, "MIG"
    if machine is not None and machine.simulated:
        return key
    if fabric is not None and "P2P/MNNVL" in fabric.channels:
        return *key, host.pool, host.placement.block or ""
    ends = (machine is not None and is_fabric_domain(machine)) or (
        fabric is not None and fabric.reach in {"zone", "placement"}
    )
    return (*key, host.pool) if ends else key


SLOW_SHARE = 0.7
"""A rail below this share of the rails' median is at fault: healthy ones are within a few percent
of each other, and a port that came up with half its lanes or speed reaches 0.5."""

_VERBS = frozenset({"infiniband", "roce"})
_HCAS = "cat /var/lib/gcluster/rails 2>/dev/null"
"""The list of a node's health check: other ports, for storage or without a cable, are no rails.
Empty where they can't be distinguished."""
_INTERFACES = """
cd /sys/class/net && for name in *; do
  case $name in eth*) ;; *) [ -e $name/device ] || continue ;; esac
  [ "$(cat $name/operstate)" = up ] && [ ! -e $name/master ] || continue
  case $(readlink -f $name/device) in */usb*) ;; *) echo $name ;; esac
done
"""
"""Interfaces that are up: no bridge, no slave of one or of a bond, no way to the BMC (USB)."""


def rails_of(session: SshSession, hosts: Sequence[Host], fabric: Fabric | None) -> tuple[str, ...]:
    """Return the rails that all of these hosts have; () where single ones can't be chosen.

    NCCL can be kept to one NIC on InfiniBand and RoCE (NCCL_IB_HCA) and on sockets
    (NCCL_SOCKET_IFNAME); the plugins of EFA and Google choose by themselves.
    """
    if fabric is not None and not _can_choose(fabric):
        return ()
    command = _HCAS if _over_verbs(fabric) else _INTERFACES
    answers = session.run_many(hosts, command, timeout_s=20)
    found = [
        [] if isinstance(answer, Unreachable) else answer.stdout.split()
        for answer in answers.values()
    ]
    return (
        tuple(name for name in found[0] if all(name in names for names in found)) if found else ()
    )


def rail_environment(rail: str, fabric: Fabric | None) -> tuple[tuple[str, str], ...]:
    """Return the variables that keep ranks to one NIC; "=" makes NCCL match exactly that name.

    Source: NCCL's documentation, environment variables NCCL_IB_HCA and NCCL_SOCKET_IFNAME; Open
    MPI's parameter btl_tcp_if_include is for our own payload.
    """
    if _over_verbs(fabric):
        return (("NCCL_IB_HCA", f"={rail}"),)
    return (("NCCL_SOCKET_IFNAME", f"={rail}"), ("OMPI_MCA_btl_tcp_if_include", rail))


def bad_rails(busbw: Mapping[str, float | None]) -> tuple[str, ...]:
    """Return the rails at fault, by their bus bandwidths in GB/s; None: it failed.

    None is returned when all are: then it isn't the rail.
    """
    speeds = [speed for speed in busbw.values() if speed is not None]
    if not speeds:
        return ()
    least = SLOW_SHARE * median(speeds)
    return tuple(rail for rail, speed in busbw.items() if speed is None or speed < least)


def _over_verbs(fabric: Fabric | None) -> bool:
    return fabric is not None and fabric.nic_kind in _VERBS


def _can_choose(fabric: Fabric) -> bool:
    own_plugin = fabric.nic_kind == "roce" and "NET/IB" not in fabric.channels
    return (_over_verbs(fabric) and not own_plugin) or "NET/Socket" in fabric.channels
