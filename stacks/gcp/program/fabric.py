"""Makes a site's fabric networks, or finds the subnets of those that exist."""

from __future__ import annotations

import msgspec
import pulumi

from ...pulumi.names import Names
from ..plan.layout import SitePlan
from .network import FabricNetwork, FabricNetworkArgs, existing_subnets


class FabricSubnet(msgspec.Struct, frozen=True, kw_only=True):
    """A subnet of a fabric, and the network that it is of."""

    subnet_id: pulumi.Input[str]
    network_id: pulumi.Input[str]


def make_fabric_networks(plan: SitePlan, names: Names) -> dict[str, FabricSubnet]:
    """Return the subnets by their keys."""
    found: dict[str, FabricSubnet] = {}
    for network in plan.fabric_networks:
        if network.existing is not None:
            keys = [subnet.key for subnet in network.subnets]
            there = existing_subnets(
                network.existing, project=plan.project, region=plan.region, keys=keys
            )
            found |= {
                key: FabricSubnet(subnet_id=subnet, network_id=network.existing)
                for key, subnet in there.items()
            }
            continue
        args = FabricNetworkArgs(
            names=names, project=plan.project, region=plan.region, plan=network
        )
        made = FabricNetwork(names(network.key), args)
        found |= {
            key: FabricSubnet(subnet_id=subnet, network_id=made.network_id)
            for key, subnet in made.subnet_ids.items()
        }
    return found
