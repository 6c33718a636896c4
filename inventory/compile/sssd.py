"""The role sssd: people of a directory, with one id on every node."""

from __future__ import annotations

from ...schemas.derived.storage import mount_point
from ...schemas.spec import DirectoryUsers
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

DIRECTORY_SECRET = "directory"  # noqa: S105  # the secret's name
"""Name of the secret that holds the password of `bind_dn`."""
_HOMES = "/home"


@role_compiler("sssd", after=("package_sources",))
def sssd_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role sssd; none where the spec lists its users.

    Every node has it: Slurm asks controllers and nodes alike who a user is. It comes before the
    scheduler, and after accounts of the spec's own are gone.
    """
    users = node.spec.users
    if not isinstance(users, DirectoryUsers):
        return []
    asked: dict[str, Json] = {"sssd_url": users.ldap}
    if users.ca is not None:
        asked["sssd_ca"] = users.ca
    ids: dict[str, Json] = {"sssd_min_id": users.ids.min, "sssd_max_id": users.ids.max or 0}
    told: dict[str, Json] = {
        **asked,
        **ids,
        "sssd_base": users.search_base or "",
        "sssd_schema": users.schema,
        "sssd_allow_groups": list(users.allow_groups),
        "sssd_admin_groups": list(users.admin_groups),
        "sssd_make_homes": not _homes_are_served(node),
    }
    secrets: dict[str, str] = {}
    if users.bind_dn is not None:
        told["sssd_bind_dn"] = users.bind_dn
        secrets["sssd_bind_password_file"] = DIRECTORY_SECRET
    probe: dict[str, Json] = {"sssd_probe": users.probe} if users.probe is not None else {}
    return [
        _step("preflight", asked),
        _step("install", {}),
        _step("configure", told, secrets),
        _step("verify", ids | probe),
    ]


def _homes_are_served(node: NodeFacts) -> bool:
    """Whether homes are on storage of the cluster: who serves them makes them."""
    return any(mount_point(storage) == _HOMES for storage in node.spec.storage.values())


def _step(phase: Phase, variables: dict[str, Json], secrets: dict[str, str] | None = None) -> Step:
    """Return a step; jobs that run know their user's number already."""
    return Step(
        stage=Stage.BASE,
        role="sssd",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )
