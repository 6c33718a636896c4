"""What the spec may leave open on AWS: images, the login user, the disk, the service machine."""

from __future__ import annotations

from functools import cache

import msgspec

from ...pulumi.data import read_data


class VendorImage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest image of a distribution."""

    user: str
    root_device: str
    parameters: dict[str, str]
    """Architecture -> public SSM parameter that holds the AMI."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data of facts.yaml, where each figure has its source."""

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
def facts() -> Facts:
    """Return the content of facts.yaml."""
    return read_data("aws", "facts", Facts)


SPOT_ROLE = "AWSServiceRoleForEC2Spot"
"""The account's own role behind every spot request."""
