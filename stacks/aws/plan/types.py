"""What a site on AWS shall be made of, as plain values between the spec and the components."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ....schemas.catalog.model.machine import Market
from ....schemas.derived.links import RouteTo
from ....schemas.spec import NodeTaint
from ...pulumi.plan import BucketPlan, CloudPlan, CloudPool, GrantPlan, Plan

InterfaceKind: TypeAlias = Literal["interface", "efa-only"]


class SubnetPlan(Plan, frozen=True):
    """A subnet to make."""

    what: str
    """Part of its name: compute-use1-az4, public."""
    cidr: str
    zone: str | None
    """Zone ID; None: AWS chooses."""


class NetworkPlan(Plan, frozen=True):
    """The site's network: made, or existing where `vpc` is given."""

    cidr: str = ""
    compute: tuple[SubnetPlan, ...] = ()
    """One for each zone, the site's own first."""
    public: SubnetPlan | None = None
    nat: bool = True
    """False where nodes reach the outside through a proxy."""
    endpoints: tuple[str, ...] = ()
    """Services with an interface endpoint: what nodes call without going outside."""
    vpc: str | None = None
    compute_subnet: str | None = None
    public_subnet: str | None = None
    security_groups: tuple[str, ...] = ()
    admin_cidrs: tuple[str, ...] = ()
    connect_endpoint: bool = False
    """An EC2 Instance Connect Endpoint is made: the tunnel to the way in."""
    allowed_networks: tuple[str, ...] = ()
    """Networks of other sites, which links lead to."""
    routes: tuple[RouteTo, ...] = ()
    """Networks of other sites, and the pools whose first host is the gateway to them."""


class InterfacePlan(Plan, frozen=True):
    """A network interface of a node."""

    card: int
    device: int
    kind: InterfaceKind


class OptionPlan(Plan, frozen=True):
    """One way to buy the machines of a pool. No two options of a pool have the same key."""

    key: str
    """Part of names: spot, on-demand, reservation-3f2a1b."""
    market: Market
    reservation: str | None = None
    """Id of the capacity reservation or block."""
    reservation_group: str | None = None
    """ARN of a resource group of reservations."""
    buy_hours: int | None = None
    """Buy a capacity block for so many hours: paid at once, not refundable."""
    max_usd_per_hour: float | None = None
    """Highest price of a spot node."""


class OfferPlan(Plan, frozen=True):
    """An option in a zone: the request of one launch. A fabric domain is bought from one."""

    key: str
    """Unique in the pool, e.g. spot-use1-az4."""
    option: OptionPlan
    zone: str | None
    placement: str | None = None
    """Key of the `PlacementPlan`, or None."""


class PlacementPlan(Plan, frozen=True):
    """A placement group: made, or existing."""

    key: str
    strategy: Literal["cluster", "spread"] = "cluster"
    existing: str | None = None


class ImagePlan(Plan, frozen=True):
    """What nodes boot from."""

    ami: str
    """An AMI, or "resolve:ssm:PARAMETER", which EC2 resolves when it launches a node."""
    user: str
    """Login user of the image."""
    root_device: str

    @property
    def is_fixed(self) -> bool:
        """Whether it is one AMI, not the newest of a series."""
        return not self.ami.startswith("resolve:")


class MadeNode(Plan, frozen=True, kw_only=True):
    """What a node of the stack was made from, as far as another one must be made for a change."""

    offer: str
    """Key of the offer that it is bought by."""
    machine: str
    ami: str | None = None
    """None: its template's."""
    renewed: bool = False
    """It is to be made again, as it is wanted now."""

    def stays(self, wanted: MadeNode) -> bool:
        """Return whether no other machine is made for it."""
        same = (self.offer, self.machine) == (wanted.offer, wanted.machine)
        return same and not self.renewed and wanted.ami in {None, self.ami}


class PoolPlan(CloudPool[OfferPlan], frozen=True, kw_only=True):
    """Machines that are alike."""

    image: ImagePlan
    interfaces: tuple[InterfacePlan, ...]
    joins_eks: bool
    """Its nodes join the control plane that EKS runs, by themselves at their first start."""

    @property
    def buys_spot(self) -> bool:
        """Whether one of its offers is spot."""
        return any(offer.option.market == "spot" for offer in self.offers)


class LinkPlan(Plan, frozen=True):
    """A bucket whose objects appear in a file system, or that its files are written to."""

    what: str
    url: str
    path: str
    """Where in the file system."""
    imports: bool
    exports: bool


