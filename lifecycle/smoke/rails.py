"""Rails: the NICs of the same place in every node, tested one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ..ssh import SshSession, Unreachable

if TYPE_CHECKING:
    from ...schemas.catalog import Fabric

SLOW_SHARE = 0.7
"""A rail below this share of the rails' median is at fault: healthy ones are within a few percent
of each other, and a port that came up with half its lanes or speed reaches 0.5."""

_VERBS = frozenset({"infiniband", "roce"})
_HCAS = "ls /sys/class/infiniband 2>/dev/null"
_INTERFACES = (
    "ls -d /sys/class/net/*/device /sys/class/net/eth* 2>/dev/null | cut -d/ -f5 | sort -u"
)


def rails_of(session: SshSession, hosts: Sequence[Host], fabric: Fabric | None) -> tuple[str, ...]:
    """Return the NICs that all of these hosts have; () where single ones can't be chosen.

    NCCL can be kept to one NIC on InfiniBand and RoCE (NCCL_IB_HCA) and on sockets
    (NCCL_SOCKET_IFNAME); the plugins of EFA and Google choose by themselves.
    """
    if fabric is not None and not _can_choose(fabric):
        return ()
    command = _HCAS if _over_verbs(fabric) else _INTERFACES
    answers = session.run_many(hosts, command, timeout_s=20)
    found = [
        set() if isinstance(answer, Unreachable) else set(answer.stdout.split())
        for answer in answers.values()
    ]
    return tuple(sorted(set.intersection(*found))) if found else ()


def rail_environment(rail: str, fabric: Fabric | None) -> tuple[tuple[str, str], ...]:
    """Return the variables that keep ranks to one NIC; "=" asks NCCL for exactly that name.

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
