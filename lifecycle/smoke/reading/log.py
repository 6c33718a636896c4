"""The content of an AllReduce log, as values; nothing here evaluates it."""

from __future__ import annotations

import msgspec


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """One half of a row: out of place or in place."""

    time_us: float | None
    """None: the log has the processor's time in its place, which no bandwidth follows from."""
    algbw: float
    """GB/s (10^9 bytes)."""
    busbw: float
    """GB/s (10^9 bytes)."""
    wrong: float | None
    """Elements with a wrong value; None: they weren't counted (checks off, or an old version)."""
    error: float | None = None
    """Largest error, in logs of nccl-tests 2.11 and older, which count only in the footer."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One message size. Of a table with one half (rccl-tests -O 0) both are that one."""

    size: int
    """Bytes."""
    count: int
    """Elements."""
    type: str
    redop: str
    out_of_place: Half
    in_place: Half

    @property
    def busbw(self) -> float:
        """The lower bus bandwidth of the two halves, in GB/s."""
        return min(self.out_of_place.busbw, self.in_place.busbw)


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank as it introduced itself."""

    rank: int
    host: str
    device: int
    what: str


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """The transport that the payload reports."""

    kind: str
    """ethernet, memory, none, unknown ..."""
    simulated: bool
    details: str
    """As written: "btl=tcp"."""


class Rail(msgspec.Struct, frozen=True, kw_only=True):
    """What one port of a node carried while the ranks ran, by its own counters."""

    host: str
    device: str
    """Device and port: "mlx5_0/1", "rdmap16s27/1", "eth0/0"."""
    layer: str
    """From its link_layer: InfiniBand, Ethernet, Unspecified (EFA); socket: of an interface."""
    gbps: float | None
    """Speed of the link in Gb/s; None: not in the log."""
    sent: int | None
    """Bytes; None: no counter of it can be read, or it was set back."""
    received: int | None


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that the program prints; sizes in bytes."""

    min_bytes: int
    max_bytes: int
    factor: int | None
    """None: sizes grow by a fixed step."""
    step_bytes: int = 0
    """0: sizes grow by a factor."""
    validated: bool | None
    """None: not in the line."""
    iterations: int | None = None
    """Timed runs of a size, in each half; None: not in the line."""


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """The lines after the table."""

    wrong: float | None = None
    """Values out of bounds over all rows; None: the line is missing."""
    wrong_ok: bool = False
    average: float | None = None
    """Mean bus bandwidth over all halves of all rows, in GB/s; None: the line is missing."""
    average_ok: bool = True
    """False: the log has FAILED, since a higher bandwidth was required (NCCL_TESTS_MIN_BW)."""
    concluded: bool = False
    """Whether the line is there with which later versions end."""


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of path that NCCL's channels take, and its ends."""

    via: str
    """As the channel line names it: NET/IB, NET/AWS Libfabric, P2P/CUMEM, SHM/direct."""
    gdr: bool
    """Whether the NIC reads and writes GPU memory itself."""
    pairs: tuple[tuple[int, int], ...]
    """(rank that sends, rank that receives), each once."""


class Communicator(msgspec.Struct, frozen=True, kw_only=True):
    """Number of ranks, from a rank's init line."""

    ranks: int
    nodes: int | None
    """None: not in the line. An NVLink domain of several machines counts as one."""


class NcclFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What NCCL prints with NCCL_DEBUG=INFO."""

    paths: tuple[Path, ...] = ()
    communicators: tuple[Communicator, ...] = ()
    """Each once: more than one means that not all ranks are in the same."""
    introduced: int = 0
    """Ranks that printed their communicator."""
    providers: tuple[str, ...] = ()
    """libfabric's providers: efa, tcp."""
    link_layers: tuple[str, ...] = ()
    """Of the ports in use: IB, RoCE."""
    nvls: tuple[bool, ...] = ()
    """Whether devices can reduce inside the NVSwitch."""
    lines: tuple[str, ...] = ()
    """Warnings and trouble with links and plugins, the first few."""


class AllReduceLog(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was read out of one log."""

    ranks: tuple[Rank, ...] = ()
    options: Options | None = None
    started: bool = False
    """Whether the line is there with which later versions begin."""
    tables: int = 0
    """Number of table heads; more than one: several programs wrote into this log."""
    rows: tuple[Row, ...] = ()
    footer: Footer = Footer()
    transports: tuple[Transport, ...] = ()
    nccl: NcclFacts = NcclFacts()
    rails: tuple[Rail, ...] = ()
    """Ports of all nodes, where the first rank of each counted them."""
    groups: int = 0
    """Number of groups that the ranks were split into, where the list of ranks has it."""
    collective: str = ""
    """Name of the program where it is printed: all_reduce_perf."""
    overflow: bool = False
    """Whether there was more of something than is kept."""
    reduced_to: int | None = None
    """Largest message in bytes that fitted into memory, when it was less than requested."""
    errors: tuple[str, ...] = ()
    """Lines that report a failure."""
    damaged: tuple[str, ...] = ()
    """Lines that belong to the table and can't be read."""
