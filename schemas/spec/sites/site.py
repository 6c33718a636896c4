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
        """Whether its nodes boot from an image as somebody else made it: none is baked for them."""
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

    https: Annotated[
        Url, Meta(description="Proxy for HTTP and HTTPS.", examples=["http://10.0.0.3:3128"])
    ]
    no_proxy: Annotated[
        list[str], Meta(description="Hosts and networks that are reached without it.")
    ] = field(default_factory=list)


class Dns(SpecModel, frozen=True):
    """A private DNS zone that exists; default: one is made for the cluster."""

    UPDATES: ClassVar = updates(in_place="zone domain")

    zone: Annotated[
        Identifier, Meta(description="Its id.", examples=["Z0ABC", "projects/p/managedZones/z"])
    ]
    domain: Annotated[
        str | None, Meta(description="Names are made below this.", examples=["gpu.example.edu"])
    ] = None


class NodeRoles(SpecModel, frozen=True):
    """Identities that exist; default: one with least privilege is made."""

    UPDATES: ClassVar = updates(in_place="node burst")

    node: Annotated[
        Identifier | None,
        Meta(
            description="Identity of the nodes: instance profile (AWS), service account (GCP), "
            "managed identity (Azure)."
        ),
    ] = None
    burst: Annotated[
        Identifier | None, Meta(description="Identity of the burst agent, which makes nodes.")
    ] = None


class CloudSsh(SpecModel, frozen=True):
    """How to log in to machines that the site makes."""

    UPDATES: ClassVar = updates(in_place="via", replace="user key")

    user: Annotated[
        LoginUser | None, Meta(description="Login user of the image; default: the image's own.")
    ] = None
    key: Annotated[
        FilePath | None,
        Meta(description="Private key; default: one is made for the cluster, 0600."),
    ] = None
    via: Annotated[
        Name | None,
        Meta(description="Pool whose first host is the way in; default: login, controller."),
    ] = None


DEFAULT_CLOUD_CIDR = "10.40.0.0/16"
"""What a cloud's network is made with where the spec says nothing."""


class CloudNetwork(SpecModel, frozen=True):
    """The nodes' network: made with this CIDR, or existing."""

    UPDATES: ClassVar = updates(in_place="admin_cidrs mtu", replace="cidr")

    cidr: Annotated[Cidr | None, Meta(description="Network to make; default: 10.40.0.0/16.")] = None
    admin_cidrs: Annotated[
        list[Cidr],
        Meta(
            description="Networks that may reach SSH of login and controller nodes.",
            examples=[["192.0.2.0/24"]],
        ),
    ] = field(default_factory=list)
    mtu: Annotated[
        Annotated[int, Meta(ge=1280, le=9216)] | None,
        Meta(description="MTU in bytes; default: the fabric class's, else the cloud's."),
    ] = None


class CloudSite(SiteModel, frozen=True, kw_only=True):
    """What every cloud site may say."""

    UPDATES: ClassVar = updates(
        in_place="dns proxy roles tags",
        replace="region kms_key network ssh image",
    )

    is_cloud: ClassVar[bool] = True
    zone_key: ClassVar[str] = "zone"
    """Key that the zone is written under."""
    existing_key: ClassVar[str] = "vpc"
    """Key of `network` for one that exists."""
    subnets_key: ClassVar[str] = "subnets"
    """Key of `network` for the subnets of one that exists."""

    region: Annotated[Identifier, Meta(description="Region, as the cloud calls it.")]
    dns: Annotated[Dns | None, Meta(description="A DNS zone that exists.")] = None
    kms_key: Annotated[
        Identifier | None,
        Meta(description="Key that encrypts disks and file systems; default: the cloud's own."),
    ] = None
    network: Annotated[CloudNetwork, Meta(description="The nodes' network.")] = CloudNetwork()
    proxy: Annotated[Proxy | None, Meta(description="How nodes reach the outside.")] = None
    roles: Annotated[NodeRoles, Meta(description="Identities that exist.")] = NodeRoles()
    ssh: Annotated[CloudSsh, Meta(description="How to log in.")] = CloudSsh()
    image: Annotated[
        Identifier | None,
        Meta(description="Machine image to boot; default: the vendor's image of the distribution."),
    ] = None
    tags: Annotated[
        dict[str, Tag], Meta(description="Tags or labels in addition to the cluster's.")
    ] = field(default_factory=dict)

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
