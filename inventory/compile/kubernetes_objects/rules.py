"""What the API server refuses in accounts' namespaces.

Jobs with a QOS, queue, time or grace that nobody gave them; pods that would leave their account,
for a node of their choice, the host, or an address of others.

Rules are ValidatingAdmissionPolicies (CEL, stable since Kubernetes 1.30) over the accounts'
namespaces. The QOS that Slurm fills in is a MutatingAdmissionPolicy where the release has it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from ....schemas.derived.control_planes import MUTATING_POLICY_SINCE, has
from ..steps import Json
from .accounts import ACCOUNT_LABEL, allowed_qos, default_qos, qualities
from .fabric import host_access
from .facts import KubernetesFacts
from .nodes import PARTITION_DOMAIN
from .objects import Object, literal, new
from .queues import DEFAULT_QUEUE

_API = "admissionregistration.k8s.io/v1"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label of a job that names its queue: the partition."""
END_RULE = "gcluster-end"
"""Name of the policy of a cluster whose end is announced."""
DEFAULT_GRACE_S = 30
"""What a pod has that says no terminationGracePeriodSeconds: Kubernetes' own default."""

_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
_JOBS = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]}
_SERVICES = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}
_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
"""What containers may add under the baseline profile (Kubernetes, Pod Security Standards)."""
_LOCKED = "IPC_LOCK"
"""What pins the memory that RDMA adapters read; it gives no power over others."""
_QUEUED = [
    _JOBS,
    {"apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["*"], "resources": ["jobsets"]},
    {"apiGroups": ["kubeflow.org"], "apiVersions": ["*"], "resources": ["mpijobs"]},
    {"apiGroups": ["trainer.kubeflow.org"], "apiVersions": ["*"], "resources": ["trainjobs"]},
]


def rules(facts: KubernetesFacts) -> list[Object]:
    """Return the policies, each followed by its binding, then what fills in defaults."""
    made: list[Object | None] = [_qos_of_pods(facts)]
    made += [_queues(facts), _time_of_jobs(facts)] if facts.scheduler.kueue else [_places(facts)]
    made += [
        _confined(facts, "pods", _PODS, "object.spec"),
        _confined(facts, "jobs", _JOBS, "object.spec.template.spec"),
        _addresses(),
    ]
    bound = [[policy, _binding(policy)] for policy in made if policy is not None]
    return [one for pair in bound for one in pair] + _defaults(facts)


def end_rule(end: datetime) -> list[Object]:
    """Return the policy of a cluster that is to be removed, and its binding.

    Jobs are taken that end before, and from then on nothing is: what Slurm's reservation does when
    it looks for a job's nodes is asked when a job is made. It is no object of the spec: it carries
    no cluster's label, so nobody prunes it.

    Args:
        end: when it is removed at the earliest, aware.
    """
    stamp = end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    now, until = "timestamp(object.metadata.creationTimestamp)", f"timestamp({literal(stamp)})"
    lasts = "duration(string(object.spec.activeDeadlineSeconds) + 's')"
    held = [
        _rule(f"{now} < {until}", literal(f"this cluster ended on {stamp}")),
        _rule(
            "request.kind.kind != 'Job' || (has(object.spec.activeDeadlineSeconds) && "
            f"{now} + {lasts} <= {until})",
            literal(
                f"this cluster is removed on {stamp}: set spec.activeDeadlineSeconds, so that the "
                "job ends before"
            ),
        ),
    ]
    policy = _policy(END_RULE, [_PODS, _JOBS], {}, held, operations=["CREATE"])
    return [policy, _binding(policy)]


def time_limits(facts: KubernetesFacts) -> dict[str, dict[str, int]]:
    """Return the longest run time of a job in seconds, by partition and by QOS."""
    partitions, known = facts.partitions.items(), qualities(facts).items()
    return {
        "partition": {n: math.ceil(p.max_time.value) for n, p in partitions if p.max_time},
        "qos": {n: math.ceil(qos.max_time.value) for n, qos in known if qos.max_time},
    }


def _qos_of_pods(facts: KubernetesFacts) -> Object:
    """Pods ask for a QOS that their account may have, and for no more grace than it gives."""
    allowed = {account: allowed_qos(facts, account) for account in facts.accounts}
    grace = {n: math.ceil(q.grace.value) for n, q in qualities(facts).items() if q.grace}
    variables = {
        "allowed": f"{literal(allowed)}[namespaceObject.metadata.name]",
        "qos": "object.spec.?priorityClassName.orValue('')",
        "grace": f"object.spec.?terminationGracePeriodSeconds.orValue({DEFAULT_GRACE_S})",
    }
    held = [
        _rule(
            "variables.qos in variables.allowed",
            "'priorityClassName of this account: one of ' + variables.allowed.join(', ')",
        )
    ]
    if grace:
        held.append(
            _rule(
                f"!(variables.qos in {literal(grace)}) || "
                f"variables.grace <= {literal(grace)}[variables.qos]",
                "'terminationGracePeriodSeconds is above the grace of QOS ' + variables.qos",
            )
        )
    return _policy("gcluster-qos", [_PODS], variables, held, operations=["CREATE"])


def _partition(facts: KubernetesFacts) -> str:
    """Return the expression of a job's partition."""
    default = literal(facts.default_partition or "")
    queue = f"object.metadata.?labels[?'{QUEUE_LABEL}'].orValue({default})"
    if facts.default_partition is None or DEFAULT_QUEUE in facts.partitions:
        return queue
    return f"{queue} == '{DEFAULT_QUEUE}' ? {default} : {queue}"


def _queues(facts: KubernetesFacts) -> Object:
    """Jobs name a partition that their account may use."""
    queues = {account: facts.partitions_of(account) for account in facts.accounts}
    variables = {
        "queues": f"{literal(queues)}[namespaceObject.metadata.name]",
        "partition": _partition(facts),
    }
    held = _rule(
        "variables.partition in variables.queues",
        f"'label {QUEUE_LABEL} of this account: one of ' + variables.queues.join(', ')",
    )
    return _policy("gcluster-queues", _QUEUED, variables, [held])


def _time_of_jobs(facts: KubernetesFacts) -> Object | None:
    """Jobs hold to the QOS and longest time of their partition; None: nothing limits them."""
    only = {name: sorted(one.qos) for name, one in facts.partitions.items() if one.qos}
    held = []
    if only:
        of = f"{literal(only)}[variables.partition]"
        held.append(
            _rule(
                f"!(variables.partition in {literal(only)}) || variables.qos in {of}",
                f"'partition ' + variables.partition + ' takes only: ' + {of}.join(', ')",
            )
        )
    for what, longest in time_limits(facts).items():
        if longest:
            of = f"{literal(longest)}[variables.{what}]"
            held.append(
                _rule(
                    f"!(variables.{what} in {literal(longest)}) || "
                    f"(has(object.spec.activeDeadlineSeconds) && "
                    f"object.spec.activeDeadlineSeconds <= {of})",
                    f"'set spec.activeDeadlineSeconds: {what} ' + variables.{what} + "
                    f"' runs jobs for at most ' + string({of}) + ' s'",
                )
            )
    if not held:
        return None
    variables = {"partition": _partition(facts), "qos": _qos_of_job(facts)}
    return _policy("gcluster-job-limits", [_JOBS], variables, held)


def _qos_of_job(facts: KubernetesFacts) -> str:
    """Return the expression of a job's QOS."""
    return (
        "object.spec.template.spec.?priorityClassName.orValue("
        f"{_default_qos(facts)}[namespaceObject.metadata.name])"
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
    held = _rule(
        f"!({account} in variables.bound) || variables.bound[{account}]"
        ".exists(label, object.spec.?nodeSelector[?label].orValue('') == 'true')",
        f"'set one of these to \"true\" in nodeSelector: ' + variables.bound[{account}].join(', ')",
    )
    variables = {"bound": literal(bound)}
    return _policy("gcluster-partitions", [_PODS], variables, [held], operations=["CREATE"])


def _confined(
    facts: KubernetesFacts, what: str, resources: dict[str, list[str]], pod: str
) -> Object:
    """Pods wait for the scheduler, keep off the control plane, and have of the host what is given.

    Namespaces of accounts whose fabric is reached on the host are `privileged` for Pod Security;
    this is what it refuses otherwise, but for what the fabric takes of the host. Of a job its
    template is asked: whoever makes it sees the answer, and not only its controller.
    """
    given = {account: host_access(facts, account) for account in facts.accounts}
    paths = {account: sorted(one.paths) for account, one in given.items()}
    network = [account for account, one in given.items() if one.network]
    privileged = [account for account, one in given.items() if one.privileged]
    account = "namespaceObject.metadata.name"
    variables = {
        "paths": f"{literal(paths)}[{account}]",
        "network": f"{account} in {literal(network)}",
        "privileged": f"{account} in {literal(privileged)}",
        "containers": f"{pod}.containers + {pod}.?initContainers.orValue([])",
    }
    held = [
        _rule(
            f"{pod}.?nodeName.orValue('') == ''",
            literal("no nodeName: the scheduler places pods; use nodeSelector"),
        ),
        _rule(
            f"{pod}.?tolerations.orValue([]).all(t, t.?key.orValue('') != '' && "
            "!t.key.startsWith('node-role.kubernetes.io/') && "
            "t.key != 'node.kubernetes.io/unschedulable')",
            literal("no toleration of everything, of control planes' taints or of drained nodes"),
        ),
        _rule(
            f"{pod}.?volumes.orValue([]).all(v, !has(v.hostPath) || "
            "v.hostPath.path in variables.paths)",
            "'hostPath volumes of this account: ' + (variables.paths.size() == 0 ? 'none' : "
            "variables.paths.join(', '))",
        ),
        _rule(
            f"!{pod}.?hostPID.orValue(false) && !{pod}.?hostIPC.orValue(false) && "
            f"(variables.network || !{pod}.?hostNetwork.orValue(false))",
            "'no hostPID and no hostIPC' + (variables.network ? '' : ', and no hostNetwork')",
        ),
        _rule(
            "variables.privileged || "
            "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false) && "
            "c.?securityContext.?capabilities.?add.orValue([])"
            f".all(added, added in {literal([*_CAPABILITIES, _LOCKED])}))",
            literal(
                f"no privileged containers, and capabilities of the baseline and {_LOCKED} only"
            ),
        ),
    ]
    return _policy(f"gcluster-confined-{what}", [resources], variables, held, operations=["CREATE"])


def _addresses() -> Object:
    """Services don't take addresses of others, such as the control plane's."""
    held = _rule(
        "object.spec.?externalIPs.orValue([]).size() == 0 && "
        "object.spec.?loadBalancerIP.orValue('') == ''",
        literal("no externalIPs and no loadBalancerIP"),
    )
    return _policy("gcluster-addresses", [_SERVICES], {}, [held])


def _rule(expression: str, message: str) -> dict[str, str]:
    """Return one rule; `message` is an expression as well."""
    return {"expression": expression, "messageExpression": message, "reason": "Forbidden"}


def _matched(resources: list[dict[str, list[str]]], operations: list[str]) -> dict[str, Json]:
    return {
        "namespaceSelector": {"matchExpressions": [{"key": ACCOUNT_LABEL, "operator": "Exists"}]},
        "resourceRules": [one | {"operations": operations} for one in resources],
    }


def _policy(
    name: str,
    resources: list[dict[str, list[str]]],
    variables: Mapping[str, str],
    held: list[dict[str, str]],
    *,
    operations: list[str] | None = None,
) -> Object:
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": _matched(resources, operations or ["CREATE", "UPDATE"]),
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": held,
    }
    return new(_API, "ValidatingAdmissionPolicy", name, spec=spec)


def _binding(policy: Object) -> Object:
    name = policy["metadata"]["name"]
    spec: dict[str, Json] = {"policyName": name, "validationActions": ["Deny"]}
    return new(_API, "ValidatingAdmissionPolicyBinding", name, spec=spec)


def _defaults(facts: KubernetesFacts) -> list[Object]:
    """Return what gives jobs their account's default QOS; [] before the release that has it.

    It has to be said in the job: a pod that comes without has been given the cluster's default
    by the time that policies see it.
    """
    if not has(facts.release, MUTATING_POLICY_SINCE):
        return []
    filled = (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec"
        f"{{priorityClassName: {_default_qos(facts)}[namespaceObject.metadata.name]}}}}}}}}"
    )
    asks_for_none = "!has(object.spec.template.spec.priorityClassName)"
    spec: dict[str, Json] = {
        "failurePolicy": "Fail",
        "matchConstraints": _matched([_JOBS], ["CREATE"]),
        "matchConditions": [{"name": "asks-for-none", "expression": asks_for_none}],
        "reinvocationPolicy": "IfNeeded",
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": filled}}
        ],
    }
    name = "gcluster-default-qos"
    return [
        new(_API, "MutatingAdmissionPolicy", name, spec=spec),
        new(_API, "MutatingAdmissionPolicyBinding", name, spec={"policyName": name}),
    ]
