"""The location of a cluster on AWS: region, zone, network, and what its files don't say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..draft import Draft
from ..source import Source

SITE = "aws"
_EFA_HOST = "efa-host"


class AwsPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says of it, for files that don't."""

    region: str = ""
    zone_id: str = ""
    vpc: str = ""
    """VPC of the subnets and security groups that the file names."""
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Values of the file's variables (${NAME}, PLACEHOLDER_NAME)."""


def aws_site(draft: Draft, place: AwsPlace, region: str) -> dict[str, Any]:
    """Begin the site; missing values are listed.

    Args:
        draft: it is written into.
        place: what the user says.
        region: what the file says, "" where it doesn't.
    """
    site: dict[str, Any] = {"provider": "aws"}
    if region or place.region:
        site["region"] = region or place.region
    else:
        why = "not in the file: --region, or region of the site"
        draft.leave("the region", why, "unfinished")
    if place.zone_id:
        site["zone_id"] = place.zone_id
    else:
        why = "the file names subnets or names of zones: --zone-id, or zone_id of the site"
        draft.leave("the zone's id", why, "unfinished")
    draft.sites[SITE] = site
    return site


_EVERY_NODE = "every node of the site has them, as a site has one identity of nodes"


def node_policies(node: Source, key: str, *path: str, draft: Draft) -> None:
    """Write managed policies of a node's identity into the site; others are left as they are.

    Args:
        node: the part that they are in.
        key: of the ARN in each entry; "": entries are ARNs.
        path: to their list.
        draft: it is written into.
    """
    found = node.peek(*path)
    arns = [each.get(key) if isinstance(each, dict) else each for each in found or ()]
    if not arns or not all(isinstance(arn, str) and ":policy/" in arn for arn in arns):
        return
    node.accept(*path)
    held = draft.sites[SITE].setdefault("policies", [])
    if not held:
        draft.leave("policies of site aws", _EVERY_NODE, "guess")
    held += [arn for arn in arns if arn not in held]


class Subnet(msgspec.Struct, frozen=True):
    """Where a file names subnets or security groups."""

    source: Source
    keys: tuple[str, ...]
    public: bool = False


_NO_VPC = "of a VPC that the file doesn't name: --vpc; without it a VPC is made"
_ONE = "the nodes of a site are in one subnet, the first that is named: {}"


def aws_network(
    site: dict[str, Any], place: AwsPlace, subnets: Iterable[Subnet], groups: Iterable[Subnet]
) -> None:
    """Write the subnets and security groups of a file where their VPC is known, else list them."""
    if not place.vpc:
        for each in (*subnets, *groups):
            each.source.leave(_NO_VPC, *each.keys)
        return
    chosen: dict[str, str] = {}
    for each in subnets:
        key = "public" if each.public else "compute"
        found = each.source.texts(*each.keys)
        if (found and chosen.setdefault(key, found[0]) != found[0]) or len(set(found)) > 1:
            each.source.leave(_ONE.format(chosen[key]), *each.keys)
    if chosen.get("public") == chosen.get("compute"):
        chosen.pop("public", None)
    if "compute" not in chosen and "public" in chosen:
        chosen = {"compute": chosen["public"]}
    named: list[str] = []
    for each in groups:
        named += [one for one in each.source.texts(*each.keys) if one not in named]
    network = site.setdefault("network", {})
    network["vpc"] = place.vpc
    if chosen:
        network["subnets"] = chosen
    if named:
        network["security_groups"] = named


def efa_facts(machine: str, draft: Draft) -> dict[str, Any]:
    """Return facts of a machine type with EFA that the catalog lacks, and list what is a guess."""
    draft.leave(
        f"machine type {machine}: EFA",
        f"its class is not known: {_EFA_HOST} with one interface is written in machines.yaml",
        "guess",
    )
    return {"fabric": _EFA_HOST, "nics": [{"kind": "efa", "count": 1}]}


def bought(reservation: str, *, block: bool) -> list[dict[str, str]]:
    """Return how machines of a reservation are bought: of it alone, for nothing else is said."""
    if not reservation:
        return []
    return [{"capacity_block" if block else "reservation": reservation}]


def aws_tags(source: Source, draft: Draft) -> None:
    """Write tags that are given as a list of Key and Value."""
    tags = {each.text("Key"): each.text("Value") for each in source.each("Tags")}
    if tags:
        draft.more["tags"] = tags
