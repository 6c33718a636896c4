"""Microsoft Azure."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from ..model import Identifier, SpecModel, updates
from .site import CloudNetwork, CloudSite


class AzureSubnets(SpecModel, frozen=True):
    """Subnets that exist."""

    UPDATES: ClassVar = updates(replace="compute storage")

    compute: Identifier
    """Subnet of the nodes."""
    storage: Identifier | None = None
    """Subnet of managed Lustre; /24 is recommended."""


class AzureNetwork(CloudNetwork, frozen=True):
    """A virtual network: made, or existing."""

    UPDATES: ClassVar = updates(replace="vnet subnets")

    vnet: Identifier | None = None
    """Virtual network that exists."""
    subnets: AzureSubnets | None = None
    """Subnets that exist, in `vnet`."""


class AzureSite(CloudSite, frozen=True, kw_only=True, tag_field="provider", tag="azure"):
    """A zone of an Azure region."""

    UPDATES: ClassVar = updates(replace="subscription region zone_number resource_group network")

    managed_kubernetes: ClassVar[str] = "aks"
    bucket_scheme: ClassVar[str] = "az"
    makes_gateways: ClassVar[bool] = True
    existing_key: ClassVar[str] = "vnet"

    subscription: Identifier
    """Subscription that pays."""
    region: Annotated[Identifier, Meta(examples=["eastus"])]
    """Region."""
    zone_number: Annotated[str, Meta(pattern=r"^[0-9]$(?!\n)", examples=["1"])] | None = field(
        default=None, name="zone"
    )
    """Availability zone, by number."""
    resource_group: Identifier | None = None
    """Resource group that exists; default: one is made."""
    network: AzureNetwork = AzureNetwork()
    """The nodes' virtual network."""

    @property
    def zone(self) -> str | None:
        """The zone's number."""
        return self.zone_number

    def place(self, zone: str) -> str:
        """Return region-number: by these the catalog distinguishes the zones of all regions."""
        return f"{self.region}-{zone}" if zone.isdigit() else zone
