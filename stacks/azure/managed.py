"""Puts AKS' control plane and node pools, or our own load balancer, into a site's program."""

from __future__ import annotations

import pulumi

from .access import Grant, Identity, IdentityArgs
from .balancer import ApiBalancer, ApiBalancerArgs
from .control_plane import (
    AksPool,
    AksPoolArgs,
    ControlPlane,
    ControlPlaneArgs,
)
from .control_plane_plan import AksPlan
from .ground import Ground
from .machines import Machines
from .moment import Moment
from .network import Network


def balancer_address(
    here: Ground, group: pulumi.Output[str], network: Network, machines: Machines
) -> pulumi.Output[str]:
    """Make the load balancer before a site's controllers, and return its address."""
    plan = here.plan
    hosts = [host for p in plan.pools if p.role == "controller" for host in p.names]
    made = ApiBalancer(
        here.names("api"),
        ApiBalancerArgs(
            names=here.names,
            region=plan.region,
            subscription=plan.subscription,
            resource_group=group,
            subnet_id=network.subnet_ids["compute"],
            vnet_id=network.vnet_id,
            addresses={
                host: machines.named[host].private_address
                for host in hosts
                if host in machines.named
            },
        ),
        here.options,
    )
    return made.address


def make_managed(
    here: Ground,
    aks: AksPlan,
    *,
    group: pulumi.Output[str],
    network: Network,
    machines: Machines,
    moment: Moment,
) -> None:
    """Make the cluster, and a component for each set of nodes; export how it is found."""
    plan, subnet_id = here.plan, network.subnet_ids["compute"]
    identity = Identity(
        here.names("identity-aks"),
        IdentityArgs(
            names=here.names,
            name="aks",
            region=plan.region,
            subscription=plan.subscription,
            resource_group=group,
            grants=(Grant(what="subnet", role="network-contributor", scope=subnet_id),),
        ),
        here.options,
    )
    made = ControlPlane(
        here.names("control-plane"),
        ControlPlaneArgs(
            names=here.names,
            region=plan.region,
            subscription=plan.subscription,
            resource_group=group,
            plan=aks,
            subnet_id=subnet_id,
            identity_id=identity.identity_id,
            disk_set_id=machines.disk_set_id,
            nat=plan.network.nat,
        ),
        here.options,
    )
    for pool in (p for p in plan.pools if p.name in aks.pools):
        taken = pool.taken(moment.taken)
        for part in pool.sets:
            on = [taken[host] for host in pool.part_names(part.name) if host in taken]
            AksPool(
                here.names(f"pool-{part.name}"),
                AksPoolArgs(
                    names=here.names,
                    resource_group=group,
                    cluster=made.cluster_name,
                    plan=aks,
                    pool=pool,
                    part=part.name,
                    rung=next(iter(on), pool.rungs[0]),
                    count=len(on),
                    subnet_id=subnet_id,
                    encrypted=machines.disk_set_id is not None,
                ),
                here.options,
            )
    pulumi.export(
        "control-plane",
        {"name": made.cluster_name, "endpoint": made.endpoint, "authority": made.authority},
    )
