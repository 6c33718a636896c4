"""What all storage has, and how buckets are named."""

from typing import Annotated, ClassVar, TypeAlias, get_args

from msgspec import Meta, field

from ..model import MountPoint, Name, PoolName, SpecModel, updates
from ..sites import Site
from ..units import Duration

_SCHEMES = "|".join(site.bucket_scheme for site in get_args(Site) if site.bucket_scheme)

BucketUrl: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^({_SCHEMES})://[^\s/]+(/[^\s]*)?$(?!\n)",
        examples=["s3://datasets", "gs://datasets/train", "az://account/container"],
    ),
]
"""A bucket, or a prefix in one; each cloud's sites say the scheme of their buckets."""


class StorageModel(SpecModel, frozen=True):
    """What all storage has."""

    UPDATES: ClassVar = updates(
        none="copy_of",
        in_place="pools stage_within",
        rolling="mount options",
    )
    MOUNT_TYPE: ClassVar[str]
    """How its type begins in /proc/mounts; empty: it may be of any type."""

    mount: MountPoint
    """Where the nodes see it."""
    pools: list[PoolName] = field(default_factory=list)
    """Pools that mount it; default: all of its site, else all."""
    options: Annotated[
        list[Annotated[str, Meta(pattern=r"^[^\s,]+$(?!\n)")]], Meta(examples=[["flock"]])
    ] = field(default_factory=list)
    """Mount options in addition to gcluster's own."""
    copy_of: Name | None = None
    """Storage whose data this one holds a copy of, for jobs at another site."""
    stage_within: Duration | None = None
    """Data may be staged from `copy_of` before a job, within this time."""
