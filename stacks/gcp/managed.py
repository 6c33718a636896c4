"""Puts GKE's control plane and node pools into a site's program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pulumi

from ..pulumi.names import Names
from .control_plane import (
    ControlPlane,
    ControlPlaneArgs,
    GkeNicArgs,
    GkePool,
    GkePoolArgs,
)
from .control_plane_plan import GkePlan
from .fabric import FabricSubnet
from .layout import SiteLayout
from .pools import PoolPlan


def make_managed(
    plan: SiteLayout,
    gke: GkePlan,
    names: Names,
    *,
    network_id: pulumi.Input[str],
    subnet_id: pulumi.Input[str],
    account: pulumi.Input[str],
    fabrics: Mapping[str, FabricSubnet],
    taken: Mapping[str, str],
) -> None:
    """Make the cluster, and a component for each pool of nodes; export how it is reached.

    Args:
        plan: the site.
        gke: what GKE runs of it.
        names: makes names.
        network_id: of the nodes' network.
        subnet_id: of the nodes' subnet.
        account: e-mail of the nodes' identity.
        fabrics: subnets of the fabrics, by their keys.
        taken: machine -> rung that it is bought on.
    """
    pools = [pool for pool in plan.pools if pool.name in gke.pools]
    zones = tuple(dict.fromkeys(rung.zone for pool in pools for rung in pool.rungs))
    made = ControlPlane(
        names("control-plane"),
        ControlPlaneArgs(
            names=names,
            project=plan.project,
            region=plan.region,
            zones=zones,
            plan=gke,
            network_id=network_id,
            subnet_id=subnet_id,
            account=account,
            kms_key=plan.kms_key,
            fabrics=bool(fabrics),
            lustre=bool(plan.lustre),
            buckets=bool(plan.buckets),
        ),
    )
    for pool in pools:
        nodes = GkePool(
            names(f"pool-{pool.name}"),
            GkePoolArgs(
                names=names,
                project=plan.project,
                region=plan.region,
                plan=gke,
                pool=pool,
                counts=Counter(rung.key for rung in pool.taken(taken).values()),
                cluster=made.cluster_name,
                account=account,
                kms_key=plan.kms_key,
                nics=_nics(pool, fabrics),
            ),
        )
        pulumi.export(f"pool-{pool.name}", {"node_pools": nodes.node_pools})
    pulumi.export(
        "control-plane",
        {"name": made.cluster_name, "endpoint": made.endpoint, "authority": made.authority},
    )


def _nics(pool: PoolPlan, fabrics: Mapping[str, FabricSubnet]) -> tuple[GkeNicArgs, ...]:
    """Return the interfaces in the fabrics, in the order of the machine's."""
    there = [fabrics[nic.subnet] for nic in pool.rungs[0].interfaces if nic.subnet in fabrics]
    return tuple(
        GkeNicArgs(network=_last(one.network_id), subnet=_last(one.subnet_id)) for one in there
    )


def _last(identifier: pulumi.Input[str]) -> pulumi.Output[str]:
    """Return the name at the end of an id."""
    return pulumi.Output.from_input(identifier).apply(lambda known: known.rpartition("/")[2])
