"""Qualities of service as priority classes: of pods, and of what Kueue queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....schemas.spec import Qos
from ...accounting.records import NORMAL
from .objects import Object, new

if TYPE_CHECKING:
    from .facts import KubernetesFacts

SMOKE_PRIORITY = "gcluster-smoke"
"""Class of gcluster's own AllReduce: above every QOS, so that none takes its nodes from it, and it
takes nobody's."""
_SMOKE_VALUE = 1_000_001
"""One more than the largest priority that a QOS may have."""


def qualities(facts: KubernetesFacts) -> Mapping[str, Qos]:
    """Return the QOS by name, with the one of jobs that ask for none, which Slurm has as well."""
    return dict(sorted({NORMAL: Qos(), **facts.scheduler.qos}.items()))


def priority_classes(facts: KubernetesFacts) -> list[Object]:
    """Return a PriorityClass for each QOS, in order of their names.

    A QOS that preempts nobody waits (`Never`). Kubernetes asks for the priority alone: a QOS that
    preempts at all preempts all of lower priority (GC590 says so).
    """
    made = [
        new(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            name,
            value=qos.priority,
            globalDefault=name == NORMAL,
            preemptionPolicy="PreemptLowerPriority" if qos.preempts else "Never",
            description=f"QOS {name}",
        )
        for name, qos in qualities(facts).items()
    ]
    smoke = new(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        SMOKE_PRIORITY,
        value=_SMOKE_VALUE,
        globalDefault=False,
        preemptionPolicy="Never",
        description="The AllReduce at the end of gcluster up",
    )
    return [*made, smoke]


def workload_priority_classes(facts: KubernetesFacts) -> list[Object]:
    """Return the same order for what waits in Kueue's queues."""
    return [
        new(
            "kueue.x-k8s.io/v1beta2",
            "WorkloadPriorityClass",
            name,
            value=qos.priority,
            description=f"QOS {name}",
        )
        for name, qos in qualities(facts).items()
    ]


def allowed_qos(facts: KubernetesFacts, account: str) -> list[str]:
    """Return what an account's jobs may ask for: the same as Slurm's database says."""
    found = facts.associations.get(account)
    return sorted(qualities(facts)) if found is None else sorted(found.qos)


def default_qos(facts: KubernetesFacts, account: str) -> str:
    """Return the QOS of an account's jobs that ask for none, as under Slurm."""
    found = facts.associations.get(account)
    return NORMAL if found is None else found.default_qos
