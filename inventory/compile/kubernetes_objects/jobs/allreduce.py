"""The smoke gate's AllReduce as objects: an Indexed Job with one pod a node, and their names.

The pods run the nodes' own programs: role mpi's mpirun, and the payload or nccl-tests, which the
Slurm gate starts too. So the image is one with nothing in it, and what is tested is what is there.
Nodes that a cloud runs have none of these: there the spec names an image that has.

They are pods of an ordinary user without any right, as those of accounts are: IPC_LOCK would pin
memory for root alone (a user other than root has no capability that a pod adds), and so a gate
with it passes where the jobs of users fall back to TCP (NVIDIA/nvidia-container-toolkit#2037).
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec

from ...steps import Json
from ..accounts import SMOKE_PRIORITY
from ..devices.fabric import FabricAccess
from ..devices.google import daemon_container
from ..devices.nvlink import claim_channel, compute_domain
from ..facts import DEVICE_CLASSES
from ..nodes import HOST, POOL
from ..objects import SYSTEM_NAMESPACE, Object, new

DEADLINE_S = 900
"""Kubernetes ends the job after this, in case gcluster can't delete it: as under Slurm."""
KEPT_S = 1800
"""Seconds after its end when it removes itself, in case gcluster can't read its log."""
NODE_PATHS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/nsswitch.conf"),
)
"""What the programs need of the node, read-only. The rest of /etc is the pod's own: its hosts."""
USER = 65534
"""User and group of the ranks: `nobody`, as in the gate under Slurm."""
_ACCOUNTS = {
    "passwd": f"root:x:0:0::/:/usr/sbin/nologin\nnobody:x:{USER}:{USER}::/tmp:/bin/sh\n",
    "group": f"root:x:0:\nnogroup:x:{USER}:\n",
}
"""Files of /etc in every pod: sshd requires a shell, which a node's `nobody` lacks."""
SCRIPT = Path(__file__).with_name("allreduce.sh")
RUN = "gcluster.local/allreduce"
"""Label of a run's pods."""


class AllReduceRun(msgspec.Struct, frozen=True, kw_only=True):
    """One AllReduce over nodes of one fabric domain."""

    name: str
    """Of the job and its service; a DNS label."""
    nodes: int
    """Pods, each on a node of its own."""
    program: tuple[str, ...]
    """What each rank runs."""
    slots: int = 1
    """Ranks of a pod: the GPUs of its node, or one."""
    pools: tuple[str, ...] = ()
    """Where its pods may be."""
    hosts: tuple[str, ...] = ()
    """Only on these nodes; (): on any of the pools."""
    tolerated: list[Json] = []
    """Taints that the cloud sets on their nodes."""
    gpu_resource: str | None = None
    """The resource by which a pod requests its GPUs; None: it takes none."""
    gpu_units: int = 0
    """How much of it all GPUs of a node are."""
    claimed: str | None = None
    """Vendor of GPUs that are claimed instead (dynamic resource allocation)."""
    has_channels: bool = False
    """Its pods get channels of IMEX: NVLink reaches the memory of other nodes."""
    access: FabricAccess = FabricAccess()
    environment: dict[str, str] = {}
    """More variables for the ranks; over those of the fabric."""
    image: str
    """One with nothing in it: the nodes' own folders are mounted over it."""
    own_programs: bool = False
    """The image has the programs itself, for nodes that have none: nothing is mounted over it."""


def allreduce_objects(run: AllReduceRun) -> list[Object]:
    """Return service, script and job.

    The job waits for a secret of the run's name, which is made for each run and never written to a
    file: key, authorized_keys, host_key, and known_hosts with that key for the name "allreduce".
    """
    return [*companions(run), job(run)]


def companions(run: AllReduceRun) -> list[Object]:
    """Return the job's other objects: names for its pods, the script, a claim of GPUs, a domain."""
    labels = {RUN: run.name}
    service = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": labels,
    }
    made = [
        new("v1", "Service", run.name, namespace=SYSTEM_NAMESPACE, labels=labels, spec=service),
        new(
            "v1",
            "ConfigMap",
            run.name,
            namespace=SYSTEM_NAMESPACE,
            labels=labels,
            data={"allreduce.sh": SCRIPT.read_text(encoding="utf-8"), **_ACCOUNTS},
        ),
    ]
    if run.claimed is not None:
        request = {"deviceClassName": DEVICE_CLASSES[run.claimed], "count": run.slots}
        devices = {"requests": [{"name": "gpus", "exactly": request}]}
        made.append(
            new(
                "resource.k8s.io/v1",
                "ResourceClaimTemplate",
                run.name,
                namespace=SYSTEM_NAMESPACE,
                labels=labels,
                spec={"spec": {"devices": devices}},
            )
        )
    if run.has_channels:
        made.append(compute_domain(run.name, SYSTEM_NAMESPACE, labels))
    return made


