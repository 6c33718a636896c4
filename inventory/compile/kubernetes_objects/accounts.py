"""Accounts as namespaces: their quotas, and what their people may do there."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....schemas.spec import Account, Oidc, Qos, RegistryLogin
from ....schemas.spec.scheduler.kubernetes import OIDC_PREFIX
from ...accounting.records import NORMAL
from ..steps import Json
from .admission.confinement import pod_security
from .devices.nvlink import CHANNEL_CLASS, MEMBERS_RULE, channel_pools
from .facts import DEVICE_CLASSES, GPU_RESOURCES, KubernetesFacts, units_per_gpu
from .objects import (
    ACCOUNT_LABEL,
    SYSTEM_NAMESPACE,
    Object,
    new,
)

ROLE = "account-member"
"""Role of an account's people, and its binding, in each namespace."""
GROUP_PREFIX = "gcluster:"
"""Group of an account's people in certificates and tokens: gcluster:nlp."""

ADMINS = "gcluster-oidc-admins"
"""Binding of the identity provider's groups that administer the cluster."""

_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = [*_READ, "create", "delete", "deletecollection", "patch", "update"]
_RULES: tuple[tuple[list[str], list[str], list[str]], ...] = (
    (["batch"], ["jobs", "cronjobs"], _WRITE),
    (["jobset.x-k8s.io"], ["jobsets"], _WRITE),
    (["kubeflow.org"], ["mpijobs"], _WRITE),
    (["trainer.kubeflow.org"], ["trainjobs", "trainingruntimes"], _WRITE),
    ([""], ["configmaps", "secrets", "services", "persistentvolumeclaims"], _WRITE),
    (["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"], _WRITE),
    ([""], ["pods", "pods/log", "events", "resourcequotas", "limitranges"], _READ),
    ([""], ["pods"], ["delete"]),
    ([""], ["pods/exec", "pods/attach", "pods/portforward"], ["create", "get"]),
    (["kueue.x-k8s.io"], ["localqueues", "workloads"], _READ),
)
"""API groups, resources, verbs. Pods are made by jobs only: those pass the queues."""


def namespaces(facts: KubernetesFacts) -> list[Object]:
    """Return the namespace of each account, and that of gcluster's own jobs.

    Accounts' pods hold to the profile that the spec names: a GPU job needs nothing of its host. Who
    works against the restricted one is warned of it in either case.
    """
    enforce = "pod-security.kubernetes.io/enforce"
    made = [
        new(
            "v1",
            "Namespace",
            account,
            labels={
                ACCOUNT_LABEL: account,
                enforce: pod_security(facts, account),
                "pod-security.kubernetes.io/warn": "restricted",
            },
        )
        for account in facts.accounts
    ]
    return [new("v1", "Namespace", SYSTEM_NAMESPACE, labels={enforce: "privileged"}), *made]


def quotas(facts: KubernetesFacts) -> list[Object]:
    """Return what each account may have at once: GPUs, and GPUs at each QOS that limits them.

    An account without a quota of its own has the least of those that it is part of.
    """
    made = []
    for account in facts.accounts:
        limits = [facts.accounts[name].gpu_quota for name in facts.ancestors(account)]
        known = [quota for quota in limits if quota is not None]
        if known:
            most = min(known)
            channels = _channel_limit(facts, most)
            made.append(_quota(account, "gpus", _hard(facts, most) | channels))
        for name, qos in qualities(facts).items():
            if qos.gpu_limit is not None:
                made.append(_quota(account, f"qos-{name}", _hard(facts, qos.gpu_limit), name))
    return [one for one in made if one["spec"]["hard"]]


