"""What a site on Azure is made of, as plain data: everything decided, nothing of any SDK."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ....schemas.derived.links import RouteTo
from ...pulumi.names import NO_KEY, short_hash
from ...pulumi.plan import CloudPlan, CloudPool, Plan
from .control_plane import AksPlan

SubnetName: TypeAlias = Literal["compute", "storage", "egress"]
OptionMarket: TypeAlias = Literal["on-demand", "spot", "reservation"]


class SubnetPlan(Plan, frozen=True, kw_only=True):
    """A subnet: made with `cidr`, or existing."""

    name: SubnetName
    cidr: str = ""
    existing: str = ""
    """Id of one that exists; then no cidr."""


class NetworkPlan(Plan, frozen=True, kw_only=True):
    """The virtual network and who may come in."""

    cidr: str = ""
    """"": it exists."""
    existing: str = ""
    """Id of one that exists."""
    subnets: tuple[SubnetPlan, ...]
    admin_cidrs: tuple[str, ...] = ()
    """May reach SSH of login and controller machines; never the whole world."""
    nat: bool = True
    """A way out for what has no public address; not where a proxy or the owner's network is it."""
    kept: bool = False
    """Data that `down` keeps is in it, so it is kept too."""
    allowed_networks: tuple[str, ...] = ()
    """Networks of other sites, which links lead to."""
    routes: tuple[RouteTo, ...] = ()
    """Networks of other sites, and the pools whose first host is the gateway to them."""

    def subnet(self, name: SubnetName) -> SubnetPlan | None:
        """Return the subnet of this name."""
        return next((subnet for subnet in self.subnets if subnet.name == name), None)


class ImagePlan(Plan, frozen=True, kw_only=True):
    """A boot image: a marketplace image by its four parts, or a custom image."""

    publisher: str = ""
    offer: str = ""
    sku: str = ""
    version: str = ""
    id: str = ""
    shared: bool = False
    """The id is of a gallery shared by another tenant."""
    community: bool = False
    """The id is of a public gallery."""


class OfferPlan(Plan, frozen=True, kw_only=True):
    """One way to buy the machines of a pool, in one zone."""

    market: OptionMarket
    zone: str = ""
    """"": wherever in the region Azure has room."""
    max_usd_per_hour: float | None = None
    """Spot: most that a machine may cost; None: the price on demand."""
    reservation: str = ""
    """Id of a capacity reservation group."""

    @property
    def key(self) -> str:
        """Its name in the pool's fallback_list: spot-1; a limit or a reservation has its own."""
        own = self.reservation or ("" if self.max_usd_per_hour is None else self._limit)
        return "-".join(part for part in (self.market, own and short_hash(own), self.zone) if part)

    @property
    def _limit(self) -> str:
        return f"{self.max_usd_per_hour:g}"


class KeyPlan(Plan, frozen=True, kw_only=True):
    """A customer's key, and what lets resources use it."""

    key: str = ""
    """Id of the key; access to it is granted to an identity made for that."""
    url: str = ""
    """URL of the key; without an id no identity can be granted access, so `identity` must have
    it.
    """
    identity: str = ""
    """Id of an identity that may use the key already."""
    disk_set: str = ""
    """Id of a disk encryption set that exists: for disks only."""


class ScaleSetPlan(Plan, frozen=True, kw_only=True):
    """Machines of a compute pool that Azure keeps together."""

    name: str
    """The pool's, with a number from the second set on."""
    count: int
    """Machines that are always there."""


class PoolPlan(CloudPool[OfferPlan], frozen=True, kw_only=True):
    """Machines that are alike: named ones (login, controller), or scale sets (compute)."""

    image: ImagePlan
    subnet: SubnetName
    sets: tuple[ScaleSetPlan, ...] = ()
    """Empty for named machines."""
    single_placement: bool = False
    """InfiniBand works only within one single placement group."""
    proximity_group: str = ""
    """Id of a proximity placement group that exists."""

    def part_names(self, part: str) -> tuple[str, ...]:
        """Return the hosts that are always in one of the pool's scale sets."""
        start = 0
        for candidate in self.sets:
            if candidate.name == part:
                return self.nodes[start : start + candidate.count]
            start += candidate.count
        return ()


