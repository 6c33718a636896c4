"""Oracle Cloud Infrastructure."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from ..model import Identifier, SpecModel, updates
from .site import CloudNetwork, CloudSite


class OciSubnets(SpecModel, frozen=True):
    """Subnets that exist."""

    UPDATES: ClassVar = updates(replace="compute public")

    compute: Annotated[Identifier, Meta(description="Private subnet of the nodes.")]
    public: Annotated[
        Identifier | None, Meta(description="Subnet with public addresses, for login nodes.")
    ] = None


class OciNetwork(CloudNetwork, frozen=True):
    """A VCN: made, or existing. The RDMA network is none of its subnets."""

    UPDATES: ClassVar = updates(replace="vcn subnets security_groups")

    vcn: Annotated[
        Identifier | None, Meta(description="VCN that exists.", examples=["ocid1.vcn.oc1.iad.x"])
    ] = None
    subnets: Annotated[OciSubnets | None, Meta(description="Subnets that exist, in `vcn`.")] = None
    security_groups: Annotated[
        list[Identifier],
        Meta(description="Network security groups that exist; one lets in and out itself."),
    ] = field(default_factory=list)


class OciSite(CloudSite, frozen=True, kw_only=True, tag_field="provider", tag="oci"):
    """An availability domain of an OCI region."""

    UPDATES: ClassVar = updates(replace="tenancy compartment region availability_domain network")

    bucket_scheme: ClassVar[str] = "oci"
    zone_key: ClassVar[str] = "availability_domain"
    existing_key: ClassVar[str] = "vcn"

    tenancy: Annotated[
        Identifier,
        Meta(
            description="Tenancy that pays: dynamic groups and budgets stand in it.",
            examples=["ocid1.tenancy.oc1..acme"],
        ),
    ]
    compartment: Annotated[
        Identifier,
        Meta(description="Compartment of all else.", examples=["ocid1.compartment.oc1..research"]),
    ]
    region: Annotated[Identifier, Meta(description="Region.", examples=["us-ashburn-1"])]
    availability_domain: Annotated[
        Annotated[str, Meta(pattern=r"^[123]$(?!\n)", examples=["1"])] | None,
        Meta(
            description="Number of the availability domain, which the RDMA network stays in; their "
            "names differ by tenancy. Default: 1."
        ),
    ] = None
    network: Annotated[OciNetwork, Meta(description="The nodes' VCN.")] = OciNetwork()

    @property
    def zone(self) -> str | None:
        """The availability domain's number."""
        return self.availability_domain

    def place(self, zone: str) -> str:
        """Return region-number: the catalog tells the domains of all regions apart."""
        return f"{self.region}-{zone}" if zone.isdigit() else zone
