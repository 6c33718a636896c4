"""Kueue's objects: pools as flavors, accounts as a tree of cohorts, a queue for each partition.

The cluster's cohort holds what exists, once; all below it has nothing of its own and borrows. So
partitions that share a pool count it once, and an account's quota bounds all that is part of it.
"""

from __future__ import annotations

from ....schemas.derived.control_planes import CLAIMS_SINCE, has, provisioning_class
from ..steps import Json
from .accounts import gpu_limits, qualities
from .devices.fabric import fabric_access
from .devices.nvlink import CHANNEL_CLASS
from .facts import (
    CHANNEL_RESOURCE,
    DEVICE_CLASSES,
    GPU_RESOURCES,
    KubernetesFacts,
    capacity,
    covered,
    gpu_resource,
    quantity,
    tolerations,
)
from .nodes import (
    BLOCK,
    HOST,
    POOL,
    RACK,
    topology_levels,
)
from .objects import ACCOUNT_LABEL, Object, new, to_yaml

API = "kueue.x-k8s.io/v1beta2"
"""Fields as in apis/kueue/v1beta2 of kubernetes-sigs/kueue, read 2026-11."""
ROOT_COHORT = "cluster"
DEFAULT_QUEUE = "default"
"""LocalQueue of jobs that name none: Kueue's own rule (LocalQueueDefaulting)."""
_LEVEL_NAMES = {BLOCK: "block", RACK: "leaf", HOST: "host"}


def flavors(facts: KubernetesFacts) -> list[Object]:
    """Return the topologies, then a flavor for each compute pool.

    Kueue's flavors with a topology are immutable: a pool whose nodes' blocks become known gets
    another topology, and its flavor is recreated. Claimed GPUs have none: Kueue doesn't count them
    when it chooses places (its documentation of Dynamic Resource Allocation; read 2026-11).
    """
    if facts.scheduler.gpu.resource_claims:
        return [
            new(API, "ResourceFlavor", pool, spec=_nodes_of(facts, pool)) for pool in facts.compute
        ]
    levels = {pool: topology_levels(facts, pool) for pool in facts.compute}
    topologies = {topology_name(one): one for one in levels.values() if one}
    made = [
        new(API, "Topology", name, spec={"levels": [{"nodeLabel": label} for label in one]})
        for name, one in sorted(topologies.items())
    ]
    for pool, one in levels.items():
        spec = _nodes_of(facts, pool) | ({"topologyName": topology_name(one)} if one else {})
        made.append(new(API, "ResourceFlavor", pool, spec=spec))
    return made


def _nodes_of(facts: KubernetesFacts, pool: str) -> dict[str, Json]:
    """Return a flavor's nodes, and what its pods are given so that they may run there."""
    tolerated = tolerations(facts, [pool])
    return {"nodeLabels": {POOL: pool}} | ({"tolerations": tolerated} if tolerated else {})


PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
"""Annotation of a job's pods: nodes of one such domain where they suffice, else of a wider one
(Kueue, concepts, Topology Aware Scheduling; read 2026-11)."""


def preferred_levels(facts: KubernetesFacts) -> dict[str, str]:
    """Return partition -> the narrowest label above the node that all of its pools have.

    None of a partition whose pools lack one: Kueue places no job by a level that a flavor hasn't.
    """
    if facts.scheduler.gpu.resource_claims:
        return {}
    found = {}
    for name, partition in facts.partitions.items():
        levels = [topology_levels(facts, pool)[:-1] for pool in partition.pools]
        common = [level for level in levels[0] if all(level in other for other in levels)]
        if common:
            found[name] = common[-1]
    return found


def topology_name(levels: list[str]) -> str:
    """Return what a topology is called: its levels, such as block-host."""
    return "-".join(_LEVEL_NAMES[level] for level in levels)


