"""The role pam_slurm_adopt: only people with a job on a machine log in there, into their job."""

from __future__ import annotations

from ...schemas.spec import ClusterSpec, DirectoryUsers, SlurmScheduler
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler("pam_slurm_adopt", after=("firmware",))
def pam_slurm_adopt_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role pam_slurm_adopt: for compute machines under Slurm.

    Containers have no cgroups that a login could be put into; where a site makes some, Slurm takes
    all nodes for such. It comes last, when Slurm runs and
    what it asks for is there.
    """
    slurm = node.spec.scheduler
    made_here = any(site.is_made_here for site in node.spec.sites.values())
    if not isinstance(slurm, SlurmScheduler) or node.pool.role != "compute":
        return []
    if made_here or not node.is_machine:
        return []
    if slurm.node_logins == "any":
        nobody: dict[str, Json] = {"pam_slurm_adopt_jobs_only": False}
        return [_step("configure", nobody), _step("verify", nobody)]
    return [
        _step("install", {}),
        _step("configure", _exempt(node.spec)),
        _step("verify", {}),
    ]


def _exempt(spec: ClusterSpec) -> dict[str, Json]:
    """Return who needs no job: administrators. root and gcluster's own login the role knows."""
    users = [user.name for user in spec.local_users if user.sudo]
    groups = list(spec.users.admin_groups) if isinstance(spec.users, DirectoryUsers) else []
    said = {"pam_slurm_adopt_users": users, "pam_slurm_adopt_groups": groups}
    return {name: value for name, value in said.items() if value}


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(
        stage=Stage.MONITORING,
        role="pam_slurm_adopt",
        phase=phase,
        variables=variables,
        spares_jobs=True,
    )
