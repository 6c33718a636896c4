"""What a killed run had begun to make: Azure makes it all the same, and the stack takes it up.

Made again it would be there, and be billed, twice; and some of it is in the way of its successor: a
subnet of its addresses, a machine of its network interface, an account of its name.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from ..pulumi.data import read_data
from ..pulumi.engine.checkpoint import Begun, StackResource
from .api import Answer, Api
from .plan.types import SitePlan

_PROVIDER = "azure-native:"


class _There(Answer, frozen=True):
    tags: dict[str, str] | None = None


@cache
def addresses() -> dict[str, str]:
    """Return kind (compute.Disk) -> its address, by the names of its inputs."""
    return read_data("azure", "addresses", dict[str, str])


def begun_ids(api: Api, plan: SitePlan, begun: Begun, known: Collection[str]) -> dict[str, str]:
    """Return URN -> id of what is there of what was begun.

    The provider fills names and API versions into the inputs before it makes anything
    (pulumi-azure-native, provider.go, applyDefaults, November 2026). What carries tags of
    somebody else is left to them.

    Args:
        api: the site's subscription.
        plan: the site.
        begun: what the stack has as begun.
        known: ids of what the stack has.

    Raises:
        ProviderError: Azure can't be asked.
    """
    stack = {identifier.casefold() for identifier in known}
    found: dict[str, str] = {}
    for one in begun:
        if not one.type.startswith(_PROVIDER):
            continue
        where = address(plan.subscription, one)
        there = api.find(_There, where, str(one.inputs["azureApiVersion"]))
        if there is None or where.casefold() in stack:
            continue
        if "tags" not in one.inputs or plan.labels.found_by().items() <= (there.tags or {}).items():
            found[one.urn] = where
    return found


def address(subscription: str, begun: StackResource) -> str:
    """Return where a resource stands; KeyError for a kind that is not in addresses.yaml."""
    template = addresses()[begun.type.removeprefix(_PROVIDER).replace(":", ".")]
    name = begun.inputs.get("resourceGroupName", "")
    group = f"/subscriptions/{subscription}/resourceGroups/{name}"
    return template.format_map({**begun.inputs, "group": group})