class ContainerPlan(Plan, frozen=True, kw_only=True):
    """A blob container."""

    account: str
    name: str
    made: bool
    """False: it exists, in an account of the site's resource group."""
    read_only: bool = False
    """What the nodes' identity may do there."""
    mounted: bool = False
    """Nodes see it; else only the file system does."""
    hierarchical: bool = False
    """Its account's folders are real ones."""


class AccountPlan(Plan, frozen=True, kw_only=True):
    """A storage account to make."""

    name: str
    """Unique in the world, from the spec's URL."""
    containers: tuple[str, ...]
    hierarchical: bool = False
    """Azure Data Lake Storage: its folders are real ones."""
    key: KeyPlan | None = None


class FileSystemPlan(Plan, frozen=True, kw_only=True):
    """A Managed Lustre file system to make."""

    name: str
    capacity_tib: float
    sku: str
    zone: str
    container: ContainerPlan | None = None
    """Container whose blobs appear as files."""
    logging: ContainerPlan | None = None
    """Where it writes what it imported; in the same account."""
    import_prefix: str = "/"
    """Only blobs below it appear."""
    export_prefixes: tuple[str, ...] = ()
    """Paths whose changed files are written back; empty: none."""
    key: KeyPlan | None = None


class SharePlan(Plan, frozen=True, kw_only=True):
    """A share of Azure Files over NFS, in a storage account of its own."""

    name: str
    """Of the storage."""
    account: str
    """Unique in the world."""
    share: str
    gib: int
    sku: str
    """Premium_LRS."""
    key: KeyPlan | None = None
    tls: bool = False
    """What comes without TLS is refused."""


class StoragePlan(Plan, frozen=True, kw_only=True):
    """All data of the site that this spec makes or reaches."""

    accounts: tuple[AccountPlan, ...] = ()
    containers: tuple[ContainerPlan, ...] = ()
    file_systems: tuple[FileSystemPlan, ...] = ()
    shares: tuple[SharePlan, ...] = ()


class AccessPlan(Plan, frozen=True, kw_only=True):
    """Who the machines are."""

    node_identity: str = ""
    """Id of the identity of the nodes that exists; "": one is made."""
    burst_identity: str = ""
    """Id of the identity of the burst agent that exists."""
    makes_burst: bool = False
    """A pool is elastic, and the site names no identity for the burst agent."""


class DnsPlan(Plan, frozen=True, kw_only=True):
    """Names of login and controller machines."""

    domain: str
    existing: str = ""
    """Id of a private zone that exists."""


class SitePlan(CloudPlan[PoolPlan], frozen=True, kw_only=True):
    """All of a site."""

    subscription: str
    resource_group: str = ""
    """Name of one that exists; "": two are made, one of them for what may be kept."""
    user: str
    """Login user of all machines."""
    network: NetworkPlan
    storage: StoragePlan
    access: AccessPlan
    dns: DnsPlan
    api_name: str = ""
    """Name of the load balancer before several API servers; "": there is none."""
    control_plane: AksPlan | None = None
    key: KeyPlan | None = None
    """Encrypts disks; with it, host caches and temporary disks are encrypted too."""

    @property
    def makes_data(self) -> bool:
        """Whether something is made that `down` keeps."""
        kept = self.storage
        return bool(kept.accounts or kept.file_systems or kept.shares or self.volumes)


class LivePool(msgspec.Struct, frozen=True, kw_only=True):
    """What a scale set has now and a stack update must not undo.

    A stack update writes the whole scale set, so what elastic growth has changed is passed to the
    program: its machines, and the tags with their names.
    """

    capacity: int
    tags: dict[str, str] = {}


class LiveState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the cloud before `up`. The defaults are used in recordings."""

    public_key: str = NO_KEY
    """Of the cluster's login key."""
    month: str = "2026-01-01"
    """First day of the month in which a budget begins; read when it is made, then never again."""
    live: dict[str, LivePool] = {}
    """Scale set, by its name in the plan -> what it has now."""
    purchased: dict[str, str] = {}
    """Host -> key of the option that it is bought on; absent: the first, "": it is not made."""
