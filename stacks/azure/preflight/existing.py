"""What a subscription allows: who is logged in, with which rights, and room in its networks."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from ipaddress import ip_network

from ....schemas.diagnostics import Diagnostic
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api
from ..plan.types import SitePlan, SubnetPlan

_SUBSCRIPTIONS = "2022-12-01"
_PERMISSIONS = "2022-04-01"
_PROVIDERS = "2021-04-01"
_FEATURES = "2021-07-01"
_NETWORK = "2024-05-01"
_KEPT_ADDRESSES = 5
"""Of each subnet, by Azure (the catalog's subnet_reserved_addresses for azure)."""


class _Subscription(Answer, frozen=True):
    state: str = ""
    display_name: str = ""


class _Permission(Answer, frozen=True):
    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()


class _Registration(Answer, frozen=True):
    registration_state: str = ""


class _FeatureProperties(Answer, frozen=True):
    state: str = ""


class _Feature(Answer, frozen=True):
    properties: _FeatureProperties = _FeatureProperties()


class _SubnetProperties(Answer, frozen=True):
    address_prefix: str = ""
    address_prefixes: tuple[str, ...] = ()
    ip_configurations: tuple[object, ...] = ()


class _Subnet(Answer, frozen=True):
    properties: _SubnetProperties


def check_subscription(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield a finding where the subscription can't be used."""
    found = api.get(_Subscription, f"/subscriptions/{plan.subscription}", _SUBSCRIPTIONS)
    if found.state not in {"Enabled", "Warned"}:
        yield finding(
            "GC993",
            f"subscription {found.display_name or plan.subscription} is {found.state}",
            hint="choose another with `subscription` of the site, or have it enabled again",
        )


def check_rights(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield what the login may not do of all that `up` does."""
    scope = f"/subscriptions/{plan.subscription}"
    if plan.resource_group:
        scope += f"/resourceGroups/{plan.resource_group}"
    below = f"{scope}/providers/Microsoft.Authorization/permissions"
    granted = list(api.pages(_Permission, below, _PERMISSIONS))
    lacking = [action for action in needed_actions(plan) if not _may(granted, action)]
    if lacking:
        yield finding(
            "GC993",
            f"the login may not do {len(lacking)} of the things that `up` does",
            detail="\n".join(lacking),
            hint=f"give it Contributor at {scope}"
            + (
                ", and Role Based Access Control Administrator for the machines' identities"
                if any("Authorization" in action for action in lacking)
                else ""
            ),
        )


def needed_actions(plan: SitePlan) -> tuple[str, ...]:
    """Return the actions without which `up` would stop half-way."""
    wanted = {
        "Microsoft.Compute/virtualMachineScaleSets/write": any(p.sets for p in plan.pools),
        "Microsoft.Compute/virtualMachines/write": any(not p.sets for p in plan.pools),
        "Microsoft.Compute/virtualMachines/runCommand/action": True,
        "Microsoft.Network/networkSecurityGroups/write": True,
        "Microsoft.Network/virtualNetworks/write": not plan.network.existing,
        "Microsoft.Resources/subscriptions/resourceGroups/write": not plan.resource_group,
        "Microsoft.ManagedIdentity/userAssignedIdentities/write": not plan.access.node_identity,
        "Microsoft.Authorization/roleAssignments/write": plan.access.makes_burst
        or (not plan.access.node_identity and any(c.mounted for c in plan.storage.containers))
        or (plan.key is not None and bool(plan.key.key)),
        "Microsoft.Storage/storageAccounts/write": bool(
            plan.storage.accounts or plan.storage.shares
        ),
        "Microsoft.StorageCache/amlFilesystems/write": bool(plan.storage.file_systems),
        "Microsoft.Consumption/budgets/write": plan.budget is not None and not plan.resource_group,
    }
    return tuple(action for action, is_needed in wanted.items() if is_needed)


def _may(granted: list[_Permission], action: str) -> bool:
    """Return whether a role allows it and the same role does not exclude it again."""
    return any(
        _matches(permission.actions, action) and not _matches(permission.not_actions, action)
        for permission in granted
    )


def _matches(patterns: tuple[str, ...], action: str) -> bool:
    return any(fnmatchcase(action.casefold(), pattern.casefold()) for pattern in patterns)


def check_registered(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield the services and features that the subscription has not switched on."""
    services = ["Microsoft.Compute", "Microsoft.Network", "Microsoft.ManagedIdentity"]
    services += ["Microsoft.StorageCache"] if plan.storage.file_systems else []
    services += ["Microsoft.Storage"] if plan.storage.accounts or plan.storage.shares else []
    aks = plan.control_plane
    services += ["Microsoft.ContainerService"] if aks is not None else []
    services += ["Microsoft.KubernetesConfiguration"] if aks is not None and aks.striped else []
    for service in services:
        path = f"/subscriptions/{plan.subscription}/providers/{service}"
        state = api.get(_Registration, path, _PROVIDERS).registration_state
        if state != "Registered":
            yield finding(
                "GC998",
                f"the subscription is not registered for {service} ({state or 'unknown'})",
                hint=f"az provider register --wait --namespace {service} "
                f"--subscription {plan.subscription}",
            )
    if plan.key is not None:
        yield from _check_host_encryption(api, plan)


def _check_host_encryption(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    path = (
        f"/subscriptions/{plan.subscription}/providers/Microsoft.Features"
        "/providers/Microsoft.Compute/features/EncryptionAtHost"
    )
    if api.get(_Feature, path, _FEATURES).properties.state != "Registered":
        yield finding(
            "GC998",
            "kms_key: the subscription has no encryption at host",
            detail="With a customer's key the hosts encrypt caches and temporary disks too, which "
            "a subscription has to switch on once.",
            hint="az feature register --namespace Microsoft.Compute --name EncryptionAtHost "
            f"--subscription {plan.subscription}",
        )


def check_subnet(
    api: Api, plan: SitePlan, subnet: SubnetPlan, machines: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield a finding where a subnet that exists has too few addresses left."""
    pools = [pool for pool in plan.pools if pool.subnet == subnet.name]
    needed = sum(max(0, pool.most - machines.of(pool.name)) for pool in pools)
    found = api.get(_Subnet, subnet.existing, _NETWORK, **{"$expand": "ipConfigurations"})
    written = found.properties
    prefixes = written.address_prefixes or (
        (written.address_prefix,) if written.address_prefix else ()
    )
    sizes = [ip_network(prefix).num_addresses - _KEPT_ADDRESSES for prefix in prefixes]
    free = sum(sizes) - len(written.ip_configurations)
    if needed > free:
        names = ", ".join(pool.name for pool in pools)
        yield finding(
            "GC997",
            f"subnet {subnet.existing.rpartition('/')[2]} has {max(free, 0):,} addresses "
            f"left, {names} may need {needed:,} more",
            hint="name a larger subnet, or lower the count of the pools",
        )
