"""What EKS shall run of a cluster, and the image of the nodes that join it (pure)."""

from __future__ import annotations

import ipaddress

from ....schemas.catalog import Catalog, Machine
from ....schemas.derived.control_planes import managed_release
from ....schemas.derived.storage import own_disks
from ....schemas.spec import AwsSite, ClusterSpec, Oidc, Pool
from ...pulumi.plan import architecture_of, identities, managed_kubernetes, site_names, site_of
from .facts import facts
from .types import EksGroupPlan, EksOidcPlan, EksPlan, ImagePlan

_SMALLEST = 28
"""Prefix of the smallest subnet that EKS accepts: 16 addresses, of which it needs six."""


def control_plane_plan(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    *,
    reserved: str,
    groups: dict[str, EksGroupPlan],
) -> EksPlan | None:
    """Return the control plane of a site; None where EKS runs none there.

    Args:
        spec: the cluster.
        site: an AWS site of it.
        catalog: has the tested versions.
        reserved: network in which two subnets may be created; "": the site's network exists.
        groups: elastic pool -> its nodes beyond the fixed ones.
    """
    here = site_of(spec, site, AwsSite)
    kubernetes, network = managed_kubernetes(spec, here), here.network
    if kubernetes is None or not any(
        pool.site == site and pool.role == "compute" for pool in spec.pools.values()
    ):
        return None
    existing = () if network.subnets is None else network.subnets.control_plane
    return EksPlan(
        name=eks_name(spec, site),
        release=managed_release(spec, catalog),
        service_cidr=kubernetes.service_cidr,
        admin_cidrs=tuple(network.admin_cidrs),
        subnets=tuple(existing),
        cidrs=_two(reserved) if reserved else (),
        identities=identities(kubernetes),
        oidc=_oidc_plan(kubernetes.oidc),
        groups=groups,
        striped=frozenset(own_disks(spec)),
    )


def _oidc_plan(oidc: Oidc | None) -> EksOidcPlan | None:
    if oidc is None:
        return None
    return EksOidcPlan(
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        username_claim=oidc.username_claim,
        groups_claim=oidc.groups_claim,
        required_claims=oidc.required_claims,
    )


def eks_name(spec: ClusterSpec, site: str) -> str:
    """Return the name of the EKS cluster: nodes are tagged with it."""
    return site_names(spec, site)("eks", kind="eks")


def _two(network: str) -> tuple[str, ...]:
    whole = ipaddress.ip_network(network)
    parts = whole.subnets(new_prefix=max(_SMALLEST, whole.prefixlen + 1))
    return str(next(parts)), str(next(parts))


def eks_image(
    spec: ClusterSpec, pool: Pool, site: AwsSite, machine: Machine | None, catalog: Catalog
) -> ImagePlan:
    """Return what a pool's nodes boot: the pool's image, the site's, else the release's own."""
    image = facts().eks_image
    architecture = architecture_of(machine)
    nvidia = machine is not None and machine.gpu is not None and machine.gpu.vendor == "nvidia"
    own = image.parameters[architecture].format(
        release=managed_release(spec, catalog), variant="nvidia" if nvidia else "standard"
    )
    return ImagePlan(
        ami=pool.image or site.image or f"resolve:ssm:{own}",
        user=site.ssh.user or image.user,
        root_device=image.root_device,
    )
