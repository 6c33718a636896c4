"""Waiting until the scheduler hears from nodes again that it lost for a moment.

A slurmctld that starts again, or finds munged away, counts nodes as silent ("idle*") until they
answer its next ping: nothing starts there, and whoever looks in between takes them for broken.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from ..rolling.roll import Clock
from ..rolling.service import NodeService, ServiceSilent

ANSWERS_S = 120.0
"""Seconds: a little over Slurm's pings, one each third of SlurmdTimeout, 300 s where unset
(slurm.conf(5), Slurm 25.05)."""
_POLL_S = 1.0


def wait_for_answers(service: NodeService, nodes: Collection[str], clock: Clock) -> None:
    """Wait until none of the nodes that serve is silent, for ANSWERS_S at most.

    Nodes that are out of service are not waited for: a dead one answers nobody. Neither is a
    scheduler that says nothing itself.
    """
    until = clock.now() + ANSWERS_S
    with suppress(ServiceSilent):
        while clock.now() < until:
            if not any(node.silent and not node.out for node in service.look(nodes).values()):
                return
            clock.sleep(_POLL_S)
