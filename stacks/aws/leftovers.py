"""Resources in AWS that still carry a site's tags, from the service that indexes all tags."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...schemas.catalog import Catalog
from ..provider import Leftover
from ..pulumi.hosts import usd_on_demand
from ..pulumi.plan import STORAGE_TAG
from .api import Answer, Api, filters, tagged
from .hosts import Instance, instances
from .plan.types import SitePlan

_GLOBAL = "us-east-1"
"""Region that lists resources of global services: zones, roles (Resource Groups Tagging API)."""
_DATA = {"elasticfilesystem": "file-system", "fsx": "file-system", "s3": "bucket"}
"""Services whose resources hold data, and what is called so here."""
_MOMENTARY = {"fleet", "spot-instances-request", "network-interface", "volume"}
"""Kinds of EC2 that end with their instance, or are records of requests."""


class _Found(Answer, frozen=True):
    resource_tag_mapping_list: tuple[dict[str, object], ...] = ()


class _Gateway(Answer, frozen=True):
    nat_gateway_id: str


class _Gateways(Answer, frozen=True):
    nat_gateways: tuple[_Gateway, ...] = ()


def leftovers(api: Api, plan: SitePlan, catalog: Catalog) -> tuple[Leftover, ...]:
    """Return everything of a site, sorted by kind and name; data is marked as kept.

    Machines have the catalog's price on demand, the most that they cost.

    EC2 shows ended machines and NAT gateways for about an hour: what counts is which are alive.
    """
    gateways = _gateways(api, plan)
    alive = {machine.instance_id: machine for machine in instances(api, plan)}
    found: dict[str, Leftover] = {}
    regions = {api.region: api, _GLOBAL: api.elsewhere(_GLOBAL)}
    for there in regions.values():
        for arn, is_data in _tagged_arns(there, plan):
            item = _leftover(arn)
            if is_data:
                found[arn] = msgspec.structs.replace(item, kept_data=True)
                continue
            machine = alive.get(item.name)
            if item.kind == "instance" and machine is None:
                continue
            if item.kind == "natgateway" and item.name not in gateways:
                continue
            if item.kind not in _MOMENTARY:
                found[arn] = _priced(item, machine, api.region, catalog)
    known = {item.name for item in found.values()}
    for machine in alive.values():  # tagged just now: the index of tags may not have it yet
        if machine.instance_id not in known:
            arn = f"arn:{plan.partition}:ec2:{api.region}::instance/{machine.instance_id}"
            found[arn] = _priced(_leftover(arn), machine, api.region, catalog)
    return tuple(sorted(found.values(), key=lambda item: (item.kind, item.name)))


def _gateways(api: Api, plan: SitePlan) -> frozenset[str]:
    """Return the NAT gateways that are there; a deleted one keeps its entry and its tags."""
    states = ["pending", "available", "deleting"]  # others: failed, deleted (EC2, NatGatewayState)
    wanted = [*tagged(plan.labels.found_by()), *filters(state=states)]
    pages = api.pages(_Gateways, "ec2", "describe_nat_gateways", Filters=wanted)
    return frozenset(one.nat_gateway_id for page in pages for one in page.nat_gateways)


def _priced(item: Leftover, machine: Instance | None, region: str, catalog: Catalog) -> Leftover:
    usd = None if machine is None else usd_on_demand(catalog, machine.instance_type, region)
    return msgspec.structs.replace(item, usd_per_hour=usd)


def _tagged_arns(api: Api, plan: SitePlan) -> Iterator[tuple[str, bool]]:
    """Yield ARNs of the site, and whether it is a disk that holds a storage of the spec."""
    wanted = [{"Key": k, "Values": [v]} for k, v in plan.labels.found_by().items()]
    pages = api.pages(_Found, "resourcegroupstaggingapi", "get_resources", TagFilters=wanted)
    for page in pages:
        for entry in page.resource_tag_mapping_list:
            tags = entry.get("Tags")
            keys = [tag.get("Key") for tag in tags] if isinstance(tags, list) else []
            yield str(entry["ResourceARN"]), STORAGE_TAG in keys


def _leftover(arn: str) -> Leftover:
    """Return what an ARN names: arn:PARTITION:SERVICE:REGION:ACCOUNT:KIND/NAME, or only NAME."""
    service, resource = arn.split(":", 5)[2], arn.split(":", 5)[5]
    kind, _, name = resource.rpartition("/")
    return Leftover(
        kind=kind.partition("/")[0] or _DATA.get(service, service),
        name=name,
        provider_id=arn if service != "ec2" else name,
        kept_data=service in _DATA,
    )