def memberships(facts: KubernetesFacts) -> list[Object]:
    """Return the role of an account's people in its namespace, and who has it."""
    rules = [{"apiGroups": groups, "resources": of, "verbs": may} for groups, of, may in _RULES]
    if channel_pools(facts):
        groups, of = MEMBERS_RULE
        rules.append({"apiGroups": groups, "resources": of, "verbs": _WRITE})
    made = []
    for account, account_spec in facts.accounts.items():
        subjects: list[Json] = [
            {"apiGroup": _RBAC, "kind": "User", "name": user}
            for user in sorted(set(account_spec.users))
        ]
        subjects.append({"apiGroup": _RBAC, "kind": "Group", "name": f"{GROUP_PREFIX}{account}"})
        subjects += _logged_in(facts.scheduler.oidc, account, account_spec)
        made.append(new(f"{_RBAC}/v1", "Role", ROLE, namespace=account, rules=rules))
        made.append(
            new(
                f"{_RBAC}/v1",
                "RoleBinding",
                ROLE,
                namespace=account,
                roleRef={"apiGroup": _RBAC, "kind": "Role", "name": ROLE},
                subjects=subjects,
            )
        )
    oidc = facts.scheduler.oidc
    if oidc is not None and oidc.admin_groups:
        made.append(
            new(
                f"{_RBAC}/v1",
                "ClusterRoleBinding",
                ADMINS,
                roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
                subjects=[_subject("Group", name) for name in sorted(set(oidc.admin_groups))],
            )
        )
    return made


def _logged_in(oidc: Oidc | None, account: str, spec: Account) -> list[Json]:
    """Return an account's people as the identity provider's tokens name them."""
    if oidc is None:
        return []
    return [
        *(_subject("User", user) for user in sorted(set(spec.users))),
        *(_subject("Group", group) for group in sorted(set(oidc.groups.get(account, ())))),
    ]


def _subject(kind: str, name: str) -> Json:
    return {"apiGroup": _RBAC, "kind": kind, "name": f"{OIDC_PREFIX}{name}"}


REGISTRY_PREFIX = "registry-"
"""How the secret of a registry's login is called: in an account's namespace, and in the vault."""
PODS_ACCOUNT = "default"
"""Service account of an account's pods: members make no others."""
_CLIENT = "azure.workload.identity/client-id"
AZURE_USE = {"azure.workload.identity/use": "true"}
"""Label of pods that AKS gives their account's identity to (learn.microsoft.com/azure/aks/
workload-identity-overview; read 2026-11)."""


def registries_of(facts: KubernetesFacts, account: str) -> dict[str, RegistryLogin]:
    """Return the logins that a namespace's pods pull with, by their secrets' names.

    gcluster's own jobs pull with those that are for everyone.
    """
    return {
        f"{REGISTRY_PREFIX}{name}": one
        for name, one in sorted(facts.scheduler.registries.items())
        if not one.accounts or account in one.accounts
    }


def service_accounts(facts: KubernetesFacts) -> list[Object]:
    """Return the service account of each account's pods, and of gcluster's own jobs.

    Its secrets are made by `up`, which reads the passwords. Under EKS the stack sets its pods'
    identity; GKE and AKS read it here. It exists without either, so that what a spec drops is
    removed and the service account stays.
    """
    return [
        new(
            "v1",
            "ServiceAccount",
            PODS_ACCOUNT,
            namespace=namespace,
            annotations=_identity_notes(facts, namespace),
            imagePullSecrets=[{"name": name} for name in registries_of(facts, namespace)] or None,
        )
        for namespace in (SYSTEM_NAMESPACE, *facts.accounts)
    ]


def _identity_notes(facts: KubernetesFacts, account: str) -> dict[str, str]:
    one, plane = facts.scheduler.identities.get(account), facts.scheduler.control_plane
    if one is None:
        return {}
    if plane == "gke":
        return {"iam.gke.io/gcp-service-account": one.name}
    return {_CLIENT: one.client_id} if plane == "aks" and one.client_id else {}


_UNSAID: dict[str, Json] = {
    "limits": [{"type": "Container", "defaultRequest": {"cpu": "100m", "memory": "128Mi"}}]
}
"""Default request of a container without one."""


def isolation(facts: KubernetesFacts) -> list[Object]:
    """Return the objects that isolate accounts on the network and keep their services internal.

    Pods are reached from their own account and from gcluster's own jobs; nodes reach them always.
    Ports of nodes, and load balancers of the cloud, are created by the operator only. A container
    without requests of processors and memory gets small ones: otherwise it would count for nothing,
    in queues too.
    """
    own: Json = {"podSelector": {}}
    ours: Json = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SYSTEM_NAMESPACE}}
    }
    policy: dict[str, Json] = {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [own, ours]}],
    }
    inside: dict[str, Json] = {"hard": {"services.loadbalancers": "0", "services.nodeports": "0"}}
    made = []
    for account in facts.accounts:
        made.append(
            new(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "account-only",
                namespace=account,
                spec=policy,
            )
        )
        made.append(new("v1", "ResourceQuota", "services", namespace=account, spec=inside))
        made.append(new("v1", "LimitRange", "containers", namespace=account, spec=_UNSAID))
    return made


