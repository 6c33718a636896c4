"""What still carries a site's mark at Google's: machines, disks, networks, identities, data."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...schemas.catalog import Catalog
from ...schemas.structure.decoding import decode_json
from ..provider import Leftover
from ..pulumi.hosts import usd_on_demand
from ..pulumi.plan import STORAGE_TAG
from .api import Answer, Api
from .plan.layout import SitePlan
from .plan.names import found_by

_AT_ONCE = 8
_GLOBAL = ("networks", "firewalls", "instanceTemplates")
_ZONED = (
    "addresses",
    "backendServices",
    "forwardingRules",
    "healthChecks",
    "instanceGroups",
    "targetTcpProxies",
    "instances",
    "disks",
    "subnetworks",
    "routers",
    "resourcePolicies",
    "instanceGroupManagers",
)
_KINDS = {
    "addresses": "fixed-ip",
    "backendServices": "backend-service",
    "disks": "volume",
    "firewalls": "firewall",
    "forwardingRules": "forwarding-rule",
    "healthChecks": "health-check",
    "instanceGroupManagers": "instance-group-manager",
    "instanceGroups": "instance-group",
    "instanceTemplates": "template",
    "instances": "node",
    "networks": "network",
    "resourcePolicies": "placement",
    "routers": "router",
    "subnetworks": "subnet",
    "targetTcpProxies": "proxy-target",
}
"""What each is called where one is, for a person: more of them get an s."""


class _Properties(Answer, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Resource(Answer, frozen=True):
    name: str
    id: str = ""
    self_link: str = ""
    description: str = ""
    machine_type: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    properties: _Properties = _Properties()
    email: str = ""


class _Resources(Answer, frozen=True):
    items: tuple[_Resource, ...] = ()
    instances: tuple[_Resource, ...] = ()
    accounts: tuple[_Resource, ...] = ()


class _Scopes(Answer, frozen=True):
    items: dict[str, dict[str, msgspec.Raw]] = msgspec.field(default_factory=dict)


def leftovers(api: Api, plan: SitePlan, catalog: Catalog) -> tuple[Leftover, ...]:
    """Return everything with the site's labels or description, by kind and name.

    Raises:
        GoogleError: a list could not be read: then leftovers are unknown.
    """
    lists = [*((kind, False) for kind in _GLOBAL), *((kind, True) for kind in _ZONED)]
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        compute = workers.map(lambda one: list(_compute(api, plan, *one)), lists)
        others = workers.map(lambda ask: list(ask(api, plan)), (_file_systems, _buckets, _accounts))
        found = [item for part in (*compute, *others) for item in part]
    priced = (_priced(item, machine, plan, catalog) for item, machine in found)
    return tuple(sorted(priced, key=lambda item: (item.kind, item.name)))


def _compute(api: Api, plan: SitePlan, kind: str, zoned: bool) -> Iterator[tuple[Leftover, str]]:
    for resource in _zoned(api, kind) if zoned else _flat(api, kind):
        if _is_ours(resource, plan):
            name = _KINDS[kind]
            id_ = resource.self_link or resource.id
            is_data = STORAGE_TAG in resource.labels
            found = Leftover(kind=name, name=resource.name, provider_id=id_, kept_data=is_data)
            yield found, resource.machine_type


def _flat(api: Api, kind: str) -> Iterator[_Resource]:
    for page in api.pages(_Resources, f"{api.in_project()}/global/{kind}"):
        yield from page.items


def _zoned(api: Api, kind: str) -> Iterator[_Resource]:
    """Yield items of all zones and regions; scopes without any have a warning instead."""
    query = {"returnPartialSuccess": "true"}
    for page in api.pages(_Scopes, f"{api.in_project()}/aggregated/{kind}", query=query):
        for scope in page.items.values():
            if kind in scope:
                yield from decode_json(scope[kind], tuple[_Resource, ...])


def _file_systems(api: Api, plan: SitePlan) -> Iterator[tuple[Leftover, str]]:
    path = f"{api.in_project()}/locations/-/instances"
    for service, made in (("lustre", plan.lustre), ("filestore", plan.filestore)):
        for page in api.pages(_Resources, path, service=service) if made else ():
            for resource in page.instances:
                if _is_ours(resource, plan):
                    name = resource.name.rpartition("/")[2]
                    kept = Leftover(
                        kind="file-system", name=name, provider_id=resource.name, kept_data=True
                    )
                    yield kept, ""


def _buckets(api: Api, plan: SitePlan) -> Iterator[tuple[Leftover, str]]:
    query = {"project": plan.project}
    for page in api.pages(_Resources, "b", service="storage", query=query) if plan.buckets else ():
        for bucket in page.items:
            if _is_ours(bucket, plan):
                kept = Leftover(
                    kind="bucket",
                    name=bucket.name,
                    provider_id=bucket.self_link,
                    kept_data=True,
                )
                yield kept, ""


def _accounts(api: Api, plan: SitePlan) -> Iterator[tuple[Leftover, str]]:
    for page in api.pages(_Resources, f"{api.in_project()}/serviceAccounts", service="iam"):
        for resource in page.accounts:
            if _is_ours(resource, plan):
                yield Leftover(kind="identity", name=resource.email, provider_id=resource.name), ""


def _is_ours(resource: _Resource, plan: SitePlan) -> bool:
    labels = resource.labels | resource.properties.labels
    return found_by(plan).items() <= labels.items() or (
        resource.description == plan.names.description
    )


def _priced(item: Leftover, machine: str, plan: SitePlan, catalog: Catalog) -> Leftover:
    usd = usd_on_demand(catalog, machine.rpartition("/")[2], plan.region)
    return msgspec.structs.replace(item, usd_per_hour=usd)
