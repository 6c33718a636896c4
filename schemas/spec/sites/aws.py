"""Amazon Web Services."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ..model import Identifier, SpecModel, updates
from .site import CloudNetwork, CloudSite, CloudSsh


class AwsSubnets(SpecModel, frozen=True):
    """Subnets that exist."""

    UPDATES: ClassVar = updates(replace="compute public control_plane")

    compute: Identifier
    """Private subnet of the nodes, in the zone."""
    public: Identifier | None = None
    """Subnet with public addresses, for login nodes."""
    control_plane: list[Identifier] = field(default_factory=list)
    """Two subnets in two zones for the interfaces of EKS' control plane."""


class AwsNetwork(CloudNetwork, frozen=True):
    """A VPC: made, or existing."""

    UPDATES: ClassVar = updates(replace="vpc subnets security_groups")

    vpc: Annotated[Identifier | None, Meta(examples=["vpc-0abc"])] = None
    """VPC that exists."""
    subnets: AwsSubnets | None = None
    """Subnets that exist, in `vpc`."""
    security_groups: list[Identifier] = field(default_factory=list)
    """Security groups that exist; EFA needs one that lets in and out itself."""


class AwsSsh(CloudSsh, frozen=True):
    """How to log in to machines on AWS."""

    UPDATES: ClassVar = updates(in_place="tunnel")

    tunnel: Literal["ssm", "instance-connect"] | None = None
    """Tunnel to the way in, which then needs no public address: Session Manager (the image has its
    agent) or an EC2 Instance Connect Endpoint. Default: none."""


class AwsSite(CloudSite, frozen=True, kw_only=True, tag_field="provider", tag="aws"):
    """A zone of an AWS region."""

    UPDATES: ClassVar = updates(replace="region zone_id account network ssh", in_place="policies")

    frees_any_machine: ClassVar[bool] = True
    managed_kubernetes: ClassVar[str] = "eks"
    bucket_scheme: ClassVar[str] = "s3"
    makes_gateways: ClassVar[bool] = True
    zone_key: ClassVar[str] = "zone_id"

    region: Annotated[Identifier, Meta(examples=["us-east-1"])]
    """Region."""
    zone_id: (
        Annotated[
            str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)?-az[0-9]+$(?!\n)", examples=["use1-az4"])
        ]
        | None
    ) = None
    """Zone ID. EFA stays in one zone; zone names (us-east-1a) differ by account."""
    account: (
        Annotated[str, Meta(pattern=r"^[0-9]{12}$(?!\n)", examples=["111122223333"])] | None
    ) = None
    """Account that must be logged in; default: any."""
    policies: list[
        Annotated[
            str,
            Meta(
                pattern=r"^arn:aws[a-z-]*:iam::(aws|[0-9]{12}):policy/[A-Za-z0-9+=,.@_/-]+$(?!\n)",
                examples=["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"],
            ),
        ]
    ] = field(default_factory=list)
    """Managed policies that the nodes' role has too, in addition to the least rights that it is
    made with. Every job on a node has these rights."""
    network: AwsNetwork = AwsNetwork()
    """The nodes' VPC."""

    ssh: AwsSsh = AwsSsh()
    """How to log in."""

    @property
    def zone(self) -> str | None:
        """The zone ID."""
        return self.zone_id

    @property
    def tunnel(self) -> str | None:
        """The tunnel that the spec names."""
        return self.ssh.tunnel
