"""NFS: exports of hosts and servers, and the file services of the clouds."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ..model import Cidr, Identifier, Name, updates
from ..units import ByteSize, DataRate
from .model import StorageModel


class NfsStorage(StorageModel, frozen=True, kw_only=True, tag_field="type", tag="nfs"):
    """An NFS export: of a pool's host, or of a server that exists."""

    UPDATES: ClassVar = updates(
        in_place="clients root read_only", rolling="server export site", shrink="capacity"
    )
    MOUNT_TYPE: ClassVar[str] = "nfs"

    server: Annotated[str | None, Meta(examples=["head", "10.0.0.9"])] = None
    """Pool whose first host serves it, or the address of a server."""
    export: (
        Annotated[str, Meta(pattern=r"^/[^\s:,]*$(?!\n)", examples=["/", "/srv/home"])] | None
    ) = None
    """Path on the server, "/" for all of it; default: as mounted."""
    clients: list[Cidr] = field(default_factory=list)
    """Networks that may mount what a pool's host serves; default: those of the sites."""
    root: bool = False
    """Root of the nodes is root there too, else it is mapped to `nobody` (served by a pool)."""
    read_only: bool = False
    """Nodes can't write."""
    site: Name | None = None
    """Site that has it."""
    capacity: ByteSize | None = None
    """Size of the disk that a cloud keeps it on, for what a pool's host serves; default: 500
    GiB."""


class FileService(StorageModel, frozen=True, kw_only=True):
    """A file system of a cloud's NFS service, made for the cluster or there already."""

    UPDATES: ClassVar = updates(
        in_place="read_only", rolling="existing tls", destroy="site kms_key"
    )
    MOUNT_TYPE: ClassVar[str] = "nfs"
    PROVIDER: ClassVar[str]
    """Provider of the sites that have it."""
    TITLE: ClassVar[str]
    """What its cloud calls it."""

    site: Name
    """Site whose cloud runs it; its nodes mount it, and no others reach it."""
    existing: Identifier | None = None
    """Id of one that exists."""
    kms_key: Identifier | None = None
    """Key that encrypts it; default: the site's, else the cloud's own."""
    read_only: bool = False
    """Nodes can't write."""
    tls: bool = False
    """Nodes reach it by TLS alone, with a check of its certificate (EFS and Azure Files)."""

    @property
    def is_made(self) -> bool:
        """Whether the site's cloud makes it for the cluster."""
        return self.existing is None


class SizedService(FileService, frozen=True, kw_only=True):
    """A file service whose file systems are made with a size."""

    UPDATES: ClassVar = updates(shrink="capacity")

    capacity: ByteSize | None = None
    """Size to make, in the steps of its kind."""

    @property
    def kind(self) -> str:
        """Which of the service's kinds it is, on which sizes depend."""
        return ""


class EfsStorage(FileService, frozen=True, kw_only=True, tag_field="type", tag="efs"):
    """Amazon EFS: as large as what is put in, reached in every zone of the site's nodes."""

    UPDATES: ClassVar = updates(
        in_place="throughput_mode throughput", rolling="existing", destroy="performance_mode"
    )
    PROVIDER: ClassVar[str] = "aws"
    TITLE: ClassVar[str] = "Amazon EFS"

    existing: (
        Annotated[
            str, Meta(pattern=r"^fs-[0-9a-f]{8,40}$(?!\n)", examples=["fs-0123456789abcdef0"])
        ]
        | None
    ) = None
    """Id of one that exists; its mount targets must be in the zones of the nodes."""
    throughput_mode: Literal["elastic", "bursting", "provisioned"] = "elastic"
    """What it may read and write: as much as is requested (paid by use), in proportion to what it
    holds, or `throughput`."""
    throughput: DataRate | None = None
    """Throughput that is paid for, with `throughput_mode: provisioned`: 1 to 3414 MiB/s."""
    performance_mode: Literal["general-purpose", "max-io"] = "general-purpose"
    """max-io: more operations at once, each of them slower; AWS advises against it."""


