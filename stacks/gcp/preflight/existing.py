"""Whether what the site brings is there and fits: project, rights, networks, images, identity."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from ....schemas.catalog import Catalog
from ....schemas.diagnostics import Diagnostic, Severity
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api
from ..plan.fabric import FabricNetworkPlan
from ..plan.facts import ServiceNeed, facts
from ..plan.layout import SitePlan

_ARCHITECTURES = {"X86_64": "x86_64", "ARM64": "aarch64"}


class _Granted(Answer, frozen=True):
    permissions: tuple[str, ...] = ()


class _Service(Answer, frozen=True):
    name: str = ""


class _Services(Answer, frozen=True):
    services: tuple[_Service, ...] = ()


class _Utilization(Answer, frozen=True):
    range_name: str = ""
    """"" for the primary range, which machines take their addresses from."""
    total_free_ip: str = ""


class _Utilizations(Answer, frozen=True):
    ipv4_utilizations: tuple[_Utilization, ...] = ()


class _Subnet(Answer, frozen=True):
    network: str = ""
    ip_cidr_range: str = ""
    utilization_details: _Utilizations = _Utilizations()

    @property
    def free(self) -> int | None:
        """Free addresses of the primary range; None: unknown."""
        for part in self.utilization_details.ipv4_utilizations:
            if not part.range_name and part.total_free_ip:
                return int(part.total_free_ip)
        return None


class _Network(Answer, frozen=True):
    mtu: int = 0
    subnetworks: tuple[str, ...] = ()


class _Image(Answer, frozen=True):
    status: str = "READY"
    architecture: str = ""


class _Account(Answer, frozen=True):
    description: str = ""


def check_rights(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield the rights that the login lacks in the project; Google answers for all at once."""
    wanted = [*facts().up_permissions, *(p for need in _needs(plan) for p in need.permissions)]
    granted = api.call(
        _Granted,
        f"{api.in_project()}:testIamPermissions",
        service="resources",
        method="POST",
        body={"permissions": list(wanted)},
    )
    missing = [right for right in wanted if right not in granted.permissions]
    if missing:
        yield finding(
            "GC981",
            f"the login lacks {len(missing)} rights in project {plan.project}: {missing[0]}"
            + (" ..." if len(missing) > 1 else ""),
            detail="\n".join(missing),
            hint="request from the project's owner a role that has them",
        )


