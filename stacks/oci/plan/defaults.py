"""What the spec may leave open on OCI: images, the login user, the disk, the service machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from ....schemas.decoding import decode_yaml


class VendorImage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A platform image of OCI: the newest of an operating system."""

    user: str
    operating_system: str = ""
    """"" where OCI has none."""
    version: str = ""


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data of defaults.yaml, where each figure has its source."""

    service_machine: str
    root_disk_gib: int
    distribution: str
    images: dict[str, VendorImage]


@cache
def defaults() -> Defaults:
    """Return the data."""
    text = (Path(__file__).parent / "defaults.yaml").read_bytes()
    return decode_yaml(text, Defaults)


OFFER = "gcluster-offer"
"""Key of the offer that a node was bought by; on instance configurations the one they are for."""
TOKEN = "gcluster-token"  # noqa: S105  # a tag's key
"""The burst that an elastic node belongs to: the ledger's intent."""
ROLE = "role"
"""Defined tag that dynamic groups go by: free-form tags can't be asked for in their rules."""
