"""Names for nodes that OCI makes as a group, and which of them go when the group gets smaller.

OCI numbers the instances of a cluster network. Their names are given afterwards, as tags, and who
has one keeps it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from ..pulumi.names import HOST, POOL
from .api import Answer, Api
from .hosts import Instance, instances
from .leftovers import GONE, MAKING
from .plan.types import PoolPlan, SitePlan

_PATIENCE_S = 6 * 3600.0
"""As long as the engine waits for one that it makes itself (data/timeouts.yaml)."""


class _InstancePool(Answer, frozen=True):
    id: str


class _Group(Answer, frozen=True):
    id: str
    display_name: str = ""
    lifecycle_state: str = ""
    freeform_tags: dict[str, str] = msgspec.field(default_factory=dict)


class _MemoryClusters(Answer, frozen=True):
    items: tuple[_Group, ...] = ()


class _ClusterNetwork(_Group, frozen=True):
    instance_pools: tuple[_InstancePool, ...] = ()


class _Member(Answer, frozen=True):
    id: str


def await_groups(
    api: Api, plan: SitePlan, notify: Callable[[str], None], *, pause_s: float = 30.0
) -> None:
    """Wait for groups that OCI still creates: nothing else waits for an imported one."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        making = [g.display_name for g in _groups(api, plan) if g.lifecycle_state in MAKING]
        if not making:
            return
        notify(f"OCI still makes {', '.join(making)}")
        time.sleep(pause_s)


def _groups(api: Api, plan: SitePlan) -> Iterator[_Group]:
    """Yield the site's cluster networks and GPU memory clusters, of those kinds that it has."""
    kinds, ours = {pool.group for pool in plan.pools}, plan.labels.found_by().items()
    found: list[_Group] = []
    if "cluster-network" in kinds:
        found += _networks(api, plan)
    if "memory-cluster" in kinds:
        call = "list_compute_gpu_memory_clusters"
        pages = api.pages(_MemoryClusters, "compute", call, plan.compartment)
        found += [group for page in pages for group in page.items]
    for group in found:
        if group.lifecycle_state not in GONE and ours <= group.freeform_tags.items():
            yield group


def _networks(api: Api, plan: SitePlan) -> Iterator[_ClusterNetwork]:
    kind = tuple[_ClusterNetwork, ...]
    for page in api.pages(kind, "management", "list_cluster_networks", plan.compartment):
        yield from page


def name_nodes(api: Api, plan: SitePlan) -> None:
    """Give every machine of a group that has no name the next free one of its pool."""
    for pool in plan.pools:
        if not pool.is_one_by_one:
            there = instances(api, plan, pool=pool.name)
            for machine, name in _free(pool, there):
                tags = {**machine.freeform_tags, HOST: name}
                details = {"freeformTags": tags, "displayName": plan.names(name)}
                api.call(Answer, "compute", "update_instance", machine.id, details)


def _free(pool: PoolPlan, there: tuple[Instance, ...]) -> list[tuple[Instance, str]]:
    purchased = {machine.host for machine in there}
    names = [name for name in pool.nodes if name not in purchased]
    return list(zip((m for m in there if not m.host), names, strict=False))


def give_back(api: Api, plan: SitePlan) -> None:
    """End the machines of cluster networks that the spec no longer has, before their size is set.

    OCI would choose which to end, possibly the first. Detaching and ending one makes the pool
    smaller, so that the stack finds its wanted size.
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
                api.call(object, "management", call, group, details)


def _members(api: Api, plan: SitePlan, pool: PoolPlan, wanted: set[str]) -> dict[str, str]:
    """Return instance -> its instance pool, of those wanted; the rest of OCI's groups is left."""
    if not wanted:
        return {}
    ours = {**plan.labels.found_by(), POOL: pool.name}.items()
    found: dict[str, str] = {}
    for network in _networks(api, plan):
        if network.lifecycle_state not in GONE and ours <= network.freeform_tags.items():
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
