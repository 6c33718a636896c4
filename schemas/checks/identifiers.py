"""Ids of things that exist in a cloud, in the form the cloud writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gcluster.schemas.checks.markets import rungs
from gcluster.schemas.checks.registry import Finding, check
from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.spec import AwsSite, AzureSite, CloudSite, GcpSite, Rung

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcluster.schemas.checks.context import CheckContext
    from gcluster.schemas.diagnostics import PathTuple


class _Form(NamedTuple):
    """How an id looks."""

    pattern: str
    example: str


_NAME = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_PROJECT = r"(https://[^/]+/compute/[^/]+/)?projects/[^/]+"
_AZURE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_AZURE_ID = r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/.+"

_FORMS: dict[str, dict[str, _Form]] = {
    "aws": {
        "vpc": _Form(r"vpc-[0-9a-z]+", "vpc-0abc"),
        "subnets": _Form(r"subnet-[0-9a-z]+", "subnet-0abc"),
        "security_groups": _Form(r"sg-[0-9a-z]+", "sg-0abc"),
        "kms_key": _Form(
            r"arn:aws[a-z-]*:kms:.+|alias/.+|mrk-[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "arn:aws:kms:us-east-1:111122223333:key/ID",
        ),
        "zone": _Form(r"(/hostedzone/)?Z[A-Z0-9]+", "Z0ABC"),
        "image": _Form(r"ami-[0-9a-z]+|resolve:ssm:.+", "ami-0abc"),
        "reservation": _Form(r"cr-[0-9a-z]+|arn:aws[a-z-]*:(ec2|resource-groups):.+", "cr-0abc"),
        "capacity_block": _Form(r"cr-[0-9a-z]+", "cr-0abc"),
    },
    "gcp": {
        "vpc": _Form(
            rf"{_NAME}|{_PROJECT}/global/networks/{_NAME}", "projects/p/global/networks/n"
        ),
        "subnet": _Form(
            rf"{_NAME}|{_PROJECT}/regions/[^/]+/subnetworks/{_NAME}",
            "projects/p/regions/us-central1/subnetworks/s",
        ),
        "fabric_networks": _Form(
            rf"{_NAME}|{_PROJECT}/global/networks/{_NAME}", "projects/p/global/networks/n"
        ),
        "kms_key": _Form(
            r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/.+",
            "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k",
        ),
        "zone": _Form(rf"{_NAME}|projects/[^/]+/managedZones/.+", "projects/p/managedZones/z"),
        "reservation": _Form(
            rf"{_NAME}|{_PROJECT}(/zones/[^/]+)?/reservations/{_NAME}(/.+)?",
            "projects/p/reservations/r",
        ),
    },
    "azure": {
        "vnet": _Form(rf"{_AZURE_NAME}|{_AZURE_ID}", "research-vnet"),
        "subnets": _Form(rf"{_AZURE_NAME}|{_AZURE_ID}", "compute"),
        "kms_key": _Form(
            rf"https://[^/]+/keys/.+|{_AZURE_ID}", "https://VAULT.vault.azure.net/keys/NAME/VERSION"
        ),
    },
}
"""Forms of ids by provider and key, as the providers' APIs document them."""


def _ids(context: CheckContext) -> Iterator[tuple[CloudSite, str, str, PathTuple]]:
    """Yield (site, kind, id, place) for everything that the spec names by an id."""
    for name, site in context.sites.items():
        if isinstance(site, CloudSite):
            for kind, text, below in _ids_of_site(site):
                if text is not None:
                    yield site, kind, text, ("sites", name, *below)
    yield from _ids_of_pools(context)


def _ids_of_pools(context: CheckContext) -> Iterator[tuple[CloudSite, str, str, PathTuple]]:
    """Yield the same of pools: images and capacity that is owned."""
    for name, pool in context.pools.items():
        cloud = context.cloud(pool) if pool.image is not None else None
        if cloud is not None and pool.image is not None:
            yield cloud, "image", pool.image, ("pools", name, "image")
    for _, pool, rung, path in rungs(context):
        cloud = context.cloud(pool)
        for kind in ("reservation", "capacity_block"):
            text = getattr(rung, kind, None) if isinstance(rung, Rung) else None
            if text is not None and cloud is not None:
                yield cloud, kind, text, (*path, kind)


def _ids_of_site(site: CloudSite) -> Iterator[tuple[str, str | None, PathTuple]]:
    yield "kms_key", site.kms_key, ("kms_key",)
    yield "image", site.image, ("image",)
    yield "zone", site.dns.zone if site.dns else None, ("dns", "zone")
    if isinstance(site, AwsSite):
        network = site.network
        yield "vpc", network.vpc, ("network", "vpc")
        if network.subnets is not None:
            yield "subnets", network.subnets.compute, ("network", "subnets", "compute")
            yield "subnets", network.subnets.public, ("network", "subnets", "public")
        for index, group in enumerate(network.security_groups):
            yield "security_groups", group, ("network", "security_groups", index)
    elif isinstance(site, GcpSite):
        yield "vpc", site.network.vpc, ("network", "vpc")
        yield "subnet", site.network.subnet, ("network", "subnet")
        for index, of_gpus in enumerate(site.network.fabric_networks):
            yield "fabric_networks", of_gpus, ("network", "fabric_networks", index)
    elif isinstance(site, AzureSite):
        yield "vnet", site.network.vnet, ("network", "vnet")
        if site.network.subnets is not None:
            yield "subnets", site.network.subnets.compute, ("network", "subnets", "compute")
            yield "subnets", site.network.subnets.storage, ("network", "subnets", "storage")


@check("GC318", summary="An id that does not look like one of the provider's.")
def strange_id(context: CheckContext) -> Iterator[Finding]:
    """Things that exist are named as the cloud names them: vpc-0abc, projects/p/global/networks/n.

    A name from the console's list, an id of something else, or one of another cloud is found by
    its form. Only the cloud knows whether it exists, so this is a warning.
    """
    for site, kind, text, path in _ids(context):
        form = _FORMS.get(site.provider, {}).get(kind)
        if form is None or re.fullmatch(form.pattern, text):
            continue
        yield Finding(
            summary=f'"{text[:60]}" does not look like {_what(kind)} of {site.provider}',
            path=path,
            severity=Severity.WARNING,
            hint=f"write it as {form.example}",
            relies_on=(path, ("sites", "*", "provider")),
        )


def _what(kind: str) -> str:
    words = {"kms_key": "a key", "zone": "a DNS zone", "image": "an image", "vpc": "a VPC"}
    return words.get(kind, f"a {kind.removesuffix('s').replace('_', ' ')}")
