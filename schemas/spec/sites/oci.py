"""Oracle Cloud Infrastructure."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from ..model import Identifier, SpecModel, updates
from .site import CloudNetwork, CloudSite


class OciSubnets(SpecModel, frozen=True):
    """Subnets that exist."""

    UPDATES: ClassVar = updates(replace="compute public")

    compute: Identifier
    """Private subnet of the nodes."""
    public: Identifier | None = None
    """Subnet with public addresses, for login nodes."""


class OciNetwork(CloudNetwork, frozen=True):
    """A VCN: made, or existing. The RDMA network is none of its subnets."""

    UPDATES: ClassVar = updates(replace="vcn subnets security_groups")

    vcn: Annotated[Identifier | None, Meta(examples=["ocid1.vcn.oc1.iad.x"])] = None
    """VCN that exists."""
    subnets: OciSubnets | None = None
    """Subnets that exist, in `vcn`."""
    security_groups: list[Identifier] = field(default_factory=list)
    """Network security groups that exist; one lets in and out itself."""


class OciSite(CloudSite, frozen=True, kw_only=True, tag_field="provider", tag="oci"):
    """An availability domain of an OCI region."""

    UPDATES: ClassVar = updates(replace="tenancy compartment region availability_domain network")

    bucket_scheme: ClassVar[str] = "oci"
    zone_key: ClassVar[str] = "availability_domain"
    existing_key: ClassVar[str] = "vcn"

    tenancy: Annotated[Identifier, Meta(examples=["ocid1.tenancy.oc1..acme"])]
    """Tenancy that pays: dynamic groups and budgets are in it."""
    compartment: Annotated[Identifier, Meta(examples=["ocid1.compartment.oc1..research"])]
    """Compartment of all else."""
    region: Annotated[Identifier, Meta(examples=["us-ashburn-1"])]
    """Region."""
    availability_domain: Annotated[str, Meta(pattern=r"^[123]$(?!\n)", examples=["1"])] | None = (
        None
    )
    """Number of the availability domain, which the RDMA network stays in; their names differ by
    tenancy. Default: 1."""
    network: OciNetwork = OciNetwork()
    """The nodes' VCN."""

    @property
    def zone(self) -> str | None:
        """The availability domain's number."""
        return self.availability_domain

    def place(self, zone: str) -> str:
        """Return region-number: by these the catalog distinguishes the domains of all regions."""
        return f"{self.region}-{zone}" if zone.isdigit() else zone
