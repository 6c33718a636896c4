"""What the API server refuses in accounts' namespaces.

Jobs with a QOS, queue, time or grace that they may not use; pods that would leave their account,
for a node of their choice, the host, or an address of others.

Rules are ValidatingAdmissionPolicies (CEL, stable since Kubernetes 1.30) over the accounts'
namespaces. The QOS that Slurm fills in is a MutatingAdmissionPolicy where the release has it.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from .....schemas.derived.control_planes import MUTATING_POLICY_SINCE, has
from ...steps import Json
from ..accounts import allowed_qos, default_qos, qualities
from ..facts import KubernetesFacts
from ..nodes import PARTITION_DOMAIN
from ..objects import (
    ADMISSION_API,
    Object,
    admission_policy,
    literal,
    matched_in_accounts,
    new,
    policy_binding,
    validation,
)
from ..queues import DEFAULT_QUEUE, PREFERRED_TOPOLOGY, preferred_levels
from .confinement import JOBS, PODS, confinement
from .whole_jobs import whole_jobs

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label of a job that names its queue: the partition."""
END_RULE = "gcluster-end"
"""Name of the policy of a cluster whose end is announced."""
DEFAULT_GRACE_S = 30
"""Default of a pod without terminationGracePeriodSeconds: Kubernetes' own."""