def check_services(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield the APIs that the site needs and are not enabled, with the command that does it."""
    wanted = [name for need in _needs(plan) for name in need.apis]
    query = {"filter": "state:ENABLED", "pageSize": "200"}
    pages = api.pages(_Services, f"{api.in_project()}/services", service="usage", query=query)
    enabled = {each.name.rpartition("/")[2] for page in pages for each in page.services}
    missing = [name for name in wanted if name not in enabled]
    if missing:
        yield finding(
            "GC1183",
            f"{len(missing)} APIs that the site needs are not enabled in project {plan.project}: "
            + ", ".join(missing),
            hint=f"gcloud services enable {' '.join(missing)} --project {plan.project}",
        )


def _needs(plan: SitePlan) -> Iterator[ServiceNeed]:
    """Yield what the parts of a site need in its project."""
    parts = {
        "always": True,
        "names": plan.dns is not None,
        "buckets": any(bucket.create for bucket in plan.buckets),
        "lustre": bool(plan.lustre),
        "filestore": bool(plan.filestore),
        "gke": plan.control_plane is not None,
        "budget": plan.budget is not None,
    }
    return (need for part, need in facts().services.items() if parts[part])


def check_subnet(
    api: Api, plan: SitePlan, catalog: Catalog, machines: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield what is wrong with a subnet that exists: elsewhere, or without room."""
    subnet = plan.network.subnet
    if plan.network.vpc is None or subnet is None:
        return
    path = subnet if subnet.startswith("projects/") else _own_subnet(api, plan, subnet)
    found = api.find(_Subnet, path, query={"views": "WITH_UTILIZATION"})
    if found is None:
        yield finding("GC985", f"subnet {subnet} is not in {plan.region}")
        return
    if found.network.rpartition("/")[2] != plan.network.vpc.rpartition("/")[2]:
        yield finding("GC985", f"subnet {subnet} is in {found.network}, not {plan.network.vpc}")
    known = catalog.providers.get("gcp")
    kept = (known.subnet_reserved_addresses if known else None) or 0
    room = ip_network(found.ip_cidr_range).num_addresses - kept if found.ip_cidr_range else None
    most = sum(pool.most for pool in plan.pools)
    if room is not None and room < most:
        yield finding("GC985", f"subnet {subnet} has {room} addresses, the nodes need {most}")
        return
    missing = sum(max(0, pool.most - machines.of(pool.name)) for pool in plan.pools)
    if found.free is not None and found.free < missing:
        yield finding(
            "GC985",
            f"subnet {subnet} has {found.free} free addresses, the nodes still need {missing}",
            severity=Severity.WARNING,
        )


def check_fabric_network(
    api: Api, plan: SitePlan, network: FabricNetworkPlan
) -> Iterator[Diagnostic]:
    """Yield what is wrong with a fabric network that exists: too few subnets, a small MTU."""
    name = network.existing or ""
    path = name if name.startswith("projects/") else f"{api.in_project()}/global/networks/{name}"
    found = api.find(_Network, path)
    if found is None:
        yield finding("GC985", f"network {name} does not exist")
        return
    here = [link for link in found.subnetworks if f"/regions/{plan.region}/" in link]
    if len(here) < len(network.subnets):
        yield finding(
            "GC985",
            f"network {name} has {len(here)} subnets in {plan.region}, {network.key} needs "
            f"{len(network.subnets)}",
            hint="one subnet for each NIC that the network serves",
        )
    if network.mtu is not None and 0 < found.mtu < network.mtu:
        yield finding("GC985", f"network {name} has an MTU of {found.mtu}, not {network.mtu}")


def check_image(
    api: Api, image: str | None, architecture: str, pools: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """Yield what keeps an image from booting the nodes of some pools."""
    lead = f"image of pools {', '.join(pools)}"
    if image is None:
        yield finding("GC986", f"{lead}: none is known", hint="write image: in the site or pool")
        return
    path = image if image.startswith("projects/") else f"{api.in_project()}/global/images/{image}"
    found = api.find(_Image, path)
    if found is None:
        yield finding("GC986", f"{lead}: {image} does not exist, or may not be read")
    elif found.status != "READY":
        yield finding("GC986", f"{lead}: {image} is {found.status.lower()}, not ready")
    elif _ARCHITECTURES.get(found.architecture, architecture) != architecture:
        yield finding(
            "GC986", f"{lead}: {image} is for {found.architecture}, the machines are {architecture}"
        )


def check_identity(api: Api, email: str) -> Iterator[Diagnostic]:
    """Yield a finding where a service account that is named does not exist."""
    if api.find(Answer, f"projects/-/serviceAccounts/{email}", service="iam") is None:
        yield finding("GC985", f"service account {email} does not exist")


def check_own_identities(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield a foreign account with the name of one that the site creates.

    The engine imports an existing account (`program/access.py`): only one of a killed run of this
    site, since it gets the site's rights and is deleted with the site.
    """
    access = plan.access
    made = [*([] if access.node else ["node"]), *(["burst"] if access.needs_burst else [])]
    domain = ".".join(reversed(plan.project.split(":")))
    for what in made:
        email = f"{plan.names(what, kind='service-account')}@{domain}.iam.gserviceaccount.com"
        path = f"projects/{plan.project}/serviceAccounts/{email}"
        found = api.find(_Account, path, service="iam")
        if found is not None and found.description != plan.names.description:
            yield finding(
                "GC985",
                f"service account {email} exists, and is not gcluster's",
                hint=f"name it with roles.{what} to use it as it is, or call the site otherwise",
            )


def check_peering(plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield a note: a network that exists must have private services access for Managed Lustre."""
    if plan.lustre and plan.network.vpc is not None:
        yield finding(
            "GC985",
            f"Managed Lustre needs private services access in {plan.network.vpc}, which is not made"
            " in a network that exists",
            severity=Severity.NOTE,
            hint="gcloud services vpc-peerings list --network NETWORK",
        )


def _own_subnet(api: Api, plan: SitePlan, subnet: str) -> str:
    return f"{api.in_region(plan.region)}/subnetworks/{subnet}"
