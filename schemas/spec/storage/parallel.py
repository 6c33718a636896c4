"""Parallel file systems: Lustre and Spectrum Scale."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from ..model import FilePath, Identifier, Name, PoolName, SpecModel, Version, updates
from ..units import ByteSize, Throughput
from .model import BucketUrl, StorageModel

Nid: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^[^\s@]+@(tcp|o2ib)[0-9]*$(?!\n)", examples=["10.0.0.5@o2ib"]),
]
"""Address of a node in one of LNet's networks."""


class LustreServers(SpecModel, frozen=True):
    """Lustre servers to set up on hosts of the spec."""

    UPDATES: ClassVar = updates(
        in_place="failover network",
        destroy="pool metadata_devices object_devices backend format",
    )

    pool: PoolName
    """Pool whose hosts serve; role login or controller not."""
    metadata_devices: Annotated[list[FilePath], Meta(min_length=1)]
    """Block devices for MGS and MDT."""
    object_devices: Annotated[list[FilePath], Meta(min_length=1)]
    """Block devices for OSTs, on each host."""
    network: Annotated[
        Annotated[str, Meta(pattern=r"^(tcp|o2ib)[0-9]*$(?!\n)")], Meta(examples=["o2ib"])
    ] = "tcp"
    """LNet network in which the hosts' addresses are."""
    backend: Literal["ldiskfs", "zfs"] = "ldiskfs"
    """What the devices are formatted with."""
    failover: bool = False
    """Hosts come in pairs that reach each other's devices: either of a pair may serve them."""
    format: bool = False
    """Blank devices named by /dev/disk/by-id may be formatted: nothing is formatted without this
    word, and nothing that isn't blank at all."""


class LustreStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="lustre"):
    """A Lustre file system: managed by the site's cloud, existing, or served by hosts of ours."""

    UPDATES: ClassVar = updates(
        in_place="throughput import_from export_to tunables",
        rolling="mgs existing servers interfaces routers",
        shrink="capacity",
        destroy="site fsname deployment efa zone kms_key",
    )
    MOUNT_TYPE: ClassVar[str] = "lustre"

    site: Name | None = None
    """Site that has it or makes it."""
    mgs: (
        Annotated[
            str,
            Meta(
                pattern=r"^[^\s@]+@(tcp|o2ib)[0-9]*(:[^\s@]+@(tcp|o2ib)[0-9]*)*$(?!\n)",
                examples=["10.0.0.5@o2ib"],
            ),
        ]
        | None
    ) = None
    """NID of the management server of a file system that exists."""
    fsname: (
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,8}$(?!\n)", examples=["scratch"])] | None
    ) = None
    """Name of the file system, at most 8 characters."""
    interfaces: list[
        Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,14}$(?!\n)", examples=["ib0"])]
    ] = field(default_factory=list)
    """Interfaces of the nodes that reach it, several together (multi-rail); default: the one that
    leads to its servers."""
    routers: list[Nid] = field(default_factory=list)
    """LNet routers by which nodes in another network reach it."""
    tunables: dict[
        Annotated[str, Meta(pattern=r"^[a-z][A-Za-z0-9_.*-]+$(?!\n)")],
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.,:=+-]+$(?!\n)")],
    ] = field(default_factory=dict)
    """Parameters of the client, as `lctl set_param` takes them."""
    existing: Annotated[Identifier | None, Meta(examples=["fs-0abc"])] = None
    """Id of a managed file system that exists."""
    servers: LustreServers | None = None
    """Hosts of the spec that serve it."""
    capacity: ByteSize | None = None
    """Size to make, in the provider's steps."""
    throughput: Throughput | None = None
    """Throughput for each TiB of capacity."""
    deployment: Literal["auto", "persistent-2", "scratch-2"] = "auto"
    """Kind of file system (AWS): persistent or scratch; auto: persistent."""
    efa: bool = False
    """Reach it over EFA (AWS); can be chosen only when it is made."""
    zone: Identifier | None = None
    """Zone to make it in; default: the site's."""
    import_from: BucketUrl | None = field(default=None, name="import")
    """Bucket whose objects appear as files."""
    export_to: BucketUrl | None = field(default=None, name="export")
    """Bucket that changed files are written to."""
    kms_key: Identifier | None = None
    """Key that encrypts it; default: the site's."""

    @property
    def is_managed(self) -> bool:
        """Whether a cloud runs it, made for the cluster or not: its address is the cloud's."""
        return self.mgs is None and self.servers is None

    @property
    def is_made(self) -> bool:
        """Whether the site's cloud makes it."""
        return self.is_managed and self.existing is None


class GpfsStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="gpfs"):
    """A Spectrum Scale file system that exists."""

    UPDATES: ClassVar = updates(
        in_place="accept_license edition pagepool",
        rolling="filesystem cluster contact version site",
    )
    MOUNT_TYPE: ClassVar[str] = "gpfs"

    filesystem: Annotated[str, Meta(min_length=1)]
    """Its name in the GPFS cluster."""
    cluster: Annotated[str, Meta(min_length=1)]
    """The GPFS cluster that owns it."""
    contact: Annotated[list[str], Meta(min_length=1)]
    """Hosts of that cluster to query."""
    version: Annotated[Version, Meta(examples=["5.2.3-0"])] = "auto"
    """Version of the client's packages, from your own repository (software.sources.storage-scale);
    auto: what the image has."""
    edition: Literal["std", "dm", "da", "ece"] = "dm"
    """Edition of IBM Storage Scale, as its licence package is called."""
    accept_license: bool = False
    """IBM's licence is accepted for these nodes, which install it."""
    pagepool: ByteSize | None = None
    """Memory of a node for its cache; default: the cluster's."""
    site: Name | None = None
    """Site whose nodes mount it."""