_SERVICES = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}
_QUEUED = [
    JOBS,
    {"apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["*"], "resources": ["jobsets"]},
    {"apiGroups": ["kubeflow.org"], "apiVersions": ["*"], "resources": ["mpijobs"]},
    {"apiGroups": ["trainer.kubeflow.org"], "apiVersions": ["*"], "resources": ["trainjobs"]},
]


def rules(facts: KubernetesFacts) -> list[Object]:
    """Return the policies, each followed by its binding, then what fills in defaults."""
    made: list[Object | None] = [_qos_of_pods(facts)]
    made += [_queues(facts), _time_of_jobs(facts)] if facts.scheduler.kueue else [_places(facts)]
    made += [
        whole_jobs(facts),
        *confinement(facts),
        _addresses(),
        _load_balancers(facts),
    ]
    bound = [[policy, policy_binding(policy)] for policy in made if policy is not None]
    return [one for pair in bound for one in pair] + _defaults(facts)


def end_rule(end: datetime) -> list[Object]:
    """Return the policy of a cluster that is to be removed, and its binding.

    Jobs that end before it are accepted, and from then on none: unlike Slurm's reservation, which
    counts when a job is scheduled, it is checked when a job is created. It is no object of the
    spec: it has no cluster's label, so it is never pruned.

    Args:
        end: when it is removed at the earliest, aware.
    """
    stamp = end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    now, until = "timestamp(object.metadata.creationTimestamp)", f"timestamp({literal(stamp)})"
    lasts = "duration(string(object.spec.activeDeadlineSeconds) + 's')"
    held = [
        validation(f"{now} < {until}", literal(f"this cluster ended on {stamp}")),
        validation(
            "request.kind.kind != 'Job' || (has(object.spec.activeDeadlineSeconds) && "
            f"{now} + {lasts} <= {until})",
            literal(
                f"this cluster is removed on {stamp}: set spec.activeDeadlineSeconds, so that the "
                "job ends before"
            ),
        ),
    ]
    policy = admission_policy(END_RULE, [PODS, JOBS], {}, held, operations=["CREATE"])
    return [policy, policy_binding(policy)]


def time_limits(facts: KubernetesFacts) -> dict[str, dict[str, int]]:
    """Return the longest run time of a job in seconds, by partition and by QOS."""
    partitions, known = facts.partitions.items(), qualities(facts).items()
    return {
        "partition": {n: math.ceil(p.max_time.value) for n, p in partitions if p.max_time},
        "qos": {n: math.ceil(qos.max_time.value) for n, qos in known if qos.max_time},
    }


def _qos_of_pods(facts: KubernetesFacts) -> Object:
    """Pods may use their account's QOS, and no more grace than it gives."""
    allowed = {account: allowed_qos(facts, account) for account in facts.accounts}
    grace = {n: math.ceil(q.grace.value) for n, q in qualities(facts).items() if q.grace}
    variables = {
        "allowed": f"{literal(allowed)}[namespaceObject.metadata.name]",
        "qos": "object.spec.?priorityClassName.orValue('')",
        "grace": f"object.spec.?terminationGracePeriodSeconds.orValue({DEFAULT_GRACE_S})",
    }
    held = [
        validation(
            "variables.qos in variables.allowed",
            "'priorityClassName of this account: one of ' + variables.allowed.join(', ')",
        )
    ]
    if grace:
        held.append(
            validation(
                f"!(variables.qos in {literal(grace)}) || "
                f"variables.grace <= {literal(grace)}[variables.qos]",
                "'terminationGracePeriodSeconds is above the grace of QOS ' + variables.qos",
            )
        )
    return admission_policy("gcluster-qos", [PODS], variables, held, operations=["CREATE"])


def _partition(facts: KubernetesFacts) -> str:
    """Return the expression of a job's partition."""
    default = literal(facts.default_partition or "")
    queue = f"object.metadata.?labels[?'{QUEUE_LABEL}'].orValue({default})"
    if facts.default_partition is None or DEFAULT_QUEUE in facts.partitions:
        return queue
    return f"{queue} == '{DEFAULT_QUEUE}' ? {default} : {queue}"


_PARENTS = ("JobSet", "MPIJob", "TrainJob")
"""Kinds of jobs that are made of other jobs. What waits in a queue is the whole."""
_BRING_PARENTS = frozenset({"jobset.x-k8s.io", "kubeflow.org", "trainer.kubeflow.org"})


def _parts(facts: KubernetesFacts) -> dict[str, str]:
    """Return variables that identify a part of another job, and whether it really is one.

    Only the controllers of those kinds may create parts, since parts wait in no queue.
    """
    addons = [facts.catalog.addons[name] for name in facts.named_addons]
    spaces = {one.namespace for one in addons if _BRING_PARENTS.intersection(one.kinds)}
    groups = sorted(f"system:serviceaccounts:{space}" for space in spaces)
    owned = (
        "{}.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && "
        f"o.kind in {literal(list(_PARENTS))})"
    )
    return {
        "part": owned.format("object"),
        "proper": f"request.userInfo.?groups.orValue([]).exists(g, g in {literal(groups)}) || "
        f"(request.operation == 'UPDATE' && {owned.format('oldObject')})",
    }


def _queues(facts: KubernetesFacts) -> Object:
    """Jobs name a partition that their account may use; parts of a job are where the whole is."""
    queues = {account: facts.partitions_of(account) for account in facts.accounts}
    variables = {
        "queues": f"{literal(queues)}[namespaceObject.metadata.name]",
        "partition": _partition(facts),
        **_parts(facts),
    }
    held = [
        validation(
            "!variables.part || variables.proper",
            literal(
                f"ownerReferences to a {', '.join(_PARENTS[:-1])} or {_PARENTS[-1]} are its "
                "controller's to set"
            ),
        ),
        validation(
            "variables.part || variables.partition in variables.queues",
            f"'label {QUEUE_LABEL} of this account: one of ' + variables.queues.join(', ')",
        ),
    ]
    return admission_policy("gcluster-queues", _QUEUED, variables, held)


def _time_of_jobs(facts: KubernetesFacts) -> Object | None:
    """Jobs hold to the QOS and longest time of their partition; None: nothing limits them."""
    only = {name: sorted(one.qos) for name, one in facts.partitions.items() if one.qos}
    held = []
    if only:
        of = f"{literal(only)}[variables.partition]"
        held.append(
            validation(
                f"variables.part || !(variables.partition in {literal(only)}) || "
                f"variables.qos.all(q, q in {of})",
                f"'partition ' + variables.partition + ' takes only: ' + {of}.join(', ')",
            )
        )
    for what, longest in time_limits(facts).items():
        if longest:
            names = "[variables.partition]" if what == "partition" else "variables.qos"
            limits = literal(longest)
            held.append(
                validation(
                    f"variables.part || {names}.all(n, !(n in {limits}) || "
                    f"variables.seconds.all(s, s > 0 && s <= {limits}[n]))",
                    f"'set ' + variables.field + ': {what} ' + {names}.filter(n, n in {limits})"
                    f".map(n, n + ' runs jobs for at most ' + string({limits}[n]) + ' s')"
                    ".join(', ')",
                )
            )
    if not held:
        return None
    variables = {
        "partition": _partition(facts),
        "qos": _qos_of_job(facts),
        "field": _by_kind(
            literal("activeDeadlineSeconds of each of spec.replicatedJobs"),
            literal("spec.runPolicy.activeDeadlineSeconds"),
            literal("spec.activeDeadlineSeconds"),
        ),
        "seconds": _by_kind(
            "object.spec.replicatedJobs.map(j, j.template.spec.?activeDeadlineSeconds.orValue(0))",
            "[object.spec.?runPolicy.?activeDeadlineSeconds.orValue(0)]",
            "[object.spec.?activeDeadlineSeconds.orValue(0)]",
        ),
        **_parts(facts),
    }
    return admission_policy("gcluster-job-limits", _QUEUED, variables, held)


def _by_kind(jobset: str, mpijob: str, other: str) -> str:
    """Return the expression for the kind of job of the request."""
    kind = "request.kind.kind"
    return f"{kind} == 'JobSet' ? {jobset} : {kind} == 'MPIJob' ? {mpijob} : {other}"


def _qos_of_job(facts: KubernetesFacts) -> str:
    """Return the expression of the QOS of a job's pods: each once, or more often.

    A TrainJob's pods are its runtime's: their QOS is only visible when they are created.
    """
    default = f"{_default_qos(facts)}[namespaceObject.metadata.name]"
    named = f".?priorityClassName.orValue({default})"
    return _by_kind(
        f"object.spec.replicatedJobs.map(j, j.template.spec.template.spec{named})",
        f"object.spec.mpiReplicaSpecs.map(n, object.spec.mpiReplicaSpecs[n].template.spec{named})",
        f"[object.spec.?template.?spec{named}]",
    )


def _default_qos(facts: KubernetesFacts) -> str:
    return literal({account: default_qos(facts, account) for account in facts.accounts})


def _places(facts: KubernetesFacts) -> Object | None:
    """Without Kueue pods themselves name the partition whose nodes they are for.

    Not those of an account whose partitions hold every node; None: that is so for all accounts.
    """
    every = facts.compute.keys()
    bound: dict[str, list[str]] = {}
    for account in facts.accounts:
        allowed = facts.partitions_of(account)
        if not every <= {pool for name in allowed for pool in facts.partitions[name].pools}:
            bound[account] = [f"{PARTITION_DOMAIN}/{name}" for name in allowed]
    if not bound:
        return None
    account = "namespaceObject.metadata.name"
    held = validation(
        f"!({account} in variables.bound) || variables.bound[{account}]"
        ".exists(label, object.spec.?nodeSelector[?label].orValue('') == 'true')",
        f"'set one of these to \"true\" in nodeSelector: ' + variables.bound[{account}].join(', ')",
    )
    variables = {"bound": literal(bound)}
    return admission_policy("gcluster-partitions", [PODS], variables, [held], operations=["CREATE"])


def _addresses() -> Object:
    """Services don't take addresses of others, such as the control plane's."""
    held = validation(
        "object.spec.?externalIPs.orValue([]).size() == 0 && "
        "object.spec.?loadBalancerIP.orValue('') == ''",
        literal("no externalIPs and no loadBalancerIP"),
    )
    return admission_policy("gcluster-addresses", [_SERVICES], {}, [held])


LOAD_BALANCERS = "gcluster-load-balancers"
"""Name of the policy that refuses Services which would wait for an address for ever."""


def _load_balancers(facts: KubernetesFacts) -> Object | None:
    """Return the rule that no Service waits for a load balancer that nothing makes.

    On a control plane of one's own no cloud controller manager runs. Controllers that are installed
    besides are named by loadBalancerClass, and Services that are there already stay. It holds in
    all namespaces; None: the cloud's control plane makes load balancers.
    """
    if facts.scheduler.control_plane != "self":
        return None
    held = validation(
        "object.spec.?type.orValue('') != 'LoadBalancer' || "
        "object.spec.?loadBalancerClass.orValue('') != '' || (request.operation == 'UPDATE' && "
        "oldObject.spec.?type.orValue('') == 'LoadBalancer')",
        literal(
            "nothing here makes load balancers: write type ClusterIP or NodePort, or "
            "loadBalancerClass with that of a controller that you have installed"
        ),
    )
    matched: dict[str, Json] = {
        "resourceRules": [_SERVICES | {"operations": ["CREATE", "UPDATE"]}],
    }
    spec: dict[str, Json] = {
        "failurePolicy": "Fail",
        "matchConstraints": matched,
        "variables": [],
        "validations": [held],
    }
    return new(ADMISSION_API, "ValidatingAdmissionPolicy", LOAD_BALANCERS, spec=spec)


def _defaults(facts: KubernetesFacts) -> list[Object]:
    """Return what fills in a job's QOS and its place; [] before the release that has such policies.

    The QOS has to be set in the job: a pod without one has the cluster's default by the time that
    policies see it. The place is that of Slurm: nodes of one leaf where they suffice, else of one
    block.
    """
    if not has(facts.release, MUTATING_POLICY_SINCE):
        return []
    template = "Object.spec.template"
    made = [
        *_filled(
            "gcluster-default-qos",
            f"spec: {template}.spec{{priorityClassName: "
            f"{_default_qos(facts)}[namespaceObject.metadata.name]}}",
            "!has(object.spec.template.spec.priorityClassName)",
        )
    ]
    levels = preferred_levels(facts) if facts.scheduler.kueue else {}
    if levels:
        partition, known = _partition(facts), literal(levels)
        given = "object.spec.template.?metadata.?annotations.orValue({})"
        made += _filled(
            "gcluster-topology",
            f"metadata: {template}.metadata{{annotations: "
            f"{{'{PREFERRED_TOPOLOGY}': {known}[{partition}]}}}}",
            f"({partition}) in {known} && object.spec.?parallelism.orValue(1) > 1 && "
            f"!{given}.exists(a, a.startsWith('kueue.x-k8s.io/podset-'))",
        )
    return made


def _filled(name: str, part: str, where: str) -> list[Object]:
    """Return a policy that sets a part of jobs' templates on a condition, and its binding."""
    filled = f"Object{{spec: Object.spec{{template: Object.spec.template{{{part}}}}}}}"
    spec: dict[str, Json] = {
        "failurePolicy": "Fail",
        "matchConstraints": matched_in_accounts([JOBS], ["CREATE"]),
        "matchConditions": [{"name": "not-said", "expression": where}],
        "reinvocationPolicy": "IfNeeded",
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": filled}}
        ],
    }
    return [
        new(ADMISSION_API, "MutatingAdmissionPolicy", name, spec=spec),
        new(ADMISSION_API, "MutatingAdmissionPolicyBinding", name, spec={"policyName": name}),
    ]
