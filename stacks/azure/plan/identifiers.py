"""Ids of Azure Resource Manager: taken apart, and made from the names that a spec gives."""

from __future__ import annotations

import msgspec

from ....schemas.spec import AzureSite
from ...provider import provider_error

_HEAD = 8
"""Parts of /subscriptions/S/resourceGroups/G/providers/NAMESPACE/ before type and name."""


class ArmId(msgspec.Struct, frozen=True, kw_only=True):
    """An id, in its parts."""

    subscription: str
    group: str
    kind: str
    """Namespace and types: Microsoft.Network/virtualNetworks/subnets."""
    names: tuple[str, ...]
    """One for each type."""

    def __str__(self) -> str:
        """Return the id."""
        namespace, *types = self.kind.split("/")
        pairs = "".join(f"/{t}/{n}" for t, n in zip(types, self.names, strict=True))
        head = f"/subscriptions/{self.subscription}/resourceGroups/{self.group}"
        return f"{head}/providers/{namespace}{pairs}"

    @property
    def name(self) -> str:
        """Return the last name."""
        return self.names[-1]


def parse(text: str) -> ArmId | None:
    """Return the parts of an id; None where it is not an id of something in a resource group."""
    parts = text.split("/")
    words = [part.casefold() for part in parts]
    if len(parts) < _HEAD or len(parts) % 2 == 0:
        return None
    if (words[0], words[1], words[3], words[5]) != (
        "",
        "subscriptions",
        "resourcegroups",
        "providers",
    ):
        return None
    types, names = parts[7::2], parts[8::2]
    return ArmId(
        subscription=parts[2],
        group=parts[4],
        kind="/".join([parts[6], *types]),
        names=tuple(names),
    )


def existing(site: AzureSite, written: str, kind: str, *, field: str) -> str:
    """Return the id of an existing resource, given by its id, or by its name in the site's group.

    Raises:
        ProviderError: a name, and the site has no `resource_group` to find it in.
    """
    if written.startswith("/"):
        return written
    if site.resource_group is None:
        raise provider_error(
            "GC990",
            f'{field}: "{written}" is a name, and the site names no resource group that has it',
            hint="write its whole id (/subscriptions/...), or add resource_group to the site",
        )
    names = tuple(written.split("/"))
    return str(
        ArmId(subscription=site.subscription, group=site.resource_group, kind=kind, names=names)
    )


SET = "gcluster-set"
