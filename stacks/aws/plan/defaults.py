"""What the spec may leave open on AWS: images, the login user, the disk, the service machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from ....schemas.decoding import decode_yaml


class VendorImage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest image of a distribution."""

    user: str
    root_device: str
    parameters: dict[str, str]
    """Architecture -> public SSM parameter that holds the AMI."""


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data of defaults.yaml, where each figure has its source."""

    service_machine: str
    root_disk_gib: int
    root_disk_iops: int
    root_disk_mib_per_s: int
    distribution: str
    eks_image: VendorImage
    """Its parameters are of a release and a variant: standard, nvidia."""
    eks_zones_without: list[str]
    images: dict[str, VendorImage]


@cache
def defaults() -> Defaults:
    """Return the data."""
    text = (Path(__file__).parent / "defaults.yaml").read_bytes()
    return decode_yaml(text, Defaults)


OFFER = "gcluster-offer"
"""Key of the offer that a node was bought by; on launch templates the one they are for."""
TOKEN = "gcluster-token"  # noqa: S105  # a tag's key
"""The burst that an elastic node belongs to: the ledger's intent."""
SPOT_ROLE = "AWSServiceRoleForEC2Spot"
"""The account's own role behind every spot request."""
