"""Storage: file systems and object storage, what their nodes mount, and checkpoints."""

from typing import Annotated, ClassVar, Literal, TypeAlias, get_args

from msgspec import Meta, field

from .model import Cidr, FilePath, Identifier, MountPoint, Name, SpecModel, Version, updates
from .sites import Site
from .units import ByteSize, Duration, Throughput

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

    mount: Annotated[MountPoint, Meta(description="Where the nodes see it.")]
    pools: Annotated[
        list[Name], Meta(description="Pools that mount it; default: all of its site, else all.")
    ] = field(default_factory=list)
    options: Annotated[
        list[Annotated[str, Meta(pattern=r"^[^\s,]+$(?!\n)")]],
        Meta(description="Mount options in addition to gcluster's own.", examples=[["flock"]]),
    ] = field(default_factory=list)
    copy_of: Annotated[
        Name | None,
        Meta(description="Storage whose data this one holds a copy of, for jobs at another site."),
    ] = None
    stage_within: Annotated[
        Duration | None,
        Meta(description="Data may be staged from `copy_of` before a job, within this time."),
    ] = None


class LustreServers(SpecModel, frozen=True):
    """Lustre servers to set up on hosts of the spec."""

    UPDATES: ClassVar = updates(
        in_place="failover network",
        destroy="pool metadata_devices object_devices backend format",
    )

    pool: Annotated[Name, Meta(description="Pool whose hosts serve; role login or controller not.")]
    metadata_devices: Annotated[
        list[FilePath], Meta(min_length=1, description="Block devices for MGS and MDT.")
    ]
    object_devices: Annotated[
        list[FilePath], Meta(min_length=1, description="Block devices for OSTs, on each host.")
    ]
    network: Annotated[
        Annotated[str, Meta(pattern=r"^(tcp|o2ib)[0-9]*$(?!\n)")],
        Meta(description="LNet network in which the hosts' addresses are.", examples=["o2ib"]),
    ] = "tcp"
    backend: Annotated[
        Literal["ldiskfs", "zfs"], Meta(description="What the devices are formatted with.")
    ] = "ldiskfs"
    failover: Annotated[
        bool,
        Meta(
            description="Hosts come in pairs that reach each other's devices: either of a pair "
            "may serve them."
        ),
    ] = False
    format: Annotated[
        bool,
        Meta(
            description="Blank devices named by /dev/disk/by-id may be formatted: nothing is "
            "formatted without this word, and nothing that isn't blank at all."
        ),
    ] = False


class LustreStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="lustre"):
    """A Lustre file system: managed by the site's cloud, existing, or served by hosts of ours."""

    UPDATES: ClassVar = updates(
        in_place="throughput import_from export_to",
        rolling="mgs existing servers",
        shrink="capacity",
        destroy="site fsname deployment efa zone kms_key",
    )
    MOUNT_TYPE: ClassVar[str] = "lustre"

    site: Annotated[Name | None, Meta(description="Site that has it or makes it.")] = None
    mgs: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^[^\s@]+@(tcp|o2ib)[0-9]*(:[^\s@]+@(tcp|o2ib)[0-9]*)*$(?!\n)",
                examples=["10.0.0.5@o2ib"],
            ),
        ]
        | None,
        Meta(description="NID of the management server of a file system that exists."),
    ] = None
    fsname: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,8}$(?!\n)", examples=["scratch"])] | None,
        Meta(description="Name of the file system, at most 8 characters."),
    ] = None
    existing: Annotated[
        Identifier | None,
        Meta(description="Id of a managed file system that exists.", examples=["fs-0abc"]),
    ] = None
    servers: Annotated[
        LustreServers | None, Meta(description="Hosts of the spec that serve it.")
    ] = None
    capacity: Annotated[
        ByteSize | None, Meta(description="Size to make, in the provider's steps.")
    ] = None
    throughput: Annotated[
        Throughput | None, Meta(description="Throughput for each TiB of capacity.")
    ] = None
    deployment: Annotated[
        Literal["auto", "persistent-2", "scratch-2"],
        Meta(description="Kind of file system (AWS): persistent or scratch; auto: persistent."),
    ] = "auto"
    efa: Annotated[
        bool, Meta(description="Reach it over EFA (AWS); can be chosen only when it is made.")
    ] = False
    zone: Annotated[
        Identifier | None, Meta(description="Zone to make it in; default: the site's.")
    ] = None
    import_from: Annotated[
        BucketUrl | None, Meta(description="Bucket whose objects appear as files.")
    ] = field(default=None, name="import")
    export_to: Annotated[
        BucketUrl | None, Meta(description="Bucket that changed files are written to.")
    ] = field(default=None, name="export")
    kms_key: Annotated[
        Identifier | None, Meta(description="Key that encrypts it; default: the site's.")
    ] = None

    @property
    def is_managed(self) -> bool:
        """Whether a cloud runs it, made for the cluster or not: its address is the cloud's."""
        return self.mgs is None and self.servers is None

    @property
    def is_made(self) -> bool:
        """Whether the site's cloud makes it."""
        return self.is_managed and self.existing is None


class NfsStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="nfs"):
    """An NFS export: of a pool's host, or of a server that exists."""

    UPDATES: ClassVar = updates(
        in_place="clients root read_only", rolling="server export site", shrink="capacity"
    )
    MOUNT_TYPE: ClassVar[str] = "nfs"

    server: Annotated[
        str | None,
        Meta(
            description="Pool whose first host serves it, or the address of a server.",
            examples=["head", "10.0.0.9"],
        ),
    ] = None
    export: Annotated[
        MountPoint | None, Meta(description="Path on the server; default: as mounted.")
    ] = None
    clients: Annotated[
        list[Cidr],
        Meta(
            description="Networks that may mount what a pool's host serves; default: those of the "
            "sites."
        ),
    ] = field(default_factory=list)
    root: Annotated[
        bool,
        Meta(description="Root of the nodes is root there too, else nobody (served by a pool)."),
    ] = False
    read_only: Annotated[bool, Meta(description="Nodes can't write.")] = False
    site: Annotated[Name | None, Meta(description="Site that has it.")] = None
    capacity: Annotated[
        ByteSize | None,
        Meta(
            description="Size of the disk that a cloud keeps it on, for what a pool's host serves; "
            "default: 500 GiB."
        ),
    ] = None


class ObjectStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="object"):
    """A bucket seen as files (mountpoint-s3, gcsfuse, blobfuse2)."""

    UPDATES: ClassVar = updates(none="create", in_place="read_only cache", rolling="bucket site")
    MOUNT_TYPE: ClassVar[str] = "fuse"

    bucket: Annotated[BucketUrl, Meta(description="The bucket, or a prefix in it.")]
    site: Annotated[Name | None, Meta(description="Site whose nodes mount it; default: all.")] = (
        None
    )
    create: Annotated[bool, Meta(description="Make the bucket; it is kept by `down`.")] = False
    read_only: Annotated[bool, Meta(description="Nodes can't write.")] = False
    cache: Annotated[
        ByteSize | None, Meta(description="Local cache on each node; default: none.")
    ] = None


class GpfsStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="gpfs"):
    """A Spectrum Scale file system that exists."""

    UPDATES: ClassVar = updates(
        in_place="accept_license edition pagepool",
        rolling="filesystem cluster contact version site",
    )
    MOUNT_TYPE: ClassVar[str] = "gpfs"

    filesystem: Annotated[str, Meta(min_length=1, description="Its name in the GPFS cluster.")]
    cluster: Annotated[str, Meta(min_length=1, description="The GPFS cluster that owns it.")]
    contact: Annotated[list[str], Meta(min_length=1, description="Hosts of that cluster to ask.")]
    version: Annotated[
        Version,
        Meta(
            description="Version of the client's packages, from your own repository "
            "(software.sources.storage-scale); auto: what the image has.",
            examples=["5.2.3-0"],
        ),
    ] = "auto"
    edition: Annotated[
        Literal["std", "dm", "da", "ece"],
        Meta(description="Edition of IBM Storage Scale, as its licence package is called."),
    ] = "dm"
    accept_license: Annotated[
        bool, Meta(description="IBM's licence is accepted for these nodes, which install it.")
    ] = False
    pagepool: Annotated[
        ByteSize | None, Meta(description="Memory of a node for its cache; default: the cluster's.")
    ] = None
    site: Annotated[Name | None, Meta(description="Site whose nodes mount it.")] = None


class ScratchStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="local-nvme"):
    """The nodes' own NVMe disks as one striped file system; empty after each start."""

    UPDATES: ClassVar = updates(in_place="site", destroy="format devices")
    MOUNT_TYPE: ClassVar[str] = ""

    site: Annotated[Name | None, Meta(description="Site whose nodes have it; default: all.")] = None
    format: Annotated[
        bool,
        Meta(
            description="The disks may be formatted: nothing is without this word, and no disk "
            "that holds something else at all."
        ),
    ] = False
    devices: Annotated[
        list[FilePath],
        Meta(
            description="The disks, by /dev/disk/by-id; default: the cloud's local disks, "
            "elsewhere every NVMe disk without partitions and file systems."
        ),
    ] = field(default_factory=list)


Storage: TypeAlias = LustreStorage | NfsStorage | ObjectStorage | GpfsStorage | ScratchStorage
"""Any storage; `type:` chooses the branch."""


class Checkpointing(SpecModel, frozen=True):
    """The largest job's checkpoints."""

    UPDATES: ClassVar = updates(none="storage every size parameters gpus")

    storage: Annotated[Name, Meta(description="Storage they are written to.")]
    every: Annotated[Duration, Meta(description="Time between two checkpoints.")]
    size: Annotated[
        ByteSize | None, Meta(description="Size of one checkpoint; or give `parameters`.")
    ] = None
    parameters: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Parameters of the model; one checkpoint is taken as 14 bytes each."),
    ] = None
    gpus: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="GPUs of the job; default: all of the largest partition."),
    ] = None
