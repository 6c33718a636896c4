"""NCCL's own lines (NCCL_DEBUG=INFO): over what its channels run, and who is in a communicator.

Only channel lines prove a transport: "Using network X" is what NCCL hopes for. Formats: NCCL's
src/transport/{net,p2p,shm,coll_net}.cc and src/init.cc, versions 2.4 to 2.28; RCCL prints the same
and appends "comm 0x... nRanks N" to a channel.
"""

from __future__ import annotations

import re
from collections import defaultdict

from .log import Communicator, NcclFacts, Path

MOST_PAIRS = 500_000
"""Pairs of ranks that are kept: rings and trees over 10,000 GPUs have fewer."""
MOST_LINES = 10
"""Warnings that are kept."""

_CHANNEL = re.compile(
    r"(?:Channel|Ring) \d+(?:/\d+)? : (\d+)\[[^\]]*\] -> (\d+)\[[^\]]*\]"
    r"(?: \[(?:send|receive)\])? via"
    r" (?:(NET/[^/:\n]+)(?=/\d)|((?:P2P|SHM)/[^/:\n]*?)(?=[ ]comm[ ]0x|[/(\n]|\s*$))([^\n]*)"
)
_COLLNET = re.compile(
    r"Coll(?:Net)? \d+(?:/\d+)? : (\d+) \[(?:send|receive)\] via (COLLNET/[^/\s]+)([^\n]*)"
)
_COMM = re.compile(r"comm 0x[0-9a-fA-F]+ rank (\d+) n[rR]anks (\d+)(?: nNodes (\d+))?")
_PROVIDER = re.compile(r"[Ss]elected [Pp]rovider is ([\w;.-]+)")
_PORT = re.compile(r"\[\d+\][\w.-]+:\d+/(IB|RoCE)")
_NVLS = re.compile(r"NVLS multicast support is (not )?available")
_TROUBLE = re.compile(
    r"NCCL WARN .*|NET/IB : Got async event.*|NET/OFI No eligible providers.*"
    r"|aws-ofi-nccl initialization failed.*|Failed to initialize NET plugin.*"
)

_WORDS = ("comm 0x", "rovider", "NET/IB", "NVLS multicast", "NCCL WARN", "NET plugin")
"""One of these is in every other relevant line; searching for them is fast."""


class NcclReader:
    """Takes NCCL's lines as they come, and keeps facts, not lines: a log may have millions."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._paths: defaultdict[tuple[str, bool], set[tuple[int, int]]] = defaultdict(set)
        self._kept = 0
        self._communicators: dict[Communicator, set[int]] = {}
        self._providers: dict[str, None] = {}
        self._ports: dict[str, None] = {}
        self._nvls: dict[bool, None] = {}
        self._lines: dict[str, None] = {}

    def feed(self, line: str) -> None:
        """Parse a line that contains "NCCL", with or without a prefix."""
        if " via " in line:
            self._channel(line)
        elif not any(word in line for word in _WORDS):
            return
        elif found := _COMM.search(line):
            rank, ranks, nodes = found.groups()
            key = Communicator(ranks=int(ranks), nodes=int(nodes) if nodes else None)
            self._communicators.setdefault(key, set()).add(int(rank))
        elif provider := _PROVIDER.search(line):
            self._providers[provider[1]] = None
        elif nvls := _NVLS.search(line):
            self._nvls[not nvls[1]] = None
        elif trouble := _TROUBLE.search(line):
            if len(self._lines) < MOST_LINES:
                self._lines[trouble[0].strip()[:200]] = None
        elif ": Using" in line:
            self._ports.update(dict.fromkeys(_PORT.findall(line)))

    def _channel(self, line: str) -> None:
        at = max(line.find("Channel "), line.find("Ring "), line.find("Coll"))
        if at < 0:
            return
        if channel := _CHANNEL.match(line, at):
            sender, receiver, network, local, rest = channel.groups()
            self._add((network or local).rstrip(), rest, int(sender), int(receiver))
        elif channel := _COLLNET.match(line, at):
            rank, network, rest = channel.groups()
            self._add(network, rest, int(rank), int(rank))

    def result(self) -> NcclFacts:
        """Return what was read so far."""
        return NcclFacts(
            paths=tuple(
                Path(via=via, gdr=gdr, pairs=tuple(sorted(pairs)))
                for (via, gdr), pairs in self._paths.items()
            ),
            communicators=tuple(self._communicators),
            introduced=len(set().union(*self._communicators.values())),
            providers=tuple(self._providers),
            link_layers=tuple(self._ports),
            nvls=tuple(self._nvls),
            lines=tuple(self._lines),
        )

    def _add(self, via: str, rest: str, sender: int, receiver: int) -> None:
        pairs = self._paths[via[:60], "/GDRDMA" in rest]
        if self._kept < MOST_PAIRS and (sender, receiver) not in pairs:
            pairs.add((sender, receiver))
            self._kept += 1