def cohorts(facts: KubernetesFacts) -> list[Object]:
    """Return the cohort of the cluster with all that exists, then one for each account."""
    resources = covered(facts)
    amounts = {pool: capacity(facts, pool) for pool in facts.compute}
    exists = [
        _flavor(pool, {name: {"nominalQuota": _amount(name, has)} for name in resources})
        for pool, has in amounts.items()
    ]
    made = [new(API, "Cohort", ROOT_COHORT, spec={"resourceGroups": _groups(resources, exists)})]
    for account, account_spec in facts.accounts.items():
        spec: dict[str, Json] = {
            "parentName": ROOT_COHORT
            if account_spec.parent is None
            else cohort_name(account_spec.parent),
            "fairSharing": {"weight": str(account_spec.share)},
        }
        if account_spec.gpu_quota is not None:
            limits = gpu_limits(facts, account_spec.gpu_quota)
            bounded = [
                _flavor(pool, {name: _bounded(name, most) for name, most in limits.items()})
                for pool in facts.compute
            ]
            if limits:
                spec["resourceGroups"] = _groups(list(limits), bounded)
        made.append(new(API, "Cohort", cohort_name(account), spec=spec))
    return made


def cluster_queues(facts: KubernetesFacts) -> list[Object]:
    """Return a ClusterQueue for each account and partition that its jobs may go to."""
    resources = covered(facts)
    made = []
    for account in facts.accounts:
        for partition in facts.partitions_of(account):
            nothing = {name: {"nominalQuota": _amount(name, {})} for name in resources}
            of = [_flavor(pool, nothing) for pool in facts.partitions[partition].pools]
            spec = {
                "cohortName": cohort_name(account),
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": account}},
                "queueingStrategy": "BestEffortFIFO",
                "resourceGroups": _groups(resources, of),
                "preemption": preemption(facts),
            }
            if queued := [p for p in facts.partitions[partition].pools if p in queued_pools(facts)]:
                check = {"name": PROVISIONING, "onFlavors": queued}
                spec["admissionChecksStrategy"] = {"admissionChecks": [check]}
            made.append(new(API, "ClusterQueue", f"{account}.{partition}", spec=spec))
    return made


PROVISIONING = "queued-provisioning"
"""Admission check of pools whose nodes come all at once for a job."""


def queued_pools(facts: KubernetesFacts) -> dict[str, str]:
    """Return pools whose nodes a job requests all at once -> the class of that request."""
    requested = {p: provisioning_class(facts.scheduler, facts.spec.pools[p]) for p in facts.compute}
    return {pool: name for pool, name in requested.items() if name is not None}


def provisioning(facts: KubernetesFacts) -> list[Object]:
    """Return the check by which a job waits until the cloud has all of its nodes.

    Kueue creates a ProvisioningRequest once the job has its quota, and admits it when the nodes
    exist; its pods then stay on those under GKE (kueue.sigs.k8s.io, admission check controllers,
    provisioning; GKE, "flex-start with queued provisioning"; read 2026-11). EKS' autoscaler
    reserves them for the job's pods for ten minutes.
    """
    pools = queued_pools(facts)
    if not pools:
        return []
    [name] = set(pools.values())  # one control plane, one class
    config: dict[str, Json] = {
        "provisioningClassName": name,
        "managedResources": sorted({r for p in pools if (r := gpu_resource(facts, p))}),
    }
    if facts.scheduler.control_plane == "gke":
        config["podSetUpdates"] = {
            "nodeSelector": [
                {
                    "key": "autoscaling.gke.io/provisioning-request",
                    "valueFromProvisioningClassDetail": "ResizeRequestName",
                }
            ]
        }
    parameters = {
        "apiGroup": "kueue.x-k8s.io",
        "kind": "ProvisioningRequestConfig",
        "name": PROVISIONING,
    }
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
    return [
        new(API, "ProvisioningRequestConfig", PROVISIONING, spec=config),
        new(API, "AdmissionCheck", PROVISIONING, spec=check),
    ]