def job(run: AllReduceRun) -> Object:
    """Return the Indexed Job: it fails as a whole when one pod does."""
    return new(
        "batch/v1",
        "Job",
        run.name,
        namespace=SYSTEM_NAMESPACE,
        labels={RUN: run.name},
        spec={**job_spec(run, f"{run.name}-"), "ttlSecondsAfterFinished": KEPT_S},
    )


def job_spec(run: AllReduceRun, hosts: str) -> dict[str, Json]:
    """Return the specification of a job; `hosts` is what its pods' names start with."""
    environment = {
        "HOSTS": hosts,
        "DOMAIN": run.name,
        "NODES": str(run.nodes),
        "SLOTS": str(run.slots),
        **rank_environment(run),
    }
    command = ["/bin/sh", "/script/allreduce.sh", *run.program]
    return {
        "completions": run.nodes,
        "parallelism": run.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": _FAILS_AS_A_WHOLE},
        "activeDeadlineSeconds": DEADLINE_S,
        "template": pod_template(run, command, environment),
    }


def rank_environment(run: AllReduceRun) -> dict[str, str]:
    """Return the ranks' variables, and the two by which the script identifies them."""
    given = {**run.access.environment, **run.environment}
    plain = {name: value for name, value in given.items() if not name.endswith("+")}
    before = {name.removesuffix("+"): value for name, value in given.items() if name.endswith("+")}
    environment = {**plain, "FORWARD": " ".join(sorted({*plain, *before}))}
    if before:
        environment["PREPEND"] = "\n".join(
            f"{name}={value}" for name, value in sorted(before.items())
        )
    return environment


def pod_template(
    run: AllReduceRun, command: list[str], environment: dict[str, str]
) -> dict[str, Json]:
    """Return a pod that has a whole node: its GPUs, its fabric, its programs."""
    variables = {"HOME": "/tmp", **environment}  # noqa: S108  # of the pod
    container: dict[str, Json] = {
        "name": "ranks",
        "image": run.image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": _resources(run),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [mount for mount, _ in _volumes(run) if mount],
    }
    spec: dict[str, Json] = {
        "subdomain": run.name,
        "restartPolicy": "Never",
        "priorityClassName": SMOKE_PRIORITY,
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"fsGroup": USER},
        "affinity": _affinity(run),
        "containers": [container],
        "volumes": [volume for _, volume in _volumes(run) if volume],
    }
    if run.tolerated:
        spec["tolerations"] = run.tolerated
    if run.access.daemon:
        spec["initContainers"] = [daemon_container(run.access.daemon)]
    if run.claimed is not None:
        spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": run.name}]
    if run.has_channels:
        claim_channel(spec, run.name)
    metadata: dict[str, Json] = {"labels": {RUN: run.name}}
    if run.access.annotations:
        metadata["annotations"] = run.access.annotations
    return {"metadata": metadata, "spec": spec}


_NO_NAME = re.compile(r"[^a-z0-9]+")
_FAILS_AS_A_WHOLE: list[Json] = [
    {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
]
"""The job then records which pod it was: with `backoffLimit` alone it doesn't."""


def _resources(run: AllReduceRun) -> dict[str, Json]:
    wanted = dict(run.access.resources)
    if run.gpu_resource is not None and run.claimed is None:
        wanted[run.gpu_resource] = str(run.gpu_units)
    made: dict[str, Json] = {"requests": {"cpu": "100m", "memory": "128Mi", **wanted}}
    if wanted:
        made["limits"] = {"memory": "64Gi", **wanted} if _huge(wanted) else wanted
    if run.claimed is not None:
        made["claims"] = [{"name": "gpus"}]
    return made


def _huge(wanted: dict[str, str]) -> bool:
    """Whether huge pages are requested: then memory must be limited too."""
    return any(name.startswith("hugepages-") for name in wanted)


def _affinity(run: AllReduceRun) -> dict[str, Json]:
    """Return one pod a node, on the hosts that are named or else on those of the pools."""
    key, values = (HOST, run.hosts) if run.hosts else (POOL, run.pools)
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    alone = {"labelSelector": {"matchLabels": {RUN: run.name}}, "topologyKey": HOST}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {required: {"nodeSelectorTerms": [term]}},
        "podAntiAffinity": {required: [alone]},
    }


def _volumes(run: AllReduceRun) -> list[tuple[dict[str, Json], dict[str, Json]]]:
    """Return mounts with their volumes: script, keys, the node's programs, the fabric's folders.

    A folder that is only mounted in the receive daemon has no mount here, a second mount has no
    volume.
    """
    found: list[tuple[dict[str, Json], dict[str, Json]]] = [
        (
            {"name": "script", "mountPath": "/script"},
            {"name": "script", "configMap": {"name": run.name}},
        ),
        (
            {"name": "ssh", "mountPath": "/ssh"},
            {"name": "ssh", "secret": {"secretName": run.name, "defaultMode": 0o440}},
        ),
        ({"name": "run", "mountPath": "/run"}, {"name": "run", "emptyDir": {}}),
        ({"name": "tmp", "mountPath": "/tmp"}, {"name": "tmp", "emptyDir": {}}),  # noqa: S108  # of the pod
        (
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108  # of the pod
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ),
    ]
    for file in _ACCOUNTS:
        at = {"name": "script", "mountPath": f"/etc/{file}", "subPath": file, "readOnly": True}
        found.append((at, {}))
    for path in () if run.own_programs else NODE_PATHS:
        name = _volume_name(path)
        mount: dict[str, Json] = {"name": name, "mountPath": path, "readOnly": True}
        found.append((mount, {"name": name, "hostPath": {"path": path}}))
    for one in run.access.folders:
        folder: dict[str, Json] = {"path": one.path, "type": "Directory"}
        mount = {} if one.of_daemon else one.mount()
        found.append((mount, {"name": one.name, "hostPath": folder}))
    return found


