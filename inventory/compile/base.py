"""The role base: names of the hosts all must find, people, time."""

from __future__ import annotations

import msgspec

from ...schemas.spec import ClusterSpec, PoolRole, User
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Stage, Step


@role_compiler("base", after=("bundle_source",))
def base_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role base.

    Every node finds controllers and logins by name, never the compute nodes: the scheduler tells
    their addresses, and a new one must not change the others. Who may log in depends on the pool's
    role.
    """
    spec = node.spec
    users = [_user(user) for user in spec.local_users]
    time: dict[str, Json] = {"base_time": node.has_own_clock}
    names = [{"name": host.name, "address": host.address} for host in node.cluster.found_by_name]
    configure = {"base_cluster": spec.name, "base_hosts": names, "base_users": users, **time}
    ssh = _ssh(spec, node.pool.role)
    configure |= ssh
    return [
        Step(stage=Stage.BASE, role="base", phase="preflight", variables={}),
        Step(stage=Stage.BASE, role="base", phase="install", variables=time, spares_jobs=True),
        Step(
            stage=Stage.BASE, role="base", phase="configure", variables=configure, spares_jobs=True
        ),
        Step(stage=Stage.BASE, role="base", phase="verify", variables={"base_users": users} | ssh),
    ]


def _ssh(spec: ClusterSpec, role: PoolRole) -> dict[str, Json]:
    """Return who can't log in to the nodes of a role, and whose certificates they take."""
    denied = [u.name for u in spec.local_users if u.login is not None and role not in u.login]
    said = {"base_denied_users": denied, "base_ssh_authorities": spec.ssh_authorities}
    return {name: value for name, value in said.items() if value}


def _user(user: User) -> Json:
    """Return an account with every default filled in."""
    gid = user.uid if user.gid is None else user.gid
    said = msgspec.structs.asdict(user) | {"gid": gid}
    del said["login"]
    return said
