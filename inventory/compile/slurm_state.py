"""Where controllers keep the queue: on their own disk, or on the storage that they share."""

from __future__ import annotations

from ...schemas.derived.storage import mount_point
from ...schemas.spec import ClusterSpec, SlurmScheduler
from .steps import Json

JWT_SECRET = "slurm-jwt"  # noqa: S105  # the secret's name
"""Name of the secret that holds the key of the tokens of slurmrestd's clients."""


def state_variables(spec: ClusterSpec) -> dict[str, Json]:
    """Return where StateSaveLocation is; nothing where it is the controller's own disk.

    The folder has the cluster's name: several clusters may keep their state on one file system.
    """
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler) or slurm.state_save is None:
        return {}
    mount = mount_point(spec.storage[slurm.state_save])
    return {
        "slurm_state": f"{mount.rstrip('/')}/gcluster/{spec.name}/slurmctld",
        "slurm_state_mount": mount,
    }


def has_rest_api(spec: ClusterSpec) -> bool:
    """Whether slurmrestd runs on the controllers."""
    return isinstance(spec.scheduler, SlurmScheduler) and spec.scheduler.rest_api
