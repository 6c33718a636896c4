"""What an AllReduce is to prove, and the verdict on whether it did."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ..launch import Collective

Code: TypeAlias = Literal[
    "wrong-result",
    "unchecked",
    "missing-rank",
    "wrong-transport",
    "no-transport",
    "no-gpudirect",
    "no-nvls",
    "through-host-memory",
    "dead-rail",
    "slow-rail",
    "below-floor",
    "too-small-sweep",
    "truncated",
    "aborted",
    "unreadable",
]
"""Why an AllReduce did not prove what it was to prove."""

Remark: TypeAlias = Literal[
    "no-floor",
    "rails-not-counted",
    "no-nvls",
    "through-host-memory",
    "one-ring-not-shown",
    "link-not-shown",
    "other-gpu",
    "nccl-warning",
]
"""A note that fails nothing."""


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """What was to carry the messages."""

    fabric: str
    """The fabric class between nodes."""
    channels: tuple[str, ...] = ()
    """How NCCL's channel lines may name it, as patterns of fnmatch."""
    nic_kind: str | None = None
    """Kind of NIC: efa, infiniband, roce ...; None: none or any."""
    rdma: bool = False
    """Whether NICs are to reach GPU memory themselves."""
    nvls: bool = False
    """Whether the switch between a node's GPUs can reduce: NVLink 4 and later."""
    domain_ranks: int = 0
    """GPUs of an NVLink domain of several nodes, in which P2P/MNNVL may carry messages in addition
    to the fabric; 0: NVLink ends at the node."""
    simulated: bool = False
    """Whether the GPUs are simulated: the payload's own line then names the transport."""


class Rails(msgspec.Struct, frozen=True, kw_only=True):
    """What NICs of each node were to carry the messages, every one its part."""

    count: int
    """How many; 0: not known, then as many as carry messages on most nodes."""
    layer: str = ""
    """Their link layer: InfiniBand, Ethernet, socket; "": any of devices with RDMA."""
    gbps: float = 0
    """Least speed of a link in Gb/s; 0: not known."""
    devices: tuple[str, ...] = ()
    """Their names; (): not known, then those that carry messages."""
    domain_nodes: int = 1
    """Nodes that NVLink joins: what a message sends out of their domain they share among them."""
    uncounted: str = ""
    """Why no counter shows what each carries; "": there are some."""


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What an AllReduce was to prove, or another collective of nccl-tests."""

    ranks: int
    collective: Collective = "all_reduce"
    min_bytes: int | None = None
    """Smallest requested message; None: as the log says."""
    max_bytes: int | None = None
    """Largest requested message; None: as above."""
    factor: int | None = None
    """Factor between message sizes; None: as the log says, or 2."""
    reach_bytes: int = 0
    """The sweep must have a message of this size at least: bandwidth is judged from there on."""
    groups: int = 1
    """Communicators that the ranks are split into, each with as many of every node."""
    nodes: tuple[str, ...] = ()
    """Hosts that must each have a rank; empty: any hosts will do."""
    node_count: int | None = None
    """Number of hosts, all with equally many ranks; None: not checked."""
    gpu: str = ""
    """GPU model that the floor is for: "H100"."""
    wire: Wire | None = None
    """None: any transport will do."""
    rails: Rails | None = None
    """None: no NIC is to carry anything, or any will do."""
    iterations: int | None = None
    """Timed runs of each size and half; None: as the log says."""
    floor: float | None = None
    """Least bus bandwidth in GB/s (10^9 bytes) at the largest size; None: none is required."""
    floor_reason: str = ""
    """What an automatic floor is made of, or why there is none; "" when it was written or none."""
    exit_status: int = 0
    """Exit status of the launcher; 0 for a saved log, which doesn't have it."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why it failed."""

    code: Code
    message: str


class Warned(msgspec.Struct, frozen=True, kw_only=True):
    """Notes for the user that failed nothing."""

    code: Remark
    message: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the AllReduce proved what it was to prove. Bandwidths in GB/s (10^9 bytes)."""

    verdict: Literal["pass", "fail"]
    reasons: tuple[Reason, ...]
    ranks: int
    """Ranks that introduced themselves."""
    wrong: float | None
    """Wrong values over all sizes; None: they weren't counted."""
    largest: int | None
    """Largest message in bytes."""
    busbw: float | None
    """Bus bandwidth at the largest message, the lower of out of place and in place."""
    floor: float | None
    transport: str
    """What carried the messages, as observed: "ethernet btl=tcp"; "" when nothing was."""
    simulated: bool
    """Whether the payload reports that its GPUs are simulated."""
    floor_reason: str = ""
    """What an automatic floor is made of, or why there is none: "no floor: ..."."""
    warnings: tuple[Warned, ...] = ()
    fabric: str = ""
    """The fabric class that was to carry it; "" when any would do."""
    rails: str = ""
    """What is proven of each rail of each node, or why nothing is; "" where none takes part."""
    bad_rails: tuple[tuple[str, str], ...] = ()
    """(node, device) of the rails that were dead or slow."""

    @property
    def passed(self) -> bool:
        """Whether it is a pass."""
        return self.verdict == "pass"
