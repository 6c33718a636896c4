"""What all sites have in common, and what clouds have in common."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta, field

from ..model import Cidr, FilePath, Identifier, LoginUser, Name, SpecModel, Tag, Url, updates


class SiteModel(SpecModel, frozen=True):
    """Base of all sites. The traits say what kind of provider it is; they are not written."""

    makes_machines: ClassVar[bool] = True
    """The provider makes the machines that pools count; else the spec names them."""
    is_cloud: ClassVar[bool] = False
    """The machines are rented."""
    frees_any_machine: ClassVar[bool] = False
    """One machine of a pool can go by its name and the others stay; else its last ones go."""
    runs_jobs: ClassVar[bool] = True
    """Something really runs on the machines."""
    machines_of: ClassVar[str] = ""
    """Provider whose machine types of the catalog the site has; "": its own."""
    bucket_scheme: ClassVar[str] = ""
    """Scheme of its buckets' URLs; "": it has none."""
    managed_kubernetes: ClassVar[str] = ""
    """Its cloud's own Kubernetes, as `scheduler.control_plane` names it; "": it has none."""
    egress_mtu: ClassVar[int] = 1500
    """Largest packet in bytes that leaves its network whole."""
    makes_gateways: ClassVar[bool] = False
    """A machine of it can be made a gateway: it gets a public address, and routes lead to it."""

    @property
    def provider(self) -> str:
        """Name of the provider, as written."""
        return str(self.__struct_config__.tag)

    @property
    def boots_stock_image(self) -> bool:
        """Whether its nodes boot from an image as published: none is baked for them."""
        return False

    @property
    def is_made_here(self) -> bool:
        """Whether its machines are made and not rented: containers, or simulated ones."""
        return self.makes_machines and not self.is_cloud

    def own_price(self, machine: str) -> float | None:  # noqa: ARG002  # where a site has prices
        """Return what a node of a machine type costs by the spec's own word, in USD per hour."""
        return None

    @property
    def catalog_name(self) -> str:
        """What machine types of the catalog call sites that can have them."""
        return self.machines_of or self.provider

    @property
    def networks(self) -> Mapping[tuple[str, ...], str]:
        """CIDRs that the spec gives the site's nodes, by their path below the site."""
        return {}


class Proxy(SpecModel, frozen=True):
    """How nodes reach the outside."""

    UPDATES: ClassVar = updates(in_place="https no_proxy")

    https: Annotated[Url, Meta(examples=["http://10.0.0.3:3128"])]
    """Proxy for HTTP and HTTPS."""
    no_proxy: list[str] = field(default_factory=list)
    """Hosts and networks that are reached without it."""


class Dns(SpecModel, frozen=True):
    """A private DNS zone that exists; default: one is made for the cluster."""

    UPDATES: ClassVar = updates(in_place="zone domain")

    zone: Annotated[Identifier, Meta(examples=["Z0ABC", "projects/p/managedZones/z"])]
    """Its id."""
    domain: Annotated[str | None, Meta(examples=["gpu.example.edu"])] = None
    """Names are made below this."""


class NodeRoles(SpecModel, frozen=True):
    """Identities that exist; default: one with least privilege is made."""

    UPDATES: ClassVar = updates(in_place="node burst")

    node: Identifier | None = None
    """Identity of the nodes: instance profile (AWS), service account (GCP), managed identity
    (Azure)."""
    burst: Identifier | None = None
    """Identity of the burst agent, which makes nodes."""


class CloudSsh(SpecModel, frozen=True):
    """How to log in to machines that the site makes."""

    UPDATES: ClassVar = updates(in_place="via", replace="user key")

    user: LoginUser | None = None
    """Login user of the image; default: the image's own."""
    key: FilePath | None = None
    """Private key; default: one is made for the cluster, 0600."""
    via: Name | None = None
    """Pool whose first host is the way in; default: login, controller."""


DEFAULT_CLOUD_CIDR = "10.40.0.0/16"
"""What a cloud's network is made with where the spec says nothing."""


class CloudNetwork(SpecModel, frozen=True):
    """The nodes' network: made with this CIDR, or existing."""

    UPDATES: ClassVar = updates(in_place="admin_cidrs mtu", replace="cidr")

    cidr: Cidr | None = None
    """Network to make; default: 10.40.0.0/16."""
    admin_cidrs: Annotated[list[Cidr], Meta(examples=[["192.0.2.0/24"]])] = field(
        default_factory=list
    )
    """Networks that may reach SSH of login and controller nodes."""
    mtu: Annotated[int, Meta(ge=1280, le=9216)] | None = None
    """MTU in bytes; default: the fabric class's, else the cloud's."""


class CloudSite(SiteModel, frozen=True, kw_only=True):
    """What every cloud site may say."""

    UPDATES: ClassVar = updates(
        in_place="dns proxy roles tags",
        replace="region kms_key network ssh image",
    )

    is_cloud: ClassVar[bool] = True
    zone_key: ClassVar[str] = "zone"
    """Key that the zone is written under."""
    sets_mtu: ClassVar[bool] = False
    """Networks are made with the MTU that the spec says."""
    existing_key: ClassVar[str] = "vpc"
    """Key of `network` for one that exists."""
    subnets_key: ClassVar[str] = "subnets"
    """Key of `network` for the subnets of one that exists."""

    region: Identifier
    """Region, as the cloud calls it."""
    dns: Dns | None = None
    """A DNS zone that exists."""
    kms_key: Identifier | None = None
    """Key that encrypts disks and file systems; default: the cloud's own."""
    network: CloudNetwork = CloudNetwork()
    """The nodes' network."""
    proxy: Proxy | None = None
    """How nodes reach the outside."""
    roles: NodeRoles = NodeRoles()
    """Identities that exist."""
    ssh: CloudSsh = CloudSsh()
    """How to log in."""
    image: Identifier | None = None
    """Machine image to boot; default: the vendor's image of the distribution."""
    tags: dict[str, Tag] = field(default_factory=dict)
    """Tags or labels in addition to the cluster's."""

    @property
    def zone(self) -> str | None:
        """The zone that pools are placed in unless they say more; as the cloud writes it."""
        return None

    def place(self, zone: str) -> str:
        """Return a zone as machine types of the catalog name it."""
        return zone

    @property
    def tunnel(self) -> str | None:
        """The cloud's own tunnel that leads to the way in; None: it is reached by its address."""
        return None

    @property
    def networks(self) -> Mapping[tuple[str, ...], str]:
        """The network's CIDR, where it is written."""
        cidr = self.network.cidr
        return {} if cidr is None else {("network", "cidr"): cidr}

    @property
    def existing_network(self) -> str | None:
        """The network that exists, where one is named."""
        found: str | None = getattr(self.network, self.existing_key, None)
        return found

    @property
    def names_subnets(self) -> bool:
        """Whether subnets that exist are named."""
        return getattr(self.network, self.subnets_key, None) is not None
