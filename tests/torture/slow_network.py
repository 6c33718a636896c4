"""Delays what leaves a network namespace and loses a part of it, as tc's netem does.

    python slow_network.py DELAY_MS LOSS_PERCENT      as root, inside the namespace

The kernels of test machines often lack sch_netem: this one takes the packets from an NFQUEUE of
iptables and gives each back late or never (linux/netfilter/nfnetlink_queue.h). When it ends, all
packets pass again.
"""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from random import Random

NETLINK_NETFILTER = 12
QUEUE_PACKET, QUEUE_VERDICT, QUEUE_CONFIG = 0x300, 0x301, 0x302
REQUEST = 1
DROP, ACCEPT = 0, 1
RULE = ("OUTPUT", "-o", "eth0", "-j", "NFQUEUE", "--queue-num", "0", "--queue-bypass")


def message(kind: int, attribute: int, content: bytes) -> bytes:
    """Return a message about queue 0 with one attribute."""
    padded = content + b"\0" * (-len(content) % 4)
    body = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)
    body += struct.pack("=HH", 4 + len(content), attribute) + padded
    return struct.pack("=IHHII", 16 + len(body), kind, REQUEST, 0, 0) + body


def packets(data: bytes) -> Iterator[int]:
    """Yield the numbers of the packets that the kernel reports."""
    while len(data) >= 16:
        length, kind = struct.unpack_from("=IH", data)
        at = 20
        while kind == QUEUE_PACKET and at < length:
            size, attribute = struct.unpack_from("=HH", data, at)
            if attribute == 1:
                yield struct.unpack_from("!I", data, at + 4)[0]
            at += max(4, -(-size // 4) * 4)
        data = data[-(-length // 4) * 4 :]


def main() -> None:
    """Hold each packet for so long, until this process is ended."""
    delay_s, loss = float(sys.argv[1]) / 1000, float(sys.argv[2]) / 100
    draw = Random(1)  # noqa: S311  # which packets are lost, no key
    queue = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    queue.send(message(QUEUE_CONFIG, 1, struct.pack("!BBH", 1, 0, 0)))
    queue.send(message(QUEUE_CONFIG, 2, struct.pack("!IB", 0, 1)))
    queue.send(message(QUEUE_CONFIG, 3, struct.pack("!I", 10_000)))
    subprocess.run(("iptables", "-A", *RULE), check=True)
    sys.stdout.write("slow\n")
    sys.stdout.flush()
    waiting: deque[tuple[float, int]] = deque()
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([queue], [], [], pause)[0]:
            due = time.monotonic() + delay_s
            waiting.extend((due, number) for number in packets(queue.recv(1 << 16)))
        while waiting and waiting[0][0] <= time.monotonic():
            verdict = DROP if draw.random() < loss else ACCEPT
            content = struct.pack("!II", verdict, waiting.popleft()[1])
            queue.send(message(QUEUE_VERDICT, 2, content))


if __name__ == "__main__":
    main()
