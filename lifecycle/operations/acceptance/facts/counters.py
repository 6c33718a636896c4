"""Error counters of the nodes' ports before and after the tests, and what their growth means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from .....inventory.hosts import Host
from ....nodes.ssh import SshSession, Unreachable

_LIMIT_S = 60
_ASK = """
for f in /sys/class/infiniband/*/ports/*/*counters/*; do
  [ -f "$f" ] && echo "$f $(cat "$f" 2>/dev/null)"
done
for d in /sys/class/net/*; do
  [ -e $d/device ] || [ "${d##*/}" = eth0 ] || continue
  for f in rx_errors tx_errors rx_dropped tx_dropped rx_crc_errors tx_carrier_errors rx_bytes; do
    echo "$d/$f $(cat $d/statistics/$f)"
  done
  command -v ethtool >/dev/null && ethtool -S ${d##*/} 2>/dev/null | \
    sed -n -E "s,^ *((rx|tx)_prio[0-9]_pause|rx_(discards|symbol_err)_phy): ([0-9]+),$d/\\1 \\4,p"
done
true
"""
_NAME = re.compile(
    r"/sys/class/(?:infiniband|net)/([^/]+)/(?:ports/(\d+)/(?:hw_)?counters/)?(\w+) (\d+)"
)
ERRORS = frozenset(
    {
        *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"),
        *("port_rcv_remote_physical_errors", "port_xmit_discards", "local_link_integrity_errors"),
        *("excessive_buffer_overrun_errors", "VL15_dropped", "packet_seq_err", "out_of_sequence"),
        *("local_ack_timeout_err", "rx_errors", "tx_errors", "rx_crc_errors", "tx_carrier_errors"),
        "rx_symbol_err_phy",
    }
)
"""Counters that a healthy port doesn't move under load (InfiniBand specification, PortCounters;
hw_counters: kernel, Documentation/ABI/stable/sysfs-class-infiniband)."""
CONGESTION = re.compile(
    r"np_cnp_sent|rp_cnp_handled|np_ecn_marked\w*|(rx|tx)_prio\d_pause"
    r"|rx_dropped|tx_dropped|rx_discards_phy"
)
"""Counters of congestion: they may increase, and the increase is reported."""
_WORD_BYTES = 4
"""port_rcv_data counts in 32-bit words (same document)."""
BER = 1e-12
"""Symbol errors a bit beyond which a link is bad: ibdiagnet's own threshold (NVIDIA, IBUtils2
Documentation 2.26, "Bit Error Rate"; symbol errors are those left after correction)."""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """Counters at one time."""

    nodes: dict[str, dict[str, int]]
    """Node -> "PORT NAME" -> count."""
    silent: dict[str, str] = {}
    """Nodes that gave no answer -> why."""


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """What moved at one node."""

    errors: dict[str, int]
    congestion: dict[str, int]
    ber: dict[str, float]
    """Port -> symbol errors a received bit."""


def read_counters(session: SshSession, hosts: Sequence[Host]) -> Counters:
    """Read the counters of all nodes at once."""
    answers = session.run_many(hosts, _ASK, timeout_s=_LIMIT_S)
    return Counters(
        nodes={
            name: counters_of(answer.stdout)
            for name, answer in answers.items()
            if not isinstance(answer, Unreachable)
        },
        silent={n: a.reason for n, a in answers.items() if isinstance(a, Unreachable)},
    )


def counters_of(text: str) -> dict[str, int]:
    """Return "PORT NAME" -> count of a node's answer: "mlx5_0/1 symbol_error"."""
    found = {}
    for line in text.splitlines():
        if match := _NAME.fullmatch(line):
            device, port, name, count = match.groups()
            found[f"{device}/{port} {name}" if port else f"{device} {name}"] = int(count)
    return found


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> Growth:
    """Return the increases between two readings; a counter that fell was reset to 0."""
    moved = {
        name: count - before.get(name, 0) if count >= before.get(name, 0) else count
        for name, count in after.items()
    }
    ber = {}
    for name, count in moved.items():
        port, _, what = name.partition(" ")
        bits = moved.get(f"{port} port_rcv_data", 0) * _WORD_BYTES * 8
        if what == "symbol_error" and bits:
            ber[port] = count / bits
    return Growth(
        errors={n: c for n, c in moved.items() if c and n.partition(" ")[2] in ERRORS},
        congestion={
            n: c for n, c in moved.items() if c and CONGESTION.fullmatch(n.partition(" ")[2])
        },
        ber=ber,
    )
