"""Whether what the site brings is there and fits: login, network, groups, keys, images."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ....schemas.diagnostics import Diagnostic, Severity
from ...pulumi.preflight import ExistingMachines, finding
from ..api import NOT_FOUND, Answer, Api, OciError
from ..plan.types import SitePlan

_FULL = 100.0


class _Compartment(Answer, frozen=True):
    lifecycle_state: str = ""


class _Subnet(Answer, frozen=True):
    vcn_id: str
    cidr_block: str = ""
    prohibit_public_ip_on_vnic: bool = False
    lifecycle_state: str = ""


class _Cidr(Answer, frozen=True):
    cidr: str = ""
    utilization: float = 0.0


class _Utilization(Answer, frozen=True):
    ip_inventory_cidr_utilization_summary: tuple[_Cidr, ...] = ()


class _Resource(Answer, frozen=True):
    lifecycle_state: str | None = None


class _Resources(Answer, frozen=True):
    items: tuple[_Resource, ...] = ()


class _Image(Answer, frozen=True):
    lifecycle_state: str = ""


class _Fitting(Answer, frozen=True):
    shape: str = ""


def check_login(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield a finding where the login doesn't see the compartment, or it is not in use."""
    try:
        found = api.call(_Compartment, "identity", "get_compartment", plan.compartment)
    except OciError as error:
        if error.code != NOT_FOUND:
            raise
        yield finding(
            "GC971",
            f'compartment {plan.compartment} of site "{plan.labels.site}" is not there for this '
            "login",
            detail=error.diagnostics[0].detail,
            hint="choose the login with OCI_CLI_PROFILE, or allow it the compartment",
        )
        return
    if found.lifecycle_state != "ACTIVE":
        yield finding("GC971", f"compartment {plan.compartment} is {found.lifecycle_state.lower()}")


def check_network(api: Api, plan: SitePlan, existing: ExistingMachines) -> Iterator[Diagnostic]:
    """Yield what is wrong with a network that exists: subnets missing, elsewhere, too full."""
    network = plan.network
    if network.vcn is None:
        return
    private = sum(pool.most - existing.of(pool.name) for pool in plan.pools if not pool.public)
    for subnet, need in ((network.compute_subnet, private), (network.public_subnet, 0)):
        if subnet is None:
            continue
        found = api.find(_Subnet, "network", "get_subnet", subnet)
        if found is None:
            yield finding(
                "GC976", f"subnet {subnet} is not in {plan.region}, or not for this login"
            )
            continue
        if found.vcn_id != network.vcn:
            yield finding("GC976", f"subnet {subnet} is in {found.vcn_id}, not {network.vcn}")
        if subnet == network.public_subnet and found.prohibit_public_ip_on_vnic:
            yield finding("GC976", f"subnet {subnet} is private: it allows no public addresses")
        yield from _room(api, subnet, found, need)


def _room(api: Api, subnet: str, found: _Subnet, need: int) -> Iterator[Diagnostic]:
    """Yield a warning where a subnet has too few addresses: OCI keeps three of each."""
    if need <= 0:
        return
    answer = api.call(_Utilization, "network", "get_subnet_cidr_utilization", subnet)
    size = ipaddress.ip_network(found.cidr_block).num_addresses - 3
    used = max(
        (part.utilization for part in answer.ip_inventory_cidr_utilization_summary), default=0.0
    )
    free = round(size * (1 - used / _FULL))
    if free < need:
        yield finding(
            "GC976",
            f"subnet {subnet} has {free} free addresses, the nodes need {need} more",
            severity=Severity.WARNING,
        )


def check_exists(api: Api, what: str, kind: str, ocid: str) -> Iterator[Diagnostic]:
    """Yield a finding where something is not found, or not in use, by OCI's search.

    Args:
        api: the site's region.
        what: for messages.
        kind: of the search: key, networksecuritygroup.
        ocid: of the resource.
    """
    query = {"type": "Structured", "query": f"query {kind} resources where identifier = '{ocid}'"}
    found = api.call(_Resources, "search", "search_resources", query).items
    if not found:
        yield finding("GC976", f"{what} {ocid} is not there for this login")
        return
    state = (found[0].lifecycle_state or "").upper()
    if state not in {"", "ENABLED", "AVAILABLE", "ACTIVE"}:
        yield finding("GC976", f"{what} {ocid} is {state.lower()}")


def check_image(
    api: Api, image: str, shapes: tuple[str, ...], pools: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """Yield what keeps an image from booting the nodes of some pools."""
    lead = f"image of pools {', '.join(pools)}"
    found = api.find(_Image, "compute", "get_image", image)
    if found is None:
        yield finding("GC977", f"{lead}: {image} is not there for this login")
        return
    if found.lifecycle_state != "AVAILABLE":
        yield finding("GC977", f"{lead}: {image} is {found.lifecycle_state.lower()}")
    call = "list_image_shape_compatibility_entries"
    pages = api.pages(tuple[_Fitting, ...], "compute", call, image)
    fitting = {entry.shape for page in pages for entry in page}
    for shape in shapes:
        if fitting and shape not in fitting:
            yield finding("GC977", f"{lead}: {image} is not made for {shape}")