def _volume_name(path: str) -> str:
    return "node" + _NO_NAME.sub("-", path)


_RANKS = "ranks"
_SSH = "/usr/sbin/sshd"
_PORT = "2222"
"""Above 1023, which no right is needed for."""
_SERVE = (
    f"exec {_SSH} -D -e -p {_PORT} -f /dev/null -h /ssh/host_key"
    " -o AuthorizedKeysFile=/ssh/authorized_keys -o StrictModes=no -o UsePAM=no"
    " -o PasswordAuthentication=no -o PidFile=none"
)
_LOGIN = (
    f"-p {_PORT} -i /ssh/key -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/ssh/known_hosts"
    " -o HostKeyAlias=allreduce -o BatchMode=yes -o ConnectionAttempts=10"
)
"""As allreduce.sh does: one host key for the pods of a run, known by the name "allreduce"."""


def jobset_objects(run: AllReduceRun) -> list[Object]:
    """Return the run as a JobSet of one Indexed Job: what fails there fails the set.

    Its pods are called SET-JOB-INDEX-POD (sigs.k8s.io/jobset v1alpha2, read 2026-11).
    """
    spec: dict[str, Json] = {
        "network": {"enableDNSHostnames": True, "subdomain": run.name},
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [
            {
                "name": _RANKS,
                "replicas": 1,
                "template": {"spec": job_spec(run, f"{run.name}-{_RANKS}-0-")},
            }
        ],
    }
    made = new(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        run.name,
        namespace=SYSTEM_NAMESPACE,
        labels={RUN: run.name},
        spec=spec,
    )
    return [*companions(run), made]


def mpijob_objects(run: AllReduceRun) -> list[Object]:
    """Return the run as an MPIJob: the operator creates names, and starts the launcher.

    The launcher has the first node's programs too, and no GPU. Keys are those of the run's secret,
    as for the job: the operator creates login keys, but no host keys of workers.
    """
    rank_variables = rank_environment(run)
    environment = {name: value for name, value in rank_variables.items() if name not in _FOR_SCRIPT}
    launch = ["/bin/sh", "-c", _launch(run, rank_variables)]
    worker = pod_template(run, ["/bin/sh", "-c", _SERVE], environment)
    launcher = pod_template(run, launch, environment)
    for template in (worker, launcher):
        _leave_to_the_operator(template)
    launcher["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "100m", "memory": "128Mi"}
    }
    del launcher["spec"]["affinity"]["podAntiAffinity"]
    launcher["spec"].pop("resourceClaims", None)
    launcher["spec"].pop("initContainers", None)
    spec: dict[str, Json] = {
        "slotsPerWorker": run.slots,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {
            "cleanPodPolicy": "Running",
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_S,
        },
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
            "Worker": {"replicas": run.nodes, "restartPolicy": "Never", "template": worker},
        },
    }
    made = new(
        "kubeflow.org/v2beta1",
        "MPIJob",
        run.name,
        namespace=SYSTEM_NAMESPACE,
        labels={RUN: run.name},
        spec=spec,
    )
    return [*(one for one in companions(run) if one["kind"] != "Service"), made]


_FOR_SCRIPT = frozenset({"FORWARD", "PREPEND"})


def _launch(run: AllReduceRun, environment: dict[str, str]) -> str:
    """Return what the launcher's shell runs: values that go before others, then mpirun."""
    before = [line.partition("=") for line in environment.get("PREPEND", "").splitlines()]
    exports = [
        f'export {name}={shlex.quote(value)}"${{{name}:+:${name}}}"' for name, _, value in before
    ]
    forwarded = [word for name in environment["FORWARD"].split() for word in ("-x", name)]
    words = [
        *("mpirun", "--mca", "plm_rsh_args", _LOGIN),
        *("-np", str(run.nodes * run.slots), "--map-by", f"ppr:{run.slots}:node"),
        *("--bind-to", "none"),
        *(*forwarded, *run.program),
    ]
    return "; ".join([*exports, f"exec {shlex.join(words)}"])


def _leave_to_the_operator(template: dict[str, Json]) -> None:
    """Take out what the operator itself gives a pod, its name, and the script that it needs not."""
    spec = template["spec"]
    del spec["subdomain"]
    container = spec["containers"][0]
    mounts = container["volumeMounts"]
    container["volumeMounts"] = [one for one in mounts if one["mountPath"] != "/script"]
