"""A gcluster process that kills itself (SIGKILL) at one of its writes or calls: for test_chaos.py.

Usage: chaos_worker.py up|down SPEC NUMBER. It ends at the numbered moment, or well when it has
fewer. What makes and removes machines is the real thing; nodes are not converged and no job runs,
as that makes nothing that could be left behind.
"""

from __future__ import annotations

import os
import signal
import sys

from tests.torture.process import at_moment

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.scheduler import phases
from gcluster.lifecycle.state import StateStore
from gcluster.lifecycle.status.observe import Observation
from gcluster.lifecycle.up import apply
from gcluster.lifecycle.up.nodes import NodesResult
from gcluster.lifecycle.up.up import up
from gcluster.stacks.local.engine import Engine

POINTS = ((StateStore, ("put_new", "put", "delete")), (Engine, ("call",)))
"""Every write of state, and every call of the container engine: each is hit before and after."""


def as_they_are(
    _run: object, _sites: object, after: Observation, *_: object, **__: object
) -> NodesResult:
    """Take the nodes as they came up."""
    return NodesResult(inventory=after.existing, failed={}, diagnostics=(), below_quorum=())


def main() -> int:
    """Do it; return the command's exit code."""
    verb, spec, number = sys.argv[1:]
    at_moment(int(number), lambda: os.kill(os.getpid(), signal.SIGKILL), POINTS)
    if verb == "down":
        cluster = open_cluster(spec, running=True)
        return int(down(cluster, silent, confirm=lambda _: True).exit_code)
    for module, name, double in (
        (apply, "converge_nodes", as_they_are),
        (apply, "pass_gate", lambda *_: None),
        (phases, "bring_queue", lambda *_: None),
        (phases, "wait_for_answers", lambda *_: None),
        (phases, "settle", lambda *_: ()),
    ):
        setattr(module, name, double)
    allowed = frozenset({"pool:gpu", "pool:head", "controller:head"})
    return int(up(open_cluster(spec), silent, confirm=lambda _: True, allow=allowed).exit_code)


if __name__ == "__main__":
    sys.exit(main())