class LustrePlan(Plan, frozen=True):
    """An FSx for Lustre file system."""

    name: str
    deployment: Literal["PERSISTENT_2", "SCRATCH_2"]
    capacity_gib: int
    throughput: int | None
    """MB/s per TiB of capacity; None for scratch."""
    efa: bool
    zone: str | None
    kms_key: str | None
    links: tuple[LinkPlan, ...]

    def is_linked_to(self, bucket: str) -> bool:
        """Return whether it reads or writes a bucket, which must then exist as long as it does."""
        return any(link.url.split("/")[2] == bucket for link in self.links)


class EfsPlan(Plan, frozen=True):
    """A file system of EFS."""

    name: str
    throughput_mode: Literal["elastic", "bursting", "provisioned"]
    mibps: float | None
    """MiB/s of provisioned throughput; None: none is."""
    performance_mode: Literal["generalPurpose", "maxIO"]
    kms_key: str | None
    zones: tuple[str, ...]
    """Zone IDs of the private subnets with a mount target each; (): the one subnet, whose zone is
    not known, so that it is mounted by its address."""
    tls: bool = False
    """Nodes reach it by TLS, and so by its name."""


class OpenZfsPlan(Plan, frozen=True):
    """A file system of FSx for OpenZFS."""

    name: str
    deployment: str
    """As the API spells it: SINGLE_AZ_HA_2."""
    capacity_gib: int
    throughput: int
    """MB/s."""
    zone: str | None
    compression: str
    kms_key: str | None
    clients: tuple[str, ...]
    """Networks that may mount it; (): the security group alone decides."""


class IdentityPlan(Plan, frozen=True):
    """Who the nodes are."""

    node_profile: str | None
    """Instance profile that exists; None: one is made."""
    burst_profile: str | None
    bursts: bool
    """Controllers of this site start nodes: they need the right to."""
    bursts_spot: bool
    """Some of those are spot nodes."""
    joins_eks: bool
    """Nodes join a control plane that EKS runs: they need the right to."""
    session_manager: bool
    """Nodes' agent opens sessions of Session Manager: it needs the right to."""
    grants: tuple[GrantPlan, ...]
    policies: tuple[str, ...] = ()
    """ARNs of managed policies that a made role has too."""


class DnsPlan(Plan, frozen=True):
    """The zone with the nodes' names: made, or existing."""

    domain: str
    zone: str | None = None


class EksPlan(Plan, frozen=True):
    """A control plane that EKS runs; the nodes are instances of ours."""

    name: str
    release: str
    """Minor release: 1.35."""
    service_cidr: str
    admin_cidrs: tuple[str, ...]
    """Networks that reach the API server from outside; none: it has no address there."""
    subnets: tuple[str, ...]
    """Subnets that exist, in two zones; none: `cidrs` are made."""
    cidrs: tuple[str, ...]
    """Of subnets to make, each in a zone of its own, for the control plane's interfaces alone."""
    identities: tuple[tuple[str, str], ...]
    """Accounts with the ARN of the role that their pods have."""
    oidc: EksOidcPlan | None
    """Where people log in besides IAM; None: nowhere."""
    groups: dict[str, EksGroupPlan]
    """Elastic pool -> its nodes beyond those that are always there."""
    striped: frozenset[str]
    """Pools whose nodes' own disks are one array, on which images and pods' data lie."""


class EksOidcPlan(Plan, frozen=True):
    """The identity provider whose tokens EKS takes besides IAM's; it takes one."""

    issuer: str
    client_id: str
    username_claim: str
    groups_claim: str
    required_claims: dict[str, str]


class EksGroupPlan(Plan, frozen=True):
    """Nodes of a pool that come and go, as EKS' autoscaler sizes their group."""

    most: int
    labels: dict[str, str]
    """That its nodes come with."""
    taints: tuple[NodeTaint, ...]
    resources: dict[str, str]
    """Resources that the autoscaler can't derive from the machine type, as pods request them."""


class SitePlan(CloudPlan[PoolPlan], frozen=True, kw_only=True):
    """All of a site."""

    account: str | None
    partition: str
    """aws, aws-cn or aws-us-gov: how ARNs begin."""
    network: NetworkPlan
    kms_key: str | None
    identity: IdentityPlan
    dns: DnsPlan
    api_name: str | None
    """Name of the load balancer before several API servers; None: there is none."""
    control_plane: EksPlan | None
    placements: tuple[PlacementPlan, ...]
    lustre: tuple[LustrePlan, ...]
    efs: tuple[EfsPlan, ...] = ()
    openzfs: tuple[OpenZfsPlan, ...] = ()
    buckets: tuple[BucketPlan, ...]
