"""What the spec may leave open on OCI: images, the login user, the disk, the service machine."""

from __future__ import annotations

from functools import cache

import msgspec

from ...pulumi.data import read_data


class VendorImage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A platform image of OCI: the newest of an operating system."""

    user: str
    operating_system: str = ""
    """"" where OCI has none."""
    version: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data of facts.yaml, where each figure has its source."""

    service_machine: str
    root_disk_gib: int
    distribution: str
    images: dict[str, VendorImage]


@cache
def facts() -> Facts:
    """Return the content of facts.yaml."""
    return read_data("oci", "facts", Facts)


ROLE = "role"
"""Defined tag for the rules of dynamic groups, which can't use free-form tags."""
