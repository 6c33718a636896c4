"""The rules that the API server evaluates, evaluated: by the CEL project's C++ implementation.

The API server has the Go one; both have optional values and joined texts as extensions.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cel_expr_python import cel

from gcluster.inventory.compile.kubernetes_objects.admission.rules import end_rule

from .compiled import of_kind

_ENVIRONMENT = cel.NewEnv(
    config=cel.NewEnvConfigFromYaml("name: rules\nextensions: [{name: optional}, {name: strings}]"),
    variables=dict.fromkeys(
        ("object", "oldObject", "namespaceObject", "request", "variables"), cel.Type.DYN
    ),
)
QUEUE = "kueue.x-k8s.io/queue-name"


def refusals(
    case: str, policy: str, account: str, made: dict[str, Any], **requested: Any
) -> list[str]:
    """Return what a policy says to an object in an account's namespace; []: it may pass.

    Args:
        case: whose rules.
        policy: one of them.
        account: the namespace.
        made: the object.
        requested: its kind, who requests it (`by`: groups), and what it was before.
    """
    found = [one for one in of_kind(case, "ValidatingAdmissionPolicy") if _name(one) == policy]
    (spec,) = [one["spec"] for one in found]
    return _refusals(spec, made, account, **requested)


def _refusals(
    spec: dict[str, Any],
    made: dict[str, Any],
    account: str,
    *,
    kind: str = "Job",
    by: tuple[str, ...] = ("gcluster:members",),
    was: dict[str, Any] | None = None,
) -> list[str]:
    operation = "CREATE" if was is None else "UPDATE"
    given: dict[str, Any] = {
        "object": {"metadata": {}, **made},
        "oldObject": None if was is None else {"metadata": {}, **was},
        "namespaceObject": {"metadata": {"name": account}},
        "request": {
            "kind": {"kind": kind},
            "operation": operation,
            "userInfo": {"groups": list(by)},
        },
    }
    variables: dict[str, Any] = {}
    given["variables"] = variables
    for variable in spec["variables"]:
        variables[variable["name"]] = _value(variable["expression"], given)
    return [
        str(_value(rule["messageExpression"], given))
        for rule in spec["validations"]
        if _value(rule["expression"], given) is not True
    ]


def _name(made: dict[str, Any]) -> str:
    return str(made["metadata"]["name"])


def _value(expression: str, given: dict[str, Any]) -> Any:
    return _ENVIRONMENT.compile(expression).eval(data=given).plain_value()


def _pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def _job(queue: str | None = None, qos: str | None = None, seconds: int | None = None) -> Any:
    labels = {} if queue is None else {"labels": {QUEUE: queue}}
    pod = {} if qos is None else {"priorityClassName": qos}
    limit = {} if seconds is None else {"activeDeadlineSeconds": seconds}
    return {"metadata": labels, "spec": {"template": {"spec": pod}, **limit}}


def test_a_pod_may_request_the_qos_of_its_account() -> None:
    assert refusals("campus", "gcluster-qos", "nlp", _pod(priorityClassName="high")) == []


def test_a_pod_may_not_request_another_qos() -> None:
    (messages,) = refusals("campus", "gcluster-qos", "vision", _pod(priorityClassName="high"))
    assert messages == "priorityClassName of this account: one of low"


ESCAPES: dict[str, dict[str, Any]] = {
    "the control plane by name": {"nodeName": "head"},
    "the control plane by its taint": {
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
    },
    "every node by every taint": {"tolerations": [{"operator": "Exists"}]},
    "a drained node": {"tolerations": [{"key": "node.kubernetes.io/unschedulable"}]},
    "a node that starts": {"tolerations": [{"key": "gcluster.local/startup"}]},
    "the host's disk": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
    "the kubelet's keys": {"volumes": [{"hostPath": {"path": "/var/lib/kubelet"}}]},
    "the host's processes": {"hostPID": True},
    "the host's shared memory": {"hostIPC": True},
    "the host's network": {"hostNetwork": True},
    "devices": {"containers": [{"securityContext": {"privileged": True}}]},
    "devices, before it starts": {"initContainers": [{"securityContext": {"privileged": True}}]},
    "the memory of others": {
        "containers": [{"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}]
    },
    "the kernel": {"containers": [{"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]},
}


@pytest.mark.parametrize("pod", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("what", ["pods", "jobs"])
def test_a_member_gets_no_hold_of_a_host(what: str, pod: dict[str, Any]) -> None:
    spec = {"containers": [{}], **pod}
    made = _pod(**spec) if what == "pods" else {"spec": {"template": {"spec": spec}}}
    assert len(refusals("campus", f"gcluster-confined-{what}", "nlp", made)) == 1


def test_an_ordinary_pod_is_none_of_that() -> None:
    tolerated = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
    locks = {"securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}}
    pod = _pod(
        containers=[locks],
        tolerations=[tolerated],
        volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    )
    assert refusals("campus", "gcluster-confined-pods", "nlp", pod) == []


def _sidecar() -> dict[str, Any]:
    """Return the pod of the compiled AllReduce as a member may write it: folders by claims."""
    (job,) = of_kind("google", "Job")
    template = json.loads(json.dumps(job["spec"]["template"]))
    spec, (daemon,) = template["spec"], template["spec"]["initContainers"]
    names = {one["name"] for one in daemon["volumeMounts"]}
    own = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    shared = {"google-nvidia", "tcpxo-apertures"}
    ranks: dict[str, Any] = {
        "name": "ranks",
        "securityContext": own,
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in sorted(shared)],
    }
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in sorted(names)]
    return {
        "metadata": {"annotations": template["metadata"]["annotations"]},
        "spec": {
            "containers": [ranks],
            "initContainers": spec["initContainers"],
            "volumes": volumes,
        },
    }


def _refused_sidecar(made: dict[str, Any], what: str = "pods") -> list[str]:
    requested = made if what == "pods" else {"spec": {"template": made}}
    return [
        messages
        for policy in (f"gcluster-confined-{what}", f"gcluster-restricted-{what}")
        for messages in refusals("google", policy, "nlp", requested)
    ]


def _ranks(pod: dict[str, Any]) -> Any:
    return pod["spec"]["containers"][0]


def _daemon(pod: dict[str, Any]) -> Any:
    return pod["spec"]["initContainers"][0]


DAEMON_ABUSES: dict[str, Any] = {
    "an image of one's own": lambda p: _daemon(p).update(image="evil"),
    "a command of one's own": lambda p: _daemon(p).update(command=["sh"]),
    "arguments": lambda p: _daemon(p).update(args=["-c", "id"]),
    "a library of one's own": lambda p: _daemon(p)["env"].append(
        {"name": "LD_PRELOAD", "value": "/x.so"}
    ),
    "a hook": lambda p: _daemon(p).update(lifecycle={"postStart": {"exec": {"command": ["id"]}}}),
    "a probe": lambda p: _daemon(p).update(startupProbe={"exec": {"command": ["id"]}}),
    "the host's settings, writable": lambda p: [
        one.pop("readOnly", None) for one in _daemon(p)["volumeMounts"]
    ],
    "a folder over its programs": lambda p: _daemon(p)["volumeMounts"][0].update(mountPath="/fts"),
    "more rights": lambda p: _daemon(p)["securityContext"]["capabilities"]["add"].append(
        "SYS_ADMIN"
    ),
    "its rights for the ranks": lambda p: _ranks(p)["securityContext"]["capabilities"].update(
        add=["NET_ADMIN"]
    ),
    "its folders for the ranks": lambda p: _ranks(p)["volumeMounts"].append(
        {"name": "tcpxo-proc-net", "mountPath": "/x"}
    ),
    "its folders by another name": lambda p: p["spec"]["volumes"].append(
        {"name": "mine", "persistentVolumeClaim": {"claimName": "tcpxo-sys"}}
    ),
    "another claim by its name": lambda p: p["spec"]["volumes"][0]["persistentVolumeClaim"].update(
        claimName="sets"
    ),
    "a disk": lambda p: p["metadata"]["annotations"].update(
        {"devices.gke.io/container.ranks": "- path: /dev/sda\n"}
    ),
    "more devices for the daemon": lambda p: p["metadata"]["annotations"].update(
        {"devices.gke.io/container.tcpxo-daemon": "- path: /dev/sda\n"}
    ),
    "root": lambda p: _ranks(p)["securityContext"].update(runAsUser=0),
    "perhaps root": lambda p: _ranks(p)["securityContext"].pop("runAsNonRoot"),
    "more than its parent": lambda p: _ranks(p)["securityContext"].pop("allowPrivilegeEscalation"),
    "every capability": lambda p: _ranks(p)["securityContext"]["capabilities"].pop("drop"),
    "every system call": lambda p: _ranks(p)["securityContext"].pop("seccompProfile"),
    "a folder of the host": lambda p: p["spec"]["volumes"].append(
        {"name": "x", "hostPath": {"path": "/"}}
    ),
    "a share of another": lambda p: p["spec"]["volumes"].append({"name": "x", "nfs": {}}),
    "a port of the host": lambda p: _ranks(p).update(ports=[{"hostPort": 80}]),
    "settings of the kernel": lambda p: p["spec"].update(
        securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced"}]}
    ),
}


@pytest.mark.parametrize("what", ["pods", "jobs"])
def test_a_pod_with_tcpxos_daemon_is_taken_and_the_daemon_is_googles(what: str) -> None:
    assert _refused_sidecar(_sidecar(), what) == []


@pytest.mark.parametrize("what", ["pods", "jobs"])
@pytest.mark.parametrize("change", DAEMON_ABUSES.values(), ids=DAEMON_ABUSES)
def test_nothing_else_goes_with_tcpxos_daemon(change: Any, what: str) -> None:
    made = _sidecar()
    change(made)
    assert _refused_sidecar(made, what) != []


def test_no_user_runs_a_command_in_tcpxos_daemon() -> None:
    def messages(container: str) -> list[str]:
        requested = {"container": container}
        return refusals("google", "gcluster-daemon-sessions", "nlp", requested)

    assert messages("ranks") == []
    assert messages("tcpxo-daemon") == ["no session in tcpxo-daemon"]


@pytest.mark.parametrize("note", ["devices.gke.io/container.x", "devices.nri.io/pod"])
def test_devices_do_not_come_by_annotations(note: str) -> None:
    pod = {"metadata": {"annotations": {note: "- path: /dev/sda"}}, "spec": {"containers": [{}]}}
    (messages,) = refusals("campus", "gcluster-confined-pods", "nlp", pod)
    assert messages == "no annotations that ask for devices or mounts of the node"


def test_a_service_takes_nobodys_address() -> None:
    takes = _pod(externalIPs=["10.0.0.1"])
    assert refusals("campus", "gcluster-addresses", "nlp", takes) != []
    assert refusals("campus", "gcluster-addresses", "nlp", _pod(loadBalancerIP="10.0.0.1")) != []
    assert refusals("campus", "gcluster-addresses", "nlp", _pod(selector={"app": "x"})) == []


def test_no_service_waits_for_a_load_balancer_that_nothing_makes() -> None:
    balanced, policy = _pod(type="LoadBalancer"), "gcluster-load-balancers"
    [answer] = refusals("campus", policy, "kube-system", balanced)
    assert "loadBalancerClass" in answer
    assert refusals("campus", policy, "kube-system", _pod(type="NodePort")) == []
    classed = _pod(type="LoadBalancer", loadBalancerClass="metallb.io/metallb")
    assert refusals("campus", policy, "kube-system", classed) == []
    assert refusals("campus", policy, "kube-system", balanced, was=balanced) == []
    assert refusals("campus", policy, "kube-system", balanced, was=_pod(type="ClusterIP")) != []
    names = {_name(one) for one in of_kind("google", "ValidatingAdmissionPolicy")}
    assert policy not in names, "GKE makes load balancers"


def test_a_pod_may_not_have_a_priority_of_the_system() -> None:
    requested = _pod(priorityClassName="system-node-critical")
    assert refusals("campus", "gcluster-qos", "nlp", requested)


@pytest.mark.parametrize(("seconds", "refused"), [(300, False), (301, True)])
def test_grace_is_what_the_qos_gives_at_most(seconds: int, refused: bool) -> None:
    requested = _pod(priorityClassName="low", terminationGracePeriodSeconds=seconds)
    assert bool(refusals("campus", "gcluster-qos", "nlp", requested)) == refused


def test_a_job_without_a_queue_goes_to_the_default_partition() -> None:
    assert refusals("campus", "gcluster-queues", "nlp", _job()) == []
    assert refusals("campus", "gcluster-queues", "nlp", _job("default")) == []


def test_a_job_may_not_go_to_a_partition_that_is_for_other_accounts() -> None:
    (messages,) = refusals("campus", "gcluster-queues", "physics", _job("train"))
    assert messages == f"label {QUEUE} of this account: one of all"
    assert refusals("campus", "gcluster-queues", "physics", _job())


def test_a_partition_takes_only_its_qualities_of_service() -> None:
    assert refusals("campus", "gcluster-job-limits", "nlp", _job("all", "low", 3600)) == []
    messages = refusals("campus", "gcluster-job-limits", "nlp", _job("all", "high", 3600))
    assert messages == ["partition all takes only: low"]


@pytest.mark.parametrize("seconds", [None, 7 * 86_400 + 1])
def test_a_job_reports_how_long_it_runs_and_no_longer_than_its_partition(
    seconds: int | None,
) -> None:
    (messages,) = refusals("campus", "gcluster-job-limits", "nlp", _job("train", "high", seconds))
    assert messages == (
        "set spec.activeDeadlineSeconds: partition train runs jobs for at most 604800 s"
    )


def test_the_time_of_a_qos_holds_for_jobs_that_take_it_by_default() -> None:
    (messages,) = refusals("campus", "gcluster-job-limits", "vision", _job("train", None, 86_400))
    assert messages == "set spec.activeDeadlineSeconds: qos low runs jobs for at most 43200 s"


JOBSET = ("system:serviceaccounts", "system:serviceaccounts:jobset-system")
"""Groups of JobSet's controller, whose namespace is that of the add-on."""


