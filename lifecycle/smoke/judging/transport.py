"""Whether the requested fabric carried the messages: proven by channel lines alone."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from ..reading.log import AllReduceLog, Path
from .verdict import Expectation, Reason, Warned, Wire

_Slow: TypeAlias = Literal["no-nvls", "through-host-memory"]
_BETWEEN_NODES = ("NET/", "COLLNET/", "P2P/MNNVL")
_IN_ONE_DOMAIN = "nvlink"
_LINK_LAYERS = {"infiniband": "IB", "roce": "RoCE"}
_VERBS = ("NET/IB", "COLLNET/")


def _transport(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    wire = expected.wire
    if wire is None:
        return
    if wire.simulated and not log.nccl.paths:
        yield from _payload(log, expected)
        return
    if any(transport.simulated for transport in log.transports):
        yield _wrong("the GPUs of this log are simulated")
    nodes = expected.node_count or len({rank.host for rank in log.ranks})
    if nodes > 1:
        yield from _between(log, wire)
    elif expected.ranks > 1:
        yield from _inside(log, wire)
    if wire.rdma:
        yield from _without_gpudirect(log, wire, has_hosts=expected.groups == 1)
        if nodes > 1:
            yield from (Reason(code=code, message=text) for code, text in _slowed(log, wire))


TRANSPORT = (_transport,)


def _payload(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    """Evaluate our own payload's lines; on one machine its ranks may share memory."""
    if not log.transports:
        yield _none("no line shows the transport")
    alone = (expected.node_count or expected.ranks) == 1
    for transport in log.transports:
        if transport.kind != "ethernet" and not alone:
            yield _wrong(f"carried by {transport.kind} {transport.details}, not by the network")


def _between(log: AllReduceLog, wire: Wire) -> Iterator[Reason]:
    if not wire.channels:
        yield _none(f"how NCCL names {wire.fabric} is not known (channels: of the fabric class)")
        return
    paths = _crossing(log)
    foreign = sorted({path.via for path in paths if not _is(path, wire, allows_fallback=True)})
    for via in foreign:
        yield _wrong(f"{via} carried messages between nodes, not {wire.fabric}")
    if not any(_is(path, wire) for path in paths):
        if not foreign:
            named = " or ".join(wire.channels)
            yield _none(f"no channel line shows {named} between nodes (NCCL_DEBUG=INFO prints it)")
        return
    if wire.nic_kind == "efa":
        yield from _provider(log)
    layer = _LINK_LAYERS.get(wire.nic_kind or "")
    if layer and any(path.via.startswith(_VERBS) for path in paths):
        for other in sorted(set(log.nccl.link_layers) - {layer}):
            yield _wrong(f"the ports in use are {other}, not {layer}")


def _provider(log: AllReduceLog) -> Iterator[Reason]:
    others = sorted(set(log.nccl.providers) - {"efa"})
    if others:
        yield _wrong(f"libfabric used the provider {', '.join(others)}, not efa")
    elif not log.nccl.providers and not any(path.gdr for path in _crossing(log)):
        yield _none("no line shows which provider libfabric selected (NET/OFI Selected provider)")


def _inside(log: AllReduceLog, wire: Wire) -> Iterator[Reason]:
    """Judge one node alone: its GPUs reach each other directly, no NIC takes part."""
    others = sorted({p.via for p in log.nccl.paths if not p.via.startswith("P2P/")})
    for via in others:
        yield _wrong(f"{via} carried messages inside the node, not the GPUs' own links")
    if not log.nccl.paths:
        where = "the node" if wire.fabric == _IN_ONE_DOMAIN else f"one node of {wire.fabric}"
        yield _none(f"no channel line shows P2P inside {where} (NCCL_DEBUG=INFO prints it)")


def transport_remarks(log: AllReduceLog, expected: Expectation) -> Iterator[Warned]:
    """Report what slows a fabric down without being another one."""
    wire = expected.wire
    if wire is None or (wire.simulated and not log.nccl.paths):
        return
    over_verbs = any(path.via.startswith(_VERBS) for path in _crossing(log))
    if over_verbs and wire.nic_kind in _LINK_LAYERS and not log.nccl.link_layers:
        text = "no line shows whether the ports are IB or RoCE (NET/IB : Using)"
        yield Warned(code="link-not-shown", message=text)
    nodes = expected.node_count or len({rank.host for rank in log.ranks})
    if not wire.rdma or nodes == 1:
        yield from (Warned(code=code, message=text) for code, text in _slowed(log, wire))


def _slowed(log: AllReduceLog, wire: Wire) -> Iterator[tuple[_Slow, str]]:
    """Yield what keeps a node's GPUs below the speed of their own links: a fault where RDMA is."""
    if wire.nvls and False in log.nccl.nvls:
        which = "some GPUs don't reduce" if True in log.nccl.nvls else "no GPU reduces"
        text = f"{which} inside the NVSwitch (NVLS multicast support is not available)"
        yield "no-nvls", text
    if any(path.via.startswith("SHM/") for path in log.nccl.paths):
        text = "inside nodes some messages go through host memory (SHM), not over NVLink"
        yield "through-host-memory", text


def _without_gpudirect(log: AllReduceLog, wire: Wire, *, has_hosts: bool) -> Iterator[Reason]:
    """Yield ranks whose NIC doesn't reach the GPU; of several communicators no rank is a host's."""
    ranks = {
        rank
        for path in _crossing(log)
        if path.via.startswith("NET/") and not path.gdr and _is(path, wire)
        for pair in path.pairs
        for rank in pair
    }
    if ranks:
        hosts = sorted({r.host for r in log.ranks if has_hosts and r.rank in ranks})
        where = f" (on {', '.join(hosts[:5])}{' ...' if len(hosts) > 5 else ''})" if hosts else ""  # noqa: PLR2004  # enough to go on
        text = f"{len(ranks)} ranks send or receive without GPUDirect RDMA{where}"
        yield Reason(code="no-gpudirect", message=text)


def observed_transports(log: AllReduceLog) -> str:
    """Return what was observed, each path once: "NET/IB, P2P/CUMEM"; "" when nothing was."""
    transports = [f"{t.kind} {t.details}".strip() for t in log.transports]
    return ", ".join(dict.fromkeys([*transports, *(path.via for path in log.nccl.paths)][:20]))


def _crossing(log: AllReduceLog) -> list[Path]:
    """Return the paths that leave a node: by their kind, or by the hosts of their ends."""
    host = {rank.rank: rank.host for rank in log.ranks}
    return [
        path
        for path in log.nccl.paths
        if path.via.startswith(_BETWEEN_NODES)
        or any(a in host and b in host and host[a] != host[b] for a, b in path.pairs)
    ]


def _is(path: Path, wire: Wire, *, allows_fallback: bool = False) -> bool:
    if allows_fallback and wire.domain_ranks and path.via == "P2P/MNNVL":
        return True
    return any(fnmatchcase(path.via, pattern) for pattern in wire.channels)


def _wrong(message: str) -> Reason:
    return Reason(code="wrong-transport", message=message)


def _none(message: str) -> Reason:
    return Reason(code="no-transport", message=message)
