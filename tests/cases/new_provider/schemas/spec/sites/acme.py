"""Acme, a cloud that does not exist."""

from typing import Annotated, ClassVar

from msgspec import Meta

from gcluster.schemas.spec.model import Identifier
from gcluster.schemas.spec.sites.site import CloudNetwork, CloudSite


class AcmeNetwork(CloudNetwork, frozen=True):
    """Acme's network: made, or existing."""

    net: Annotated[Identifier | None, Meta(description="Network that exists.")] = None
    subnets: Annotated[Identifier | None, Meta(description="Subnet that exists.")] = None


class AcmeSite(CloudSite, frozen=True, kw_only=True, tag_field="provider", tag="acme"):
    """A hall of an Acme region."""

    zone_key: ClassVar[str] = "hall"
    existing_key: ClassVar[str] = "net"

    hall: Annotated[str | None, Meta(description="Hall.")] = None
    network: Annotated[AcmeNetwork, Meta(description="The nodes' network.")] = AcmeNetwork()

    @property
    def zone(self) -> str | None:
        """The hall."""
        return self.hall