class OpenZfsStorage(SizedService, frozen=True, kw_only=True, tag_field="type", tag="fsx-openzfs"):
    """Amazon FSx for OpenZFS: SSD of a given size and throughput, in one zone."""

    UPDATES: ClassVar = updates(
        in_place="throughput", rolling="existing", destroy="deployment zone compression"
    )
    PROVIDER: ClassVar[str] = "aws"
    TITLE: ClassVar[str] = "Amazon FSx for OpenZFS"

    existing: (
        Annotated[
            str,
            Meta(
                pattern=r"^(fs-[0-9a-f]{8,}|fsvol-[0-9a-f]{17,})$(?!\n)",
                examples=["fs-0123456789abcdef0", "fsvol-0123456789abcdef0"],
            ),
        ]
        | None
    ) = None
    """Id of a file system that exists, whose root volume is mounted, or of one of its volumes."""
    throughput: DataRate | None = None
    """Throughput of the file server, one of the steps of its `deployment`."""
    deployment: Literal["single-az-1", "single-az-2", "single-az-ha-1", "single-az-ha-2"] = (
        "single-az-ha-2"
    )
    """One server or two (ha), of the first generation or the second."""
    zone: Identifier | None = None
    """Zone to make it in; default: the site's."""
    compression: Literal["none", "zstd", "lz4"] = "lz4"
    """How the root volume compresses what is written."""

    @property
    def kind(self) -> str:
        """Which of the service's kinds it is, on which sizes depend."""
        return self.deployment


class FilestoreStorage(SizedService, frozen=True, kw_only=True, tag_field="type", tag="filestore"):
    """Google Cloud Filestore: a file share of a given size."""

    UPDATES: ClassVar = updates(rolling="existing", destroy="tier protocol zone")
    PROVIDER: ClassVar[str] = "gcp"
    TITLE: ClassVar[str] = "Filestore"

    existing: (
        Annotated[
            str,
            Meta(
                pattern=r"^projects/[^/\s]+/locations/[^/\s]+/instances/[^/\s]+$(?!\n)",
                examples=["projects/acme-ml/locations/us-central1-a/instances/home"],
            ),
        ]
        | None
    ) = None
    """Full name of an instance that exists, in the nodes' network."""
    tier: Literal["basic-hdd", "basic-ssd", "zonal", "regional"] = "zonal"
    """Service tier; regional survives the loss of a zone."""
    protocol: Literal["nfs-v3", "nfs-v4.1"] = "nfs-v3"
    """Version of NFS that it serves; the basic tiers have 3 alone."""
    zone: Identifier | None = None
    """Zone to make it in (not regional); default: the site's, else that of its first pool."""

    @property
    def kind(self) -> str:
        """Which of the service's kinds it is, on which sizes depend."""
        return self.tier


_SHARE_ID = (
    "/subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/data/providers"
    "/Microsoft.Storage/storageAccounts/acmehome/fileServices/default/shares/home"
)


class AzureFilesStorage(
    SizedService, frozen=True, kw_only=True, tag_field="type", tag="azure-files"
):
    """Azure Files over NFS: a provisioned SSD share in a storage account of its own."""

    UPDATES: ClassVar = updates(rolling="existing", destroy="account redundancy")
    PROVIDER: ClassVar[str] = "azure"
    TITLE: ClassVar[str] = "Azure Files"

    existing: (
        Annotated[
            str,
            Meta(
                pattern=r"^/subscriptions/[^/\s]+/resourceGroups/[^/\s]+/providers/Microsoft\.Storage"
                r"/storageAccounts/[a-z0-9]{3,24}/fileServices/default/shares/[^/\s]+$(?!\n)",
                examples=[_SHARE_ID],
            ),
        ]
        | None
    ) = None
    """Id of a share that exists and serves NFS."""
    account: (
        Annotated[str, Meta(pattern=r"^[a-z0-9]{3,24}$(?!\n)", examples=["acmehome"])] | None
    ) = None
    """Name of the storage account to make: unique in the world, lower-case letters and digits."""
    redundancy: Literal["lrs", "zrs"] = "lrs"
    """Copies in one zone (lrs) or in three (zrs)."""


class OciFileStorage(
    FileService, frozen=True, kw_only=True, tag_field="type", tag="oci-file-storage"
):
    """OCI File Storage: as large as what is put in, with a mount target in the nodes' subnet."""

    UPDATES: ClassVar = updates(rolling="existing", destroy="zone")
    PROVIDER: ClassVar[str] = "oci"
    TITLE: ClassVar[str] = "OCI File Storage"

    existing: (
        Annotated[
            str,
            Meta(
                pattern=r"^ocid1\.filesystem\.[A-Za-z0-9._-]+$(?!\n)",
                examples=["ocid1.filesystem.oc1.iad.aaaa"],
            ),
        ]
        | None
    ) = None
    """OCID of a file system that exists and is exported by a mount target."""
    zone: Annotated[str, Meta(pattern=r"^[123]$(?!\n)", examples=["1"])] | None = None
    """Number of the availability domain to make it in; default: the site's."""