def _part(made: dict[str, Any]) -> dict[str, Any]:
    owner = {"kind": "JobSet", "name": "train", "controller": True}
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}


@pytest.mark.parametrize("policy", ["gcluster-queues", "gcluster-job-limits"])
def test_the_parts_of_a_job_wait_in_no_queue_of_their_own(policy: str) -> None:
    part = _part(_job(None, None, None))
    assert refusals("campus", policy, "vision", part, by=JOBSET) == []
    collector = ("system:serviceaccounts:kube-system",)
    assert refusals("campus", policy, "vision", part, by=collector, was=part) == []


def test_only_its_controller_makes_a_job_a_part_of_another() -> None:
    whole, part = _job("all"), _part(_job("all"))
    for was in (None, whole):
        (messages,) = refusals("campus", "gcluster-queues", "vision", part, was=was)
        assert messages.startswith("ownerReferences to a JobSet, MPIJob or TrainJob")


def _jobset(seconds: int | None, qos: str = "low") -> dict[str, Any]:
    one = _job(None, qos, seconds)["spec"]
    spec = {"replicatedJobs": [{"name": "workers", "template": {"spec": one}}]}
    return {"metadata": {"labels": {QUEUE: "train"}}, "spec": spec}


def _mpijob(seconds: int | None, qos: str = "low") -> dict[str, Any]:
    policy = {} if seconds is None else {"activeDeadlineSeconds": seconds}
    worker = {"template": {"spec": {"priorityClassName": qos}}}
    spec = {"runPolicy": policy, "mpiReplicaSpecs": {"Worker": worker}}
    return {"metadata": {"labels": {QUEUE: "train"}}, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "make", "field"),
    [
        ("JobSet", _jobset, "activeDeadlineSeconds of each of spec.replicatedJobs"),
        ("MPIJob", _mpijob, "spec.runPolicy.activeDeadlineSeconds"),
    ],
)
def test_jobs_of_other_kinds_have_a_time_limit_too(kind: str, make: Any, field: str) -> None:
    def messages(made: dict[str, Any]) -> list[str]:
        return refusals("campus", "gcluster-job-limits", "vision", made, kind=kind)

    assert messages(make(3600)) == []
    for seconds in (None, 700_000):
        texts = messages(make(seconds))
        assert texts
        assert all(text.startswith(f"set {field}: ") for text in texts)


