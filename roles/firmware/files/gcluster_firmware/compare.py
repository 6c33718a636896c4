"""What firmware the BMC lists, and where it differs from what is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .redfish import Redfish, RedfishError

ROOT = "/redfish/v1"
UPDATE_SERVICE = f"{ROOT}/UpdateService"


@dataclass(frozen=True)
class Component:
    """A line of the firmware inventory."""

    id: str
    version: str
    updateable: bool
    path: str


@dataclass(frozen=True)
class Difference:
    """A target whose firmware isn't the wanted one."""

    target: str
    has: str
    """None there: ""."""
    wanted: str

    def __str__(self) -> str:
        """Return it as text."""
        return f"{self.target}: has {self.has or 'nothing'}, wanted {self.wanted}"


def firmware_of(bmc: Redfish) -> dict[str, Component]:
    """Return Id -> component of UpdateService/FirmwareInventory.

    Raises:
        RedfishError: the BMC can't be queried.
    """
    service = bmc.get(UPDATE_SERVICE)
    place = service.get("FirmwareInventory", {}).get("@odata.id")
    if not place:
        raise RedfishError("the BMC has no firmware inventory")
    found: dict[str, Component] = {}
    while place:
        page = bmc.get(place)
        for member in page.get("Members", []):
            item = bmc.get(member["@odata.id"])
            name = str(item.get("Id", ""))
            found[name] = Component(
                id=name,
                version=str(item.get("Version") or ""),
                updateable=bool(item.get("Updateable", False)),
                path=str(item.get("@odata.id", member["@odata.id"])),
            )
        place = page.get("Members@odata.nextLink", "")
    return found


def differences(
    found: Mapping[str, Component], wanted: Mapping[str, Mapping[str, Any]]
) -> list[Difference]:
    """Return the targets that differ, in the order they are written."""
    return [
        Difference(
            target, found[target].version if target in found else "", str(version["version"])
        )
        for target, version in wanted.items()
        if target not in found or found[target].version != str(version["version"])
    ]