def gpu_limits(facts: KubernetesFacts, gpus: int) -> dict[str, int]:
    """Return GPU resource -> how much of it so many GPUs are, for the kinds that the cluster has.

    Cut or shared GPUs count for the pods they are shared for; of several kinds the larger counts.
    """
    found: dict[str, int] = {}
    for pool in facts.compute:
        gpu = facts.machine(pool).gpu
        if gpu is not None:
            name = GPU_RESOURCES[gpu.vendor]
            found[name] = max(found.get(name, 0), gpus * units_per_gpu(facts, pool))
    return dict(sorted(found.items()))


def _hard(facts: KubernetesFacts, gpus: int) -> dict[str, str]:
    """Return a quota's limits: of the device plugins' resources, or of claimed devices."""
    limits = gpu_limits(facts, gpus)
    if facts.scheduler.gpu.resource_claims:
        classes = {GPU_RESOURCES[vendor]: name for vendor, name in DEVICE_CLASSES.items()}
        return {f"{classes[name]}{_OF_CLASS}": str(gpus) for name in limits}
    return {f"requests.{name}": str(amount) for name, amount in limits.items()}


_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
"""What a ResourceQuota calls the devices of a class after the class's name."""


def _channel_limit(facts: KubernetesFacts, gpus: int) -> dict[str, str]:
    """Return the quota of IMEX channels, one a node: as many as nodes have so many GPUs.

    A node has one. Who holds it without GPUs would keep others' jobs from NVLink.
    """
    counts = [gpu.count for p in channel_pools(facts) if (gpu := facts.machine(p).gpu) is not None]
    return {f"{CHANNEL_CLASS}{_OF_CLASS}": str(math.ceil(gpus / min(counts)))} if counts else {}


def _quota(account: str, name: str, hard: dict[str, str], qos: str | None = None) -> Object:
    spec: dict[str, Json] = {"hard": hard}
    if qos is not None:
        scope = {"scopeName": "PriorityClass", "operator": "In", "values": [qos]}
        spec["scopeSelector"] = {"matchExpressions": [scope]}
    return new("v1", "ResourceQuota", name, namespace=account, spec=spec)


SMOKE_PRIORITY = "gcluster-smoke"
"""Class of gcluster's own AllReduce: above every QOS, so that it is never preempted."""
_SMOKE_VALUE = 1_000_001
"""One more than the largest priority that a QOS may have."""


def qualities(facts: KubernetesFacts) -> Mapping[str, Qos]:
    """Return the QOS by name, with the one of jobs that request none, which Slurm has as well."""
    return dict(sorted({NORMAL: Qos(), **facts.scheduler.qos}.items()))


def priority_classes(facts: KubernetesFacts) -> list[Object]:
    """Return a PriorityClass for each QOS, in order of their names.

    A QOS that preempts none waits (`Never`). Kubernetes only compares priorities: a QOS that
    preempts at all preempts all of lower priority (GC590 reports it). With Kueue, Kueue preempts
    whole jobs: the scheduler would evict single pods of them.
    """
    made = [
        new(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            name,
            value=qos.priority,
            globalDefault=name == NORMAL,
            preemptionPolicy="PreemptLowerPriority"
            if qos.preempts and not facts.scheduler.kueue
            else "Never",
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
    """Return the QOS that an account's jobs may request: the same as in Slurm's database."""
    found = facts.associations.get(account)
    return sorted(qualities(facts)) if found is None else sorted(found.qos)


def default_qos(facts: KubernetesFacts, account: str) -> str:
    """Return the QOS of an account's jobs that request none, as under Slurm."""
    found = facts.associations.get(account)
    return NORMAL if found is None else found.default_qos
