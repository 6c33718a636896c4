"""Storage: file systems and object storage, what their nodes mount, and checkpoints."""

from typing import Annotated, ClassVar, TypeAlias

from msgspec import Meta, field

from ..model import FilePath, Name, SpecModel, updates
from ..units import ByteSize, Duration
from .model import BucketUrl, StorageModel
from .nfs import (
    AzureFilesStorage,
    EfsStorage,
    FileService,
    FilestoreStorage,
    NfsStorage,
    OciFileStorage,
    OpenZfsStorage,
    SizedService,
)
from .parallel import GpfsStorage, LustreServers, LustreStorage

__all__ = [
    "AzureFilesStorage",
    "BucketUrl",
    "Checkpointing",
    "EfsStorage",
    "FileService",
    "FilestoreStorage",
    "GpfsStorage",
    "LustreServers",
    "LustreStorage",
    "NfsStorage",
    "ObjectStorage",
    "OciFileStorage",
    "OpenZfsStorage",
    "ScratchStorage",
    "SizedService",
    "Storage",
    "StorageModel",
]


class ObjectStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="object"):
    """A bucket seen as files (mountpoint-s3, gcsfuse, blobfuse2)."""

    UPDATES: ClassVar = updates(
        none="create",
        in_place="read_only cache",
        rolling="bucket site",
        destroy="hierarchical_namespace",
    )
    MOUNT_TYPE: ClassVar[str] = "fuse"

    bucket: BucketUrl
    """The bucket, or a prefix in it."""
    site: Name | None = None
    """Site whose nodes mount it; default: all."""
    create: bool = False
    """Make the bucket; it is kept by `down`."""
    read_only: bool = False
    """Nodes can't write."""
    cache: ByteSize | None = None
    """Local cache on each node; default: none."""
    hierarchical_namespace: bool = False
    """Folders are real ones, renamed and listed at once (Google Cloud, Azure); said when it is
    made. Its objects have no versions."""


class ScratchStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="local-nvme"):
    """The nodes' own NVMe disks as one striped file system; empty after each start."""

    UPDATES: ClassVar = updates(in_place="site", destroy="format devices")
    MOUNT_TYPE: ClassVar[str] = ""

    site: Name | None = None
    """Site whose nodes have it; default: all."""
    format: bool = False
    """The disks may be formatted: nothing is without this word, and no disk that holds something
    else at all."""
    devices: list[FilePath] = field(default_factory=list)
    """The disks, by /dev/disk/by-id; default: the cloud's local disks, elsewhere every NVMe disk
    without partitions and file systems."""


Storage: TypeAlias = (
    LustreStorage
    | NfsStorage
    | EfsStorage
    | OpenZfsStorage
    | FilestoreStorage
    | AzureFilesStorage
    | OciFileStorage
    | ObjectStorage
    | GpfsStorage
    | ScratchStorage
)
"""Any storage; `type:` chooses the branch."""


class Checkpointing(SpecModel, frozen=True):
    """The largest job's checkpoints."""

    UPDATES: ClassVar = updates(none="storage every size parameters gpus")

    storage: Name
    """Storage they are written to."""
    every: Duration
    """Time between two checkpoints."""
    size: ByteSize | None = None
    """Size of one checkpoint; or give `parameters`."""
    parameters: Annotated[float, Meta(gt=0)] | None = None
    """Parameters of the model; one checkpoint is taken as 14 bytes each."""
    gpus: Annotated[int, Meta(ge=1)] | None = None
    """GPUs of the job; default: all of the largest partition."""