def local_queues(facts: KubernetesFacts) -> list[Object]:
    """Return the queues in the accounts' namespaces: one a partition, and the default one."""
    made = []
    for account in facts.accounts:
        names = {partition: partition for partition in facts.partitions_of(account)}
        if facts.default_partition in names:
            names.setdefault(DEFAULT_QUEUE, str(facts.default_partition))
        for name, partition in sorted(names.items()):
            spec = {"clusterQueue": f"{account}.{partition}"}
            made.append(new(API, "LocalQueue", name, namespace=account, spec=spec))
    return made


def preemption(facts: KubernetesFacts) -> dict[str, Json]:
    """Return how queues preempt: by priority, up to that of the highest QOS that gives way.

    Every workload borrows, so it is `borrowWithinCohort` that lets one account's job take the nodes
    of another's.
    """
    known = qualities(facts)
    gives_way = [known[name].priority for qos in known.values() for name in qos.preempts]
    if not gives_way:
        return {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
    return {
        "reclaimWithinCohort": "LowerPriority",
        "borrowWithinCohort": {
            "policy": "LowerPriority",
            "maxPriorityThreshold": max(gives_way),
        },
        "withinClusterQueue": "LowerPriority",
    }


def shares_count(facts: KubernetesFacts) -> bool:
    """Whether accounts' shares order the queues: Kueue has that or preemption while borrowing."""
    return not any(qos.preempts for qos in qualities(facts).values())


def cohort_name(account: str) -> str:
    """Return the cohort of an account."""
    return f"account.{account}"


def _amount(name: str, has: dict[str, int]) -> str:
    return quantity(name, has.get(name, 0))


def _bounded(name: str, most: int) -> dict[str, str]:
    return {"nominalQuota": quantity(name, 0), "borrowingLimit": quantity(name, most)}


def _flavor(pool: str, resources: dict[str, dict[str, str]]) -> dict[str, Json]:
    return {
        "name": pool,
        "resources": [{"name": name, **quota} for name, quota in resources.items()],
    }


def _groups(resources: list[str], of: list[dict[str, Json]]) -> list[Json]:
    """Return one group of resources; [] where nothing is counted."""
    return [{"coveredResources": resources, "flavors": of}] if resources and of else []


_WHOLE_WITHIN_MIN = 30
"""Minutes after which a job whose pods are not all ready gives everything back and queues again: an
image of 30 GB comes in that time at 20 MB/s (docs: Kueue, "Setup wait for pods ready")."""
_FRAMEWORKS = ("batch/job",)
_WITH_ADDON = {
    "jobset": "jobset.x-k8s.io/jobset",
    "kubeflow-trainer": "trainer.kubeflow.org/trainjob",
    "mpi-operator": "kubeflow.org/mpijob",
}
"""Add-on -> kind of job that Kueue then queues too."""
_GATES_OF_CLAIMS = (
    "KueueDRAIntegration",
    "KueueDRAIntegrationExtendedResource",
    "KueueDRAIntegrationPartitionableDevices",
)
"""Enabled by default from Kueue 0.19 on, and they require resource.k8s.io/v1: without it its
manager exits at startup (kueue.sigs.k8s.io, concepts, Dynamic Resource Allocation; read
2026-11)."""


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
    kinds = (kind for addon, kind in _WITH_ADDON.items() if addon in facts.named_addons)
    frameworks = [*_FRAMEWORKS, *kinds]
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
        "waitForPodsReady": {
            "timeout": f"{_WHOLE_WITHIN_MIN}m",
            "recoveryTimeout": f"{_WHOLE_WITHIN_MIN}m",
            "blockAdmission": False,
            "requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 60},
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
    classes = {CHANNEL_RESOURCE: CHANNEL_CLASS}
    if facts.scheduler.gpu.resource_claims:
        classes |= {GPU_RESOURCES[vendor]: name for vendor, name in DEVICE_CLASSES.items()}
    mapped: list[Json] = [
        {"name": resource, "deviceClassNames": [name]}
        for resource, name in sorted(classes.items())
        if resource in counted
    ]
    return made | ({"deviceClassMappings": mapped} if mapped else {})
