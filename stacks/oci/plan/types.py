"""What a site on OCI shall be made of, as plain values between the spec and the components."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ....schemas.catalog.model.machine import Market
from ...pulumi.plan import BucketPlan, CloudPlan, CloudPool, GrantPlan, Plan

Group: TypeAlias = Literal["instances", "cluster-network", "compute-cluster", "memory-cluster"]
"""How the machines of a pool are made: one by one, or together with an RDMA network among them.

cluster-network: all at once, by an instance pool. compute-cluster: one by one into an RDMA network
that is there before them, so that more may come. memory-cluster: an NVLink domain of several nodes.
"""


class SubnetPlan(Plan, frozen=True):
    """A subnet to make; OCI's subnets span the availability domains of a region."""

    what: str
    cidr: str
    is_public: bool = False


class NetworkPlan(Plan, frozen=True):
    """The site's network: made, or existing where `vcn` is given."""

    cidr: str = ""
    compute: SubnetPlan | None = None
    public: SubnetPlan | None = None
    nat: bool = True
    """False where nodes reach the outside through a proxy."""
    vcn: str | None = None
    compute_subnet: str | None = None
    public_subnet: str | None = None
    security_groups: tuple[str, ...] = ()
    admin_cidrs: tuple[str, ...] = ()
    allowed_networks: tuple[str, ...] = ()
    """Networks of other sites, which links lead to."""


class OptionPlan(Plan, frozen=True):
    """One way to buy the machines of a pool. No two options of a pool have the same key."""

    key: str
    """Part of names: spot, on-demand, reservation-3f2a1b."""
    market: Market
    reservation: str | None = None
    """OCID of the capacity reservation."""


class OfferPlan(Plan, frozen=True):
    """An option in an availability domain: the request of one launch."""

    key: str
    """Unique in the pool, e.g. on-demand-ad1."""
    option: OptionPlan
    domain: int
    """Number of the availability domain."""
    cluster: str | None = None
    """Key of the `ClusterPlan` that its nodes join; None: none, or one of their own."""


class ClusterPlan(Plan, frozen=True):
    """A compute cluster: an RDMA network that nodes join one by one; made, or existing."""

    key: str
    domain: int
    existing: str | None = None


class ImagePlan(Plan, frozen=True):
    """What nodes boot from."""

    image: str
    """OCID; "": the newest of the operating system, which OCI takes when it launches a node."""
    user: str
    """Login user of the image."""
    operating_system: str = ""
    version: str = ""


class ShapePlan(Plan, frozen=True):
    """A machine type; of a flexible shape with its size."""

    name: str
    ocpus: int | None = None
    memory_gib: int | None = None


class PoolPlan(CloudPool[OfferPlan], frozen=True, kw_only=True):
    """Machines that are alike."""

    shape: ShapePlan
    group: Group
    rdma: bool
    """The nodes have interfaces in an RDMA network."""
    spans_nodes: bool
    """The NVLink domain is larger than a node."""
    spread: bool
    """Over the fault domains of the availability domain."""
    image: ImagePlan

    @property
    def is_one_by_one(self) -> bool:
        """Whether each fixed node is a resource of its own."""
        return self.group in {"instances", "compute-cluster"}


class LinkPlan(Plan, frozen=True):
    """A bucket that is linked with a path of a file system."""

    what: str
    bucket: str
    prefix: str
    path: str
    imports: bool
    """Its objects are brought in when the link is made."""


class LustrePlan(Plan, frozen=True):
    """A file system of File Storage with Lustre."""

    name: str
    fsname: str
    capacity_gb: int
    """In the API's "GB": 31200 is the smallest."""
    tier: str
    """MBPS_PER_TB_125 ..."""
    domain: int
    kms_key: str | None
    links: tuple[LinkPlan, ...]


class FileStoragePlan(Plan, frozen=True):
    """A file system of File Storage, and its mount target."""

    name: str
    domain: int
    kms_key: str | None
    clients: tuple[str, ...]
    """Networks that may mount it; (): the security group alone decides."""

    @property
    def path(self) -> str:
        """Path of its export."""
        return f"/{self.name}"


class IdentityPlan(Plan, frozen=True):
    """Who the nodes are: dynamic groups, made only where nodes may do something."""

    node_group: str | None
    """Name of a dynamic group that exists and has its policies; None: one is made."""
    burst_group: str | None
    bursts: bool
    """Controllers of this site start nodes: they need the right to."""
    grants: tuple[GrantPlan, ...]

    @property
    def is_needed(self) -> bool:
        """Whether a group has to be made."""
        nodes = bool(self.grants) and self.node_group is None
        return nodes or (self.bursts and self.burst_group is None)


class DnsPlan(Plan, frozen=True):
    """A zone that exists, and where the names of nodes go in it."""

    domain: str
    zone: str


class SitePlan(CloudPlan[PoolPlan], frozen=True, kw_only=True):
    """All of a site."""

    tenancy: str
    compartment: str
    network: NetworkPlan
    kms_key: str | None
    identity: IdentityPlan
    dns: DnsPlan | None
    clusters: tuple[ClusterPlan, ...]
    lustre: tuple[LustrePlan, ...]
    file_storage: tuple[FileStoragePlan, ...] = ()
    buckets: tuple[BucketPlan, ...]

    @property
    def domains(self) -> tuple[int, ...]:
        """Numbers of the availability domains in use."""
        offers = {offer.domain for pool in self.pools for offer in pool.offers}
        systems = {system.domain for system in self.file_storage}
        return tuple(sorted(offers | systems | {lustre.domain for lustre in self.lustre}))
