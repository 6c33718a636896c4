"""The role self_converge: nodes that set themselves up, and the collector of their reports.

Beyond a few hundred nodes one machine can't push to all of them. Each node then pulls a signed
bundle of its pool's steps from the controller's package mirror, and reports to the collector there,
which submits one Slurm job per node where a step needs the node drained; licences limit how many
are out of service at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....schemas.spec import ClusterSpec
from ...hosts import Host
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from .packages import PACKAGE_MIRROR_PORT

COLLECTOR_PORT = 8482
"""TCP port on the controller of the collector, to which nodes report."""

SIGNERS_SECRET = "converge-signers"  # noqa: S105  # the name of a public key, kept where keys are
"""Whose signature nodes trust. It reaches them as secrets do, over SSH, and never by a bundle."""

_POLL_INTERVAL_S = 60
_SIMULATED_POLL_INTERVAL_S = 5


def licence(pool: str) -> str:
    """Return the Slurm licence that a node of a pool holds while it is changed."""
    return f"gcluster_update_{pool}"


def licences(spec: ClusterSpec, compute: Mapping[str, Sequence[Host]]) -> list[Json]:
    """Return the licences of all pools: as many as nodes may be out of service at once."""
    return [
        {"name": licence(pool), "count": spec.pools[pool].update.at_once(len(hosts))}
        for pool, hosts in sorted(compute.items())
    ]


@role_compiler("self_converge", after=("allreduce",))
def self_converge_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role self_converge; none where the spec doesn't have it.

    The first controller has the package mirror and the collector. Simulated nodes share a machine
    and poll often.
    """
    role = node.pool.role
    if not node.cluster.pulls:
        return []
    if role == "controller":
        collector: dict[str, Json] = {"self_converge_role": "collector"}
        return [
            _step("install", {}),
            _step("configure", collector | {"self_converge_collector_port": COLLECTOR_PORT}),
            _step("verify", collector),
        ]
    if role != "compute":
        return []
    address = node.cluster.controllers[0].address or node.cluster.controllers[0].name
    configure: dict[str, Json] = {
        "self_converge_role": "node",
        "self_converge_cluster": node.spec.name,
        "self_converge_pool": node.name,
        "self_converge_mirror": f"http://{_bracketed(address)}:{PACKAGE_MIRROR_PORT}/converge",
        "self_converge_collector": f"http://{_bracketed(address)}:{COLLECTOR_PORT}/report",
        "self_converge_interval": _SIMULATED_POLL_INTERVAL_S
        if node.cluster.simulated
        else _POLL_INTERVAL_S,
    }
    secrets = {"self_converge_signers_file": SIGNERS_SECRET}
    return [
        _step("install", {}),
        _step("configure", configure, secrets),
        _step("verify", {"self_converge_role": "node"}),
    ]


def _bracketed(address: str) -> str:
    """Return an address in the form of a URL."""
    return f"[{address}]" if ":" in address else address


def _step(phase: Phase, variables: dict[str, Json], secrets: dict[str, str] | None = None) -> Step:
    """Return a step; jobs don't feel a timer, nor a server on the controller."""
    return Step(
        stage=Stage.SCHEDULER,
        role="self_converge",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )
