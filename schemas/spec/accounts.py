"""Who may use how much, and whose jobs give way: the same under Slurm and Kubernetes."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from .noun import Name, Noun, updates
from .units import Duration
from .user import UserName


class Qos(Noun, frozen=True):
    """A quality of service: a Slurm QOS, or a Kubernetes PriorityClass."""

    UPDATES: ClassVar = updates(
        in_place="priority preempts preemptible grace gpu_limit gpu_limit_per_user max_time "
        "max_jobs_per_user",
    )

    priority: Annotated[int, Meta(ge=0, le=1_000_000, description="Higher goes first.")] = 0
    preempts: Annotated[
        list[Name], Meta(description="Qualities of service whose jobs give way to these.")
    ] = field(default_factory=list)
    preemptible: Annotated[
        Literal["no", "requeue", "cancel"],
        Meta(description="What happens to its jobs when others need the nodes."),
    ] = "no"
    grace: Annotated[
        Duration | None, Meta(description="Time a job gets to save before it gives way.")
    ] = None
    gpu_limit: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="GPUs of all its jobs together.")
    ] = None
    gpu_limit_per_user: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="GPUs of one user's jobs together.")
    ] = None
    max_time: Annotated[Duration | None, Meta(description="Longest run time of a job.")] = None
    max_jobs_per_user: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Running jobs of one user.")
    ] = None


class Account(Noun, frozen=True):
    """A group that shares the cluster: a Slurm account, or a Kubernetes namespace."""

    UPDATES: ClassVar = updates(in_place="share parent gpu_quota users qos default_qos")

    share: Annotated[int, Meta(ge=1, description="Part of the whole, beside its siblings'.")] = 1
    parent: Annotated[Name | None, Meta(description="Account it is part of.")] = None
    gpu_quota: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="GPUs of all its jobs together.")
    ] = None
    users: Annotated[list[UserName], Meta(description="Members.")] = field(default_factory=list)
    qos: Annotated[list[Name], Meta(description="What its jobs may ask for; empty: all.")] = field(
        default_factory=list
    )
    default_qos: Annotated[Name | None, Meta(description="For jobs that ask for none.")] = None
