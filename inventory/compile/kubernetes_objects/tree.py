"""The compiled objects as a tree of files, in the order in which they are to be applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec
from ...hosts import ClusterInventory
from .accounts import (
    isolation,
    memberships,
    namespaces,
    priority_classes,
    quotas,
    service_accounts,
    workload_priority_classes,
)
from .addons import addon_files, addon_namespaces
from .admission.rules import rules
from .devices.fabric import network_objects
from .devices.google import folder_claims, google_network_objects, unknown_networks
from .devices.gpus import amd_devices, claim_templates, simulated_plugins
from .facts import KubernetesFacts, kubernetes_facts
from .jobs.allreduce import AllReduceRun, allreduce_objects, jobset_objects, mpijob_objects
from .jobs.templates import FOLDER as TEMPLATES
from .jobs.templates import templates
from .monitoring.objects import monitoring_objects
from .nodes import runtime_classes
from .objects import Object, documents, owned, to_yaml
from .queues import (
    cluster_queues,
    cohorts,
    flavors,
    local_queues,
    provisioning,
)
from .registration import nodes
from .volumes import (
    ADDONS,
    storage_classes,
    unknown_volumes,
    volumes,
)

FIRST = frozenset({"namespaces", "accounts"})
"""Folders that need only what Kubernetes has built in: they come before the add-ons."""
SMOKE = "smoke"
"""Folder of the gate: applied for each run and deleted after it, never by Flux or Argo CD."""


def kubernetes_files(
    spec: ClusterSpec,
    inventory: ClusterInventory,
    catalog: Catalog,
    runs: Callable[[KubernetesFacts], Sequence[AllReduceRun]] | None = None,
    without: frozenset[str] = frozenset(),
) -> dict[str, bytes]:
    """Return path -> content below the folder `kubernetes` of the compiled tree.

    Args:
        spec: a spec that passed its checks, with Kubernetes as its scheduler.
        inventory: its hosts; addresses may be unknown while they are only planned.
        catalog: machines, fabrics and add-ons.
        runs: returns what the gate at the end of `up` would start; None: nothing is written of it.
        without: add-ons that the nodes can't get.
    """
    facts = kubernetes_facts(spec, inventory, catalog, without)
    files = {"nodes.yaml": to_yaml(nodes(facts)).encode()}
    folders = objects(facts)
    for folder, contents in folders.items():
        for name, made in contents.items():
            files[f"{folder}/{name}.yaml"] = _documents(made, spec.name)
        files[f"{folder}/kustomization.yaml"] = _kustomization(list(contents))
    for run in () if runs is None else runs(facts):
        files |= {
            f"{SMOKE}/{run.name}/{name}.yaml": _documents(made, spec.name)
            for name, made in smoke_objects(run).items()
        }
    for partition, contents in templates(facts).items():
        for name, made in contents.items():
            files[f"{TEMPLATES}/{partition}/{name}.yaml"] = documents(made)
    unknown = {"volumes": unknown_volumes(facts), "networks": unknown_networks(facts)}
    if any(unknown.values()):
        known = {what: why for what, why in unknown.items() if why}
        files["unknown.yaml"] = to_yaml(known).encode()
    return files | addon_files(facts, list(folders))


def objects(facts: KubernetesFacts) -> dict[str, dict[str, list[Object]]]:
    """Return folder -> file -> objects; nothing is empty.

    The first folders need only what Kubernetes has built in; the others the add-ons' own kinds.
    """
    made = {
        "namespaces": {"accounts": namespaces(facts), "addons": addon_namespaces(facts)},
        "accounts": {
            "priorities": priority_classes(facts),
            "runtimes": runtime_classes(facts),
            "quotas": quotas(facts),
            "members": memberships(facts),
            "service-accounts": service_accounts(facts),
            "isolation": isolation(facts),
            "rules": rules(facts),
            "claims": claim_templates(facts),
        },
        "storage": {
            "classes": _provided(facts),
            "volumes": volumes(facts),
            "fabric": folder_claims(facts),
        },
        "devices": {
            "simulated": simulated_plugins(facts),
            "networks": [*network_objects(facts), *google_network_objects(facts)],
            "amd": amd_devices(facts),
        },
        "queues": queues(facts),
        "monitoring": monitoring_objects(facts),
    }
    full = {name: {n: one for n, one in files.items() if one} for name, files in made.items()}
    return {name: files for name, files in full.items() if files}


def _provided(facts: KubernetesFacts) -> list[Object]:
    """Return the storage classes whose provisioner the nodes can get."""
    made = storage_classes(facts)
    return [one for one in made if ADDONS.get(str(one["provisioner"])) not in facts.without]


def queues(facts: KubernetesFacts) -> dict[str, list[Object]]:
    """Return Kueue's objects; none where the spec goes without it."""
    if not facts.scheduler.kueue:
        return {}
    return {
        "priorities": workload_priority_classes(facts),
        "flavors": flavors(facts),
        "cohorts": cohorts(facts),
        "provisioning": provisioning(facts),
        "cluster-queues": cluster_queues(facts),
        "local-queues": local_queues(facts),
    }


def smoke_objects(run: AllReduceRun) -> dict[str, list[Object]]:
    """Return one AllReduce in its three forms; one of them is applied."""
    return {
        "job": allreduce_objects(run),
        "jobset": jobset_objects(run),
        "mpijob": mpijob_objects(run),
    }


def _documents(made: list[Object], cluster: str) -> bytes:
    return documents(owned(one, cluster) for one in made)


def _kustomization(names: list[str]) -> bytes:
    made = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{name}.yaml" for name in names],
    }
    return to_yaml(made).encode()
