"""What nodes reported to their controller's collector, read in one SSH exec for all of them."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from .....inventory.hosts import Host
from .....schemas.structure.decoding import learn
from ....nodes.converge.stamps import Stamps, read_stamps
from ....nodes.ssh import SshSession, Unreachable

T = TypeVar("T")

DIRECTORY = "/var/lib/gcluster/reports"
"""On the controller: NODE.json, the newest report of each; POOL.stopped where too many failed;
collector.silent while Slurm refuses the collector's requests."""

# Nodes of a pool carry the same stamps, so their reports shrink to a hundredth.
_READ = (
    f"cd {DIRECTORY} 2>/dev/null || exit 0; "
    "{ date +%s; find . -name '*.json' ! -name '.*' -exec cat {} +; echo ---; "
    "find . -name '*.stopped' ! -name '.*' -exec cat {} +; echo ---; "
    "cat collector.silent 2>/dev/null; } | gzip -1 | base64 -w 0"
)
_LIMIT_S = 60
_SLACK_S = 30
_MISSED = 3
"""A report counts until three more should have come."""


class Report(msgspec.Struct, frozen=True):
    """The report of one node."""

    node: str
    pool: str
    state: str
    """converged, converging, failed, waiting, blocked, refused or away."""
    serial: int
    received: int
    """Seconds since 1970, by the controller's clock."""
    stamps: dict[str, str] = {}
    reason: str = ""
    step: str = ""
    task: str = ""
    interval: int = 60
    host_key: str = ""


class Stopped(msgspec.Struct, frozen=True):
    """A pool in which too many nodes failed for any more to be drained."""

    pool: str
    serial: int
    failed: tuple[str, ...] = ()


class Silent(msgspec.Struct, frozen=True):
    """Why the collector can't have Slurm drain nodes."""

    reason: str


class Reports(msgspec.Struct, frozen=True):
    """All of them, at one moment."""

    now: int
    """Seconds since 1970, by the controller's clock."""
    nodes: dict[str, Report]
    stopped: dict[str, Stopped]
    silent: str = ""
    """Why Slurm drains no node; "" where the collector can request it."""

    def fresh(self, host: Host) -> Report | None:
        """Return a host's report if it is recent, and of the machine that has this name now."""
        report = self.nodes.get(host.name)
        if report is None or self.now - report.received > _MISSED * report.interval + _SLACK_S:
            return None
        pinned = host.ssh.host_keys
        return report if not pinned or report.host_key in pinned else None


NOTHING = Reports(now=0, nodes={}, stopped={})


def read_reports(session: SshSession, controller: Host) -> Reports | Unreachable:
    """Read all reports from the controller; a cluster without a collector has none."""
    answer = session.run(controller, _READ, timeout_s=_LIMIT_S)
    if isinstance(answer, Unreachable):
        return answer
    return parse(answer.stdout) if answer.stdout.strip() else NOTHING


def parse(text: str) -> Reports | Unreachable:
    """Read the answer; one that was cut short is none."""
    try:
        plain = gzip.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, OSError, EOFError, zlib.error):
        return Unreachable(reason="its nodes' reports could not be read: the answer was cut short")
    now, _, rest = plain.partition(b"\n")
    nodes, stopped, silent = rest.split(b"---\n")
    return Reports(
        now=int(now),
        nodes={report.node: report for report in _decoded(nodes, Report)},
        stopped={note.pool: note for note in _decoded(stopped, Stopped)},
        silent="".join(note.reason for note in _decoded(silent, Silent)),
    )


def _decoded(lines: bytes, kind: type[T]) -> Iterator[T]:
    learn(kind)
    decoder = msgspec.json.Decoder(kind)
    for line in lines.splitlines():
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError:
            continue  # no report of ours: the node itself is queried


def read_reported_stamps(
    session: SshSession, hosts: Sequence[Host]
) -> dict[str, Stamps | Unreachable]:
    """Return host -> its stamps: as it reported lately, else as it answers over SSH.

    A report of a machine that had the name before, or an old one, is no answer.
    """
    controllers = [host for host in hosts if host.role == "controller"]
    known: dict[str, Stamps | Unreachable] = {}
    if controllers:
        session.trust(hosts)
        reports = read_reports(session, controllers[0])
        if not isinstance(reports, Unreachable):
            reports_by_host = {h.name: reports.fresh(h) for h in hosts if h.role == "compute"}
            known |= {
                name: dict(report.stamps) for name, report in reports_by_host.items() if report
            }
    return known | read_stamps(session, [host for host in hosts if host.name not in known])
