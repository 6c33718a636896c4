"""What the gate starts on Kubernetes: the same AllReduces as under Slurm, as runs of pods."""

from __future__ import annotations

from ...inventory.compile.kubernetes_objects.allreduce import AllReduceRun
from ...inventory.compile.kubernetes_objects.fabric import FabricAccess, fabric_access
from ...inventory.compile.kubernetes_objects.facts import (
    KubernetesFacts,
    gpu_resource,
    units_per_gpu,
)
from ...inventory.compile.kubernetes_objects.objects import pause_image
from ...inventory.compile.slurm.nodes import gpu_count
from ...schemas.derived.control_planes import managed_by
from .launch import Launch, launches

JOB = "allreduce"
"""Stem of the runs' names; a run of `up` adds its own number."""


def kubernetes_runs(facts: KubernetesFacts) -> tuple[AllReduceRun, ...]:
    """Return a run for each fabric domain and partition, over all their hosts."""
    hosts = tuple(host for pool in facts.compute for host in facts.compute[pool])
    found = launches(facts.spec, hosts, JOB, facts.catalog)
    return tuple(run_of(facts, launch) for launch in found)


def run_of(facts: KubernetesFacts, launch: Launch) -> AllReduceRun:
    """Return what a launch is on Kubernetes; its pools are alike as far as pods can tell."""
    pool_of = {host.name: host.pool for host in facts.inventory.hosts}
    pools = sorted({pool_of[name] for name in launch.nodes})
    named = {host.name for pool in pools for host in facts.compute[pool]} != set(launch.nodes)
    gpu = facts.machine(pools[0]).gpu
    own = facts.spec.smoke.allreduce.image if managed_by(facts.spec) is not None else None
    claims = facts.scheduler.gpu.resource_claims and gpu is not None
    return AllReduceRun(
        name=launch.job,
        nodes=len(launch.nodes),
        slots=max(1, launch.gpus),
        program=tuple(launch.program()),
        pools=tuple(pools),
        hosts=launch.nodes if named else (),
        gpu_resource=gpu_resource(facts, pools[0]),
        gpu_units=gpu_count(facts.machine(pools[0])) * units_per_gpu(facts, pools[0]),
        claimed=gpu.vendor if claims and gpu is not None else None,
        access=_narrowest(facts, pools),
        environment=launch.variables(),
        image=own or pause_image(facts),
        own_programs=own is not None,
    )


def _narrowest(facts: KubernetesFacts, pools: list[str]) -> FabricAccess:
    """Return how all of these pools reach the fabric: on the host's network where they differ."""
    found = [fabric_access(facts, pool) for pool in pools]
    same = all(one == found[0] for one in found)
    return found[0] if same else FabricAccess(host_network=True, environment=found[0].environment)
