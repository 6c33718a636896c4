"""Stamps of nodes that report them: one SSH exec on the controller stands for one on each node."""

from __future__ import annotations

from collections.abc import Sequence

from ...inventory.hosts import Host
from ..converge.stamps import Stamps, read_stamps
from ..ssh import SshSession, Unreachable
from .reports import read_reports


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
            told = {h.name: reports.fresh(h) for h in hosts if h.role == "compute"}
            known |= {name: dict(report.stamps) for name, report in told.items() if report}
    return known | read_stamps(session, [host for host in hosts if host.name not in known])
