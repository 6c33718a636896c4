"""Hooks: the cluster's own Ansible roles and scripts at named points, and programs around jobs."""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import FilePath, PoolName, Secret, SpecModel, updates
from .units import Duration

HookStage: TypeAlias = Literal["base", "drivers", "fabric", "storage", "scheduler", "monitoring"]
"""Stages of a convergence, in the order they run."""

VariableName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$(?!\n)",
        description="Letters, digits and underscores; starts with no digit.",
        examples=["site_ntp_servers"],
    ),
]
"""A variable of Ansible's, or of a program's environment."""

VariableValue: TypeAlias = str | bool | int | float | list[Any] | dict[str, Any]
"""Anything that a role may take; Ansible fills in `{{ }}`."""

Sha256: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
"""As `sha256sum` prints it."""

CollectionName: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$(?!\n)", examples=["community.general"]),
]
CollectionVersion: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$(?!\n)",
        description="One version, whole.",
        examples=["11.4.1"],
    ),
]


class Hook(SpecModel, frozen=True):
    """What all hooks have."""

    UPDATES: ClassVar = updates(rolling="pools")

    pools: list[PoolName] = field(default_factory=list)
    """Pools that it is for; empty: all that it can be for."""


class StageHook(Hook, frozen=True):
    """A hook that runs once on each node, and again where it has changed."""

    UPDATES: ClassVar = updates(rolling="before after secrets", none="spares_jobs")

    before: HookStage | None = None
    """Stage that starts when it is done. Default: before scheduler, so that no job starts on a node
    where it has not run."""
    after: HookStage | None = None
    """Stage that is done when it starts."""
    secrets: dict[VariableName, Secret] = field(default_factory=dict)
    """Variables (of a script: of its environment) whose values are secrets."""
    spares_jobs: bool = False
    """Jobs on the node don't feel it; else the node is drained for it."""


class RoleHook(StageHook, frozen=True, tag_field="type", tag="role"):
    """An Ansible role, from a folder next to the spec or from a collection."""

    UPDATES: ClassVar = updates(rolling="path name files tasks collections variables")

    path: Annotated[FilePath | None, Meta(examples=["roles/site_prep"])] = None
    """Folder of the role, from the folder of the spec."""
    name: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$(?!\n)")]
        | None,
        Meta(examples=["acme.hpc.exporter"]),
    ] = None
    """NAMESPACE.COLLECTION.ROLE of a role of a collection."""
    files: dict[str, str] = field(default_factory=dict)
    """The role itself: path in it -> text, or `data:;base64,...`. Read from `path`."""
    tasks: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$(?!\n)", examples=["main"])
    ] = "main"
    """File of the role's tasks that runs."""
    collections: dict[CollectionName, CollectionVersion] = field(default_factory=dict)
    """Collections that the role is of or uses, each in one version; `ansible-galaxy` brings them
    to the machine that runs gcluster, without others that they need."""
    variables: dict[VariableName, VariableValue] = field(default_factory=dict)
    """The role's variables. It also gets gcluster_cluster, gcluster_pool and gcluster_role."""


class ScriptHook(StageHook, frozen=True, tag_field="type", tag="script"):
    """A script that runs on each node as root. One that fails stops the node there."""

    UPDATES: ClassVar = updates(rolling="path text arguments environment", none="sha256 timeout")

    path: Annotated[FilePath | None, Meta(examples=["scripts/mount-cache.sh"])] = None
    """File, from the folder of the spec; its first line names what runs it (#!)."""
    text: str | None = None
    """The program itself. Read from `path`."""
    sha256: Sha256 | None = None
    """SHA-256 that the file must have; another file is refused."""
    arguments: list[str] = field(default_factory=list)
    """Its arguments."""
    environment: dict[VariableName, str] = field(default_factory=dict)
    """Variables of its environment, in addition to GCLUSTER_CLUSTER, GCLUSTER_POOL and
    GCLUSTER_ROLE."""
    timeout: Duration | None = None
    """Longest run; then it is ended and has failed. Default: 10m."""

    @property
    def timeout_s(self) -> int:
        """Seconds that it may run."""
        return 600 if self.timeout is None else max(1, int(self.timeout.value))


class JobHook(Hook, frozen=True):
    """A program that the scheduler or the node health check runs."""

    UPDATES: ClassVar = updates(in_place="path text", none="sha256")

    path: Annotated[FilePath | None, Meta(examples=["scripts/mount-cache.sh"])] = None
    """File, from the folder of the spec; its first line names what runs it (#!)."""
    text: str | None = None
    """The program itself. Read from `path`."""
    sha256: Sha256 | None = None
    """SHA-256 that the file must have; another file is refused."""


class PrologHook(JobHook, frozen=True, tag_field="type", tag="prolog"):
    """A program that slurmd runs as root on each node of a job before it starts (Slurm).

    Where one fails the node is drained and the job goes back in line.
    """


class EpilogHook(JobHook, frozen=True, tag_field="type", tag="epilog"):
    """A program that slurmd runs as root on each node of a job after its end (Slurm).

    Where one fails the node is drained.
    """


class HealthCheckHook(JobHook, frozen=True, tag_field="type", tag="health-check"):
    """A program of the node health check: the node is unfit where it fails.

    The last line that it prints says why. It has 20 s.
    """


ClusterHook: TypeAlias = RoleHook | ScriptHook | PrologHook | EpilogHook | HealthCheckHook
"""Any hook; `type:` chooses the branch."""
