"""Google Cloud."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ..model import Identifier, updates
from .site import CloudNetwork, CloudSite, CloudSsh


class GcpNetwork(CloudNetwork, frozen=True):
    """The nodes' VPC: made, or existing; the fabric's own networks are separate."""

    UPDATES: ClassVar = updates(replace="vpc subnet fabric_networks")

    vpc: Annotated[Identifier | None, Meta(examples=["projects/p/global/networks/n"])] = None
    """Network that exists."""
    subnet: Identifier | None = None
    """Subnetwork that exists, in `vpc`."""
    fabric_networks: list[Identifier] = field(default_factory=list)
    """Networks that exist for the GPUs' NICs, in the order of the NICs."""


class GcpSsh(CloudSsh, frozen=True):
    """How to log in to machines on Google Cloud."""

    UPDATES: ClassVar = updates(in_place="tunnel")

    tunnel: Literal["iap"] | None = None
    """Tunnel to the way in, which then needs no public address: Identity-Aware Proxy. Default:
    none."""


class GcpSite(CloudSite, frozen=True, kw_only=True, tag_field="provider", tag="gcp"):
    """A zone of a Google Cloud region."""

    UPDATES: ClassVar = updates(replace="project region zone_name network ssh")

    managed_kubernetes: ClassVar[str] = "gke"
    bucket_scheme: ClassVar[str] = "gs"
    egress_mtu: ClassVar[int] = 1460  # docs.cloud.google.com/vpc/docs/mtu, November 2026
    makes_gateways: ClassVar[bool] = True
    sets_mtu: ClassVar[bool] = True
    subnets_key: ClassVar[str] = "subnet"

    project: Annotated[Identifier, Meta(examples=["acme-ml"])]
    """Project that owns all."""
    region: Annotated[Identifier, Meta(examples=["us-central1"])]
    """Region."""
    zone_name: (
        Annotated[
            str, Meta(pattern=r"^[a-z]+-[a-z]+[0-9]+-[a-z]$(?!\n)", examples=["us-central1-a"])
        ]
        | None
    ) = field(default=None, name="zone")
    """Zone."""
    network: GcpNetwork = GcpNetwork()
    """The nodes' VPC."""

    ssh: GcpSsh = GcpSsh()
    """How to log in."""

    @property
    def zone(self) -> str | None:
        """The zone's name."""
        return self.zone_name

    @property
    def tunnel(self) -> str | None:
        """The tunnel that the spec names."""
        return self.ssh.tunnel
