"""The role self_converge: nodes that set themselves up, and the desk on the controller they tell.

Past a few hundred nodes one machine can't push to all of them. Each node then pulls a signed
bundle of its pool's steps from the controller's depot, and tells the desk there how it went. The
desk asks Slurm for one job a node where a step needs the node drained; licences are how many may
be out of service at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...schemas.spec import ClusterSpec, PoolRole
from ..hosts import ClusterInventory, Host
from .depot import DEPOT_PORT
from .steps import Json, Phase, Stage, Step

DESK_PORT = 8482
"""TCP port on the controller of the desk, which nodes tell how they are."""

SIGNERS_SECRET = "converge-signers"  # noqa: S105  # the name of a public key, kept where keys are
"""Whose signature nodes trust. It reaches them as secrets do, over SSH, and never by a bundle."""

_LOOK_EVERY_S = 60
_LOOK_EVERY_SIMULATED_S = 5


def pulls(spec: ClusterSpec, inventory: ClusterInventory) -> bool:
    """Say whether the compute nodes converge themselves."""
    nodes = sum(h.role == "compute" and h.connection == "ssh" for h in inventory.hosts)
    return spec.converge == "pull" and nodes > 0 and bool(inventory.with_role("controller"))


def licence(pool: str) -> str:
    """Return the Slurm licence that a node of a pool holds while it is changed."""
    return f"gcluster_update_{pool}"


def licences(spec: ClusterSpec, compute: Mapping[str, Sequence[Host]]) -> list[Json]:
    """Return the licences of all pools: as many as nodes may be out of service at once."""
    return [
        {"name": licence(pool), "count": spec.pools[pool].update.at_once(len(hosts))}
        for pool, hosts in sorted(compute.items())
    ]


def self_converge_steps(
    pool: str, role: PoolRole, controllers: Sequence[Host], *, cluster: str, simulated: bool
) -> list[Step]:
    """Return the steps of role self_converge for the hosts of one pool.

    Args:
        pool: its name.
        role: of the pool; logins have none of it.
        controllers: the first has the depot and the desk.
        cluster: its name, whose signer nodes trust.
        simulated: nodes of one machine, which look often.
    """
    if role == "controller":
        desk: dict[str, Json] = {"self_converge_role": "desk"}
        return [
            _step("install", {}),
            _step("configure", desk | {"self_converge_desk_port": DESK_PORT}),
            _step("verify", desk),
        ]
    if role != "compute":
        return []
    address = controllers[0].address or controllers[0].name
    configure: dict[str, Json] = {
        "self_converge_role": "node",
        "self_converge_cluster": cluster,
        "self_converge_pool": pool,
        "self_converge_depot": f"http://{_bracketed(address)}:{DEPOT_PORT}/converge",
        "self_converge_desk": f"http://{_bracketed(address)}:{DESK_PORT}/report",
        "self_converge_interval": _LOOK_EVERY_SIMULATED_S if simulated else _LOOK_EVERY_S,
    }
    secrets = {"self_converge_signers_file": SIGNERS_SECRET}
    return [
        _step("install", {}),
        _step("configure", configure, secrets),
        _step("verify", {"self_converge_role": "node"}),
    ]


def _bracketed(address: str) -> str:
    """Return an address as it stands in a URL."""
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
