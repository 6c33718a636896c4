"""Names for nodes that OCI makes as a group, and which of them go when the group gets smaller.

OCI numbers the instances of a cluster network. Their names are given afterwards, as tags, and who
has one keeps it.
"""

from __future__ import annotations

import msgspec

from ..pulumi.names import HOST, POOL
from .api import Answer, Api
from .hosts import Instance, instances
from .plan.types import PoolPlan, SitePlan


class _InstancePool(Answer, frozen=True):
    id: str


class _ClusterNetwork(Answer, frozen=True):
    id: str
    lifecycle_state: str = ""
    freeform_tags: dict[str, str] = msgspec.field(default_factory=dict)
    instance_pools: tuple[_InstancePool, ...] = ()


class _Member(Answer, frozen=True):
    id: str


def name_nodes(api: Api, plan: SitePlan) -> None:
    """Give every machine of a group that has no name the next free one of its pool."""
    for pool in plan.pools:
        if not pool.is_one_by_one:
            there = instances(api, plan, pool=pool.name)
            for machine, name in _free(pool, there):
                tags = {**machine.freeform_tags, HOST: name}
                details = {"freeformTags": tags, "displayName": plan.names(name)}
                api.ask(Answer, "compute", "update_instance", machine.id, details)


def _free(pool: PoolPlan, there: tuple[Instance, ...]) -> list[tuple[Instance, str]]:
    purchased = {machine.host for machine in there}
    names = [name for name in pool.nodes if name not in purchased]
    return list(zip((m for m in there if not m.host), names, strict=False))


def give_back(api: Api, plan: SitePlan) -> None:
    """End the machines of cluster networks that the spec no longer has, before their size is set.

    OCI would choose which to end, and might take the first. One that is detached and ended makes
    the pool smaller by itself, so that the stack finds the size it wants.
    """
    for pool in plan.pools:
        if pool.group == "cluster-network":
            there = instances(api, plan, pool=pool.name)
            extra = {m.id for m in there if m.host and m.host not in pool.nodes}
            for instance, group in _members(api, plan, pool, extra).items():
                details = {
                    "instanceId": instance,
                    "isDecrementSize": True,
                    "isAutoTerminate": True,
                }
                call = "detach_instance_pool_instance"
                api.ask(object, "management", call, group, details)


def _members(api: Api, plan: SitePlan, pool: PoolPlan, wanted: set[str]) -> dict[str, str]:
    """Return instance -> its instance pool, of those wanted; the rest of OCI's groups is left."""
    if not wanted:
        return {}
    ours = {**plan.labels.found_by(), POOL: pool.name}
    found: dict[str, str] = {}
    kind = tuple[_ClusterNetwork, ...]
    for page in api.pages(kind, "management", "list_cluster_networks", plan.compartment):
        for network in page:
            if network.lifecycle_state in {"TERMINATING", "TERMINATED"}:
                continue
            if ours.items() <= network.freeform_tags.items():
                for group in network.instance_pools:
                    listed = api.pages(
                        tuple[_Member, ...],
                        "management",
                        "list_instance_pool_instances",
                        plan.compartment,
                        group.id,
                    )
                    found |= {m.id: group.id for one in listed for m in one if m.id in wanted}
    return found