def test_a_job_that_never_fits_its_accounts_quota_is_refused_as_a_whole() -> None:
    def job(pods: int, gpus: int) -> dict[str, Any]:
        containers = [{"name": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]
        return {"spec": {"parallelism": pods, "template": {"spec": {"containers": containers}}}}

    most = next(
        int(quota["spec"]["hard"]["requests.nvidia.com/gpu"])
        for quota in of_kind("campus", "ResourceQuota")
        if (quota["metadata"]["namespace"], _name(quota)) == ("nlp", "gpus")
    )
    assert refusals("campus", "gcluster-whole-jobs", "nlp", job(most // 8, 8)) == []
    (messages,) = refusals("campus", "gcluster-whole-jobs", "nlp", job(most // 8 + 1, 8))
    assert messages == f"it asks for more than the quota of this account: {most} nvidia.com/gpu"


def test_without_kueue_a_pod_names_the_nodes_of_a_partition() -> None:
    own = {"partition.gcluster.local/trial": "true"}
    assert refusals("parts", "gcluster-partitions", "guests", _pod(nodeSelector=own)) == []
    other = {"partition.gcluster.local/main": "true"}
    for made in (_pod(), _pod(nodeSelector=other)):
        messages = refusals("parts", "gcluster-partitions", "guests", made)
        assert messages == [
            'set one of these to "true" in nodeSelector: partition.gcluster.local/trial'
        ]


def test_a_pod_of_an_account_that_may_use_every_node_needs_to_name_none() -> None:
    assert refusals("parts", "gcluster-partitions", "nlp", _pod()) == []


MADE = "2026-11-22T10:00:00Z"
END = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "made", "spec", "refused"),
    [
        ("Job", MADE, {"activeDeadlineSeconds": 7200}, ""),
        ("Job", MADE, {"activeDeadlineSeconds": 7201}, "set spec.activeDeadlineSeconds"),
        ("Job", MADE, {}, "set spec.activeDeadlineSeconds"),
        ("Pod", MADE, {}, ""),
        ("Pod", "2026-11-22T12:00:00Z", {}, "this cluster ended on 2026-11-22T12:00:00Z"),
        ("Job", "2026-11-22T12:00:00Z", {"activeDeadlineSeconds": 1}, "this cluster ended"),
    ],
)
def test_near_its_end_a_cluster_takes_what_ends_before(
    kind: str, made: str, spec: dict[str, Any], refused: str
) -> None:
    policy, _ = end_rule(END)
    requested = {"metadata": {"creationTimestamp": made}, "spec": spec}
    messages = _refusals(policy["spec"], requested, "nlp", kind=kind)
    assert [refused in text for text in messages[:1]] == [True] * bool(refused)
