"""Microsoft Azure."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from ..model import Identifier, SpecModel, updates
from .site import CloudNetwork, CloudSite


class AzureSubnets(SpecModel, frozen=True):
    """Subnets that exist."""

    UPDATES: ClassVar = updates(replace="compute storage")

    compute: Annotated[Identifier, Meta(description="Subnet of the nodes.")]
    storage: Annotated[
        Identifier | None, Meta(description="Subnet of managed Lustre; /24 is recommended.")
    ] = None


class AzureNetwork(CloudNetwork, frozen=True):
    """A virtual network: made, or existing."""

    UPDATES: ClassVar = updates(replace="vnet subnets")

    vnet: Annotated[Identifier | None, Meta(description="Virtual network that exists.")] = None
    subnets: Annotated[AzureSubnets | None, Meta(description="Subnets that exist, in `vnet`.")] = (
        None
    )


class AzureSite(CloudSite, frozen=True, kw_only=True, tag_field="provider", tag="azure"):
    """A zone of an Azure region."""

    UPDATES: ClassVar = updates(replace="subscription region zone_number resource_group network")

    managed_kubernetes: ClassVar[str] = "aks"
    bucket_scheme: ClassVar[str] = "az"
    makes_gateways: ClassVar[bool] = True
    existing_key: ClassVar[str] = "vnet"

    subscription: Annotated[Identifier, Meta(description="Subscription that pays.")]
    region: Annotated[Identifier, Meta(description="Region.", examples=["eastus"])]
    zone_number: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9]$(?!\n)", examples=["1"])] | None,
        Meta(description="Availability zone, by number."),
    ] = field(default=None, name="zone")
    resource_group: Annotated[
        Identifier | None, Meta(description="Resource group that exists; default: one is made.")
    ] = None
    network: Annotated[AzureNetwork, Meta(description="The nodes' virtual network.")] = (
        AzureNetwork()
    )

    @property
    def zone(self) -> str | None:
        """The zone's number."""
        return self.zone_number

    def place(self, zone: str) -> str:
        """Return region-number: the catalog tells the zones of all regions apart."""
        return f"{self.region}-{zone}" if zone.isdigit() else zone
