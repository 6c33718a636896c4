"""Kueue's own configuration, as its chart takes it: which jobs it manages, and in which order."""

from __future__ import annotations

from ....schemas.derived.control_planes import CLAIMS_SINCE, has
from ..steps import Json
from .accounts import ACCOUNT_LABEL
from .capacity import (
    DEVICE_CLASSES,
    GPU_RESOURCES,
    covered,
)
from .fabric import fabric_access
from .facts import KubernetesFacts
from .queues import shares_count
from .yaml_files import to_yaml

_FRAMEWORKS = ("batch/job",)
_WITH_ADDON = {"jobset": "jobset.x-k8s.io/jobset", "mpi-operator": "kubeflow.org/mpijob"}
"""Add-on -> kind of job that Kueue then queues too."""
_GATES_OF_CLAIMS = (
    "KueueDRAIntegration",
    "KueueDRAIntegrationExtendedResource",
    "KueueDRAIntegrationPartitionableDevices",
)
"""On by themselves from Kueue 0.19 on, and they want resource.k8s.io/v1: without it its manager
ends at its start (kueue.sigs.k8s.io, concepts, Dynamic Resource Allocation; read 2026-11)."""


def kueue_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the chart's values: the configuration is one text (charts/kueue, read 2026-11)."""
    return {
        "enablePrometheus": False,
        "managerConfig": {"controllerManagerConfigYaml": to_yaml(configuration(facts))},
    }


def configuration(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the manager's configuration, config.kueue.x-k8s.io/v1beta2.

    Every job in an account's namespace waits in a queue; gcluster's own and the add-ons' do not.
    """
    named = set(facts.scheduler.addons)
    frameworks = [*_FRAMEWORKS, *(kind for addon, kind in _WITH_ADDON.items() if addon in named)]
    made: dict[str, Json] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {
            "matchExpressions": [{"key": ACCOUNT_LABEL, "operator": "Exists"}]
        },
        "integrations": {"frameworks": frameworks},
        "resources": resources(facts),
    }
    if not has(facts.release, CLAIMS_SINCE):
        made["featureGates"] = dict.fromkeys(_GATES_OF_CLAIMS, False)
    if shares_count(facts):
        made["fairSharing"] = {
            "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
        }
    return made


def resources(facts: KubernetesFacts) -> dict[str, Json]:
    """Return which resources are no matter of quota, and what claimed devices count as."""
    counted = set(covered(facts))
    of_fabric = {
        name
        for pool in facts.compute
        for name in fabric_access(facts, pool).resources
        if name not in counted
    }
    uncounted = {name for name in ("cpu", "memory") if name not in counted}
    made: dict[str, Json] = {
        "excludeResourcePrefixes": sorted({"ephemeral-storage", *of_fabric, *uncounted})
    }
    if facts.scheduler.gpu.resource_claims:
        made["deviceClassMappings"] = [
            {"name": GPU_RESOURCES[vendor], "deviceClassNames": [name]}
            for vendor, name in sorted(DEVICE_CLASSES.items())
            if GPU_RESOURCES[vendor] in counted
        ]
    return made
