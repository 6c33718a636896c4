"""Templates of jobs over several nodes, with what their partition's fabric needs already in them.

Each takes whole nodes: all GPUs, the fabric's devices, networks, folders and settings, in pods of
the restricted profile. Who starts one fills in image, command and number of nodes.
"""

from __future__ import annotations

import math

from .....schemas.catalog import Machine
from ...slurm.nodes import gpu_count
from ...steps import Json
from ..accounts import AZURE_USE, allowed_qos, default_qos, qualities
from ..admission.rules import QUEUE_LABEL
from ..devices.disks import own_disks_volume
from ..devices.fabric import FabricAccess, fabric_access
from ..devices.google import daemon_container
from ..devices.gpus import claim_template
from ..devices.nvlink import claim_channel, compute_domain
from ..facts import KubernetesFacts, gpu_resource, has_channels, units_per_gpu
from ..nodes import PARTITION_DOMAIN, runtime_class
from ..objects import Object, new

FOLDER = "templates"
"""Below it a folder for each partition: copied and filled in, never applied as they are."""
IMAGE = "registry.example.edu/train:1"
PROGRAM = "train.py"
_PORT = 29500
_UID = 1000
"""The user of a container where the spec has none of the account's."""
TRAINER = "trainer.kubeflow.org"
TRAINER_STEP: dict[str, Json] = {"labels": {f"{TRAINER}/trainjob-ancestor-step": "trainer"}}
"""By it the trainer finds which of a runtime's jobs trains."""
_MPI_HOME = "/home/mpiuser"
"""Home of the user in MPI images (kubeflow/mpi-operator v0.7.0, examples/v2beta1/pi)."""


def templates(facts: KubernetesFacts) -> dict[str, dict[str, list[Object]]]:
    """Return partition -> file -> objects, of the kinds of jobs that the cluster has."""
    named = facts.named_addons
    made: dict[str, dict[str, list[Object]]] = {}
    for partition in facts.partitions:
        accounts = [a for a in facts.accounts if partition in facts.partitions_of(a)]
        if not accounts:
            continue
        of = JobTemplate(facts, partition, accounts[0])
        made[partition] = {"torchrun": of.torchrun()}
        if "jobset" in named:
            made[partition]["jobset"] = of.jobset()
        if "mpi-operator" in named:
            made[partition]["mpijob"] = of.mpijob()
        if "kubeflow-trainer" in named:
            made[partition]["trainjob"] = of.trainjob()
    return made


class JobTemplate:
    """What a partition's jobs have in common, for an account."""

    def __init__(self, facts: KubernetesFacts, partition: str, account: str) -> None:
        """Find out what pods on a partition's nodes need."""
        pool = facts.partitions[partition].pools[0]
        machine = facts.machine(pool)
        self._facts, self._partition, self._account = facts, partition, account
        self._access: FabricAccess = fabric_access(facts, pool)
        self._runtime = runtime_class(facts, pool)
        self._disks = own_disks_volume(facts, pool)
        self._resource = gpu_resource(facts, pool)
        self._gpus = 0 if machine.gpu is None else gpu_count(machine) * units_per_gpu(facts, pool)
        self._claim = _claim(facts, machine)
        self._nodes = max(1, min(2, facts.most(pool), self._within_quota(account)))
        self._qos = self._quality(account)
        self._has_channels = has_channels(facts, pool)

    @property
    def gpu_resource(self) -> str | None:
        """What pods request GPUs by; None: the nodes have none."""
        return self._resource

    def _within_quota(self, account: str) -> int:
        """Return how many nodes an account's quota allows at once; two where it has none."""
        trail = self._facts.ancestors(account)
        limits = [quota for a in trail if (quota := self._facts.accounts[a].gpu_quota) is not None]
        gpus = self._facts.machine(self._facts.partitions[self._partition].pools[0]).gpu
        return min(limits) // gpus.count if limits and gpus is not None else 2

    def _quality(self, account: str) -> str:
        """Return the QOS of the account's jobs, or another that the partition takes as well."""
        only, own = self._facts.partitions[self._partition].qos, default_qos(self._facts, account)
        both = [name for name in allowed_qos(self._facts, account) if name in only]
        return own if not only or own in only or not both else both[0]

    def torchrun(self) -> list[Object]:
        """Return an Indexed Job with the service by which its pods find the first one."""
        name = "torchrun"
        found = {"selector": {"job-name": name}, "publishNotReadyAddresses": True}
        service = {"clusterIP": "None", **found}
        job = self._job(self._torchrun(f"{name}-0.{name}"), name)
        job["template"]["spec"]["subdomain"] = name
        return [
            *self.domain(name),
            new("v1", "Service", name, namespace=self._account, spec=service),
            new(
                "batch/v1",
                "Job",
                name,
                namespace=self._account,
                labels=self.labels(),
                spec=job,
            ),
        ]

    def domain(self, name: str, labels: dict[str, str] | None = None) -> list[Object]:
        """Return the NVLink domain of a job, by its name; [] where NVLink ends at the node."""
        return [compute_domain(name, self._account, labels)] if self._has_channels else []

    def jobset(self) -> list[Object]:
        """Return a JobSet of one Indexed Job; its pods are called SET-JOB-INDEX-POD."""
        name = "train"
        job = self._job(self._torchrun(f"{name}-workers-0-0.{name}"), name)
        spec = {
            "network": {"enableDNSHostnames": True, "subdomain": name},
            "failurePolicy": {"maxRestarts": 3},
            "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}],
        }
        return [*self.domain(name), self._whole("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec)]

    def trainjob(self) -> list[Object]:
        """Return a TrainJob, and the runtime that defines its nodes: GPUs, fabric, profile.

        The trainer passes torchrun the other nodes in each container called node (kubeflow/trainer
        v2.3.0, manifests/base/runtimes/torch_distributed.yaml and pkg/runtime/framework/plugins).
        """
        name = "train"
        pod = self.pod(["torchrun", PROGRAM], name)
        pod["spec"]["containers"][0]["name"] = "node"
        job = {"name": "node", "template": {"metadata": TRAINER_STEP, "spec": {"template": pod}}}
        runtime: dict[str, Json] = {
            "mlPolicy": {"numNodes": self._nodes, "torch": {}},
            "template": {"spec": {"replicatedJobs": [job]}},
        }
        spec: dict[str, Json] = {
            "runtimeRef": {"apiGroup": TRAINER, "kind": "TrainingRuntime", "name": name},
            "trainer": {"numNodes": self._nodes, "numProcPerNode": max(1, self._gpus)},
            **self.deadline(),
        }
        api = f"{TRAINER}/v1alpha1"
        return [
            *self.domain(name),
            new(api, "TrainingRuntime", name, namespace=self._account, spec=runtime),
            self._whole(api, "TrainJob", name, spec),
        ]

    def mpijob(self) -> list[Object]:
        """Return an MPIJob whose sshd and mpirun run as an ordinary user."""
        name, slots = "train", max(1, self._gpus)
        forwarded = [word for variable in self._environment() for word in ("-x", variable)]
        launch = [
            *("mpirun", "-np", str(self._nodes * slots), "--map-by", f"ppr:{slots}:node"),
            *("--bind-to", "none", *forwarded, "python3", PROGRAM),
        ]
        serve = ["/usr/sbin/sshd", "-De", "-f", f"{_MPI_HOME}/.sshd_config"]
        worker, launcher = self.pod(serve, name), self.pod(launch, name)
        launcher["metadata"] = {}
        container = launcher["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
        container["volumeMounts"] = []
        launcher["spec"]["volumes"] = []
        launcher["spec"].pop("initContainers", None)
        launcher["spec"].pop("resourceClaims", None)
        policy: dict[str, Json] = {"cleanPodPolicy": "Running", "backoffLimit": 0}
        spec = {
            "slotsPerWorker": slots,
            "sshAuthMountPath": f"{_MPI_HOME}/.ssh",
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": policy | self.deadline(),
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
                "Worker": {"replicas": self._nodes, "restartPolicy": "Never", "template": worker},
            },
        }
        return [*self.domain(name), self._whole("kubeflow.org/v2beta1", "MPIJob", name, spec)]

    def _whole(self, api: str, kind: str, name: str, spec: dict[str, Json]) -> Object:
        return new(api, kind, name, namespace=self._account, labels=self.labels(), spec=spec)

    def labels(self) -> dict[str, str]:
        """Return the labels by which a job enters its partition's queue."""
        return {QUEUE_LABEL: self._partition} if self._facts.scheduler.kueue else {}

    def _torchrun(self, first: str) -> list[str]:
        """Return torchrun's arguments; the Job numbers the pods (torchrun, "Multi-node")."""
        return [
            *("torchrun", f"--nnodes={self._nodes}", f"--nproc-per-node={max(1, self._gpus)}"),
            *("--node-rank=$(JOB_COMPLETION_INDEX)", f"--master-addr={first}"),
            *(f"--master-port={_PORT}", PROGRAM),
        ]

    def deadline(self) -> dict[str, Json]:
        """Return the longest time that partition and QOS allow; {}: neither limits it."""
        times = [
            one.max_time
            for one in (self._facts.partitions[self._partition], qualities(self._facts)[self._qos])
            if one.max_time is not None
        ]
        least = min((math.ceil(one.value) for one in times), default=0)
        return {"activeDeadlineSeconds": least} if least else {}

    def _job(self, command: list[str], name: str) -> dict[str, Json]:
        return {
            "completions": self._nodes,
            "parallelism": self._nodes,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            **self.deadline(),
            "template": self.pod(command, name),
        }

    def _environment(self) -> dict[str, str]:
        """Return the fabric's settings; values that extend an image's own are set alone here."""
        given = self._access.environment
        return {name.removesuffix("+"): value for name, value in given.items()}

    def pod(self, command: list[str], name: str) -> dict[str, Json]:
        """Return the template of a pod of the job `name` that takes a whole node."""
        wanted = dict(self._access.resources)
        if self._resource is not None and self._claim is None:
            wanted[self._resource] = str(self._gpus)
        huge = any(name.startswith("hugepages-") for name in wanted)
        limits = wanted | ({"memory": "64Gi"} if huge else {})
        container: dict[str, Json] = {
            "name": "main",
            "image": IMAGE,
            "command": command,
            "env": [{"name": name, "value": value} for name, value in self._environment().items()],
            "resources": {"requests": {"cpu": "1", "memory": "8Gi", **wanted}, "limits": limits},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
                "runAsUser": self._uid(),
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumeMounts": [
                {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108  # of the pod
                *(one.mount() for one in self._access.folders if not one.of_daemon),
            ],
        }
        volumes: list[Json] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
        volumes += [
            {"name": one.name, "persistentVolumeClaim": {"claimName": one.name}}
            for one in self._access.folders
        ]
        if self._disks is not None:
            container["volumeMounts"].append({"name": "disks", "mountPath": self._disks.folder})
            volumes.append({"name": "disks", **self._disks.source})
        spec: dict[str, Json] = {
            "restartPolicy": "Never",
            "priorityClassName": self._qos,
            "automountServiceAccountToken": False,
            "containers": [container],
            "volumes": volumes,
        }
        if self._runtime is not None:
            spec["runtimeClassName"] = self._runtime
        if not self._facts.scheduler.kueue:
            spec["nodeSelector"] = {f"{PARTITION_DOMAIN}/{self._partition}": "true"}
        if self._access.daemon:
            spec["initContainers"] = [daemon_container(self._access.daemon)]
        if self._claim is not None:
            spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": self._claim}]
            container["resources"]["claims"] = [{"name": "gpus"}]
        if self._has_channels:
            claim_channel(spec, name)
        notes = self._access.annotations
        metadata: dict[str, Json] = {"annotations": notes} if notes else {}
        scheduler = self._facts.scheduler
        if scheduler.control_plane == "aks" and self._account in scheduler.identities:
            metadata["labels"] = dict(AZURE_USE)
        return {"metadata": metadata, "spec": spec}

    def _uid(self) -> int:
        """Return who the containers are: the account's first user, who owns files of theirs."""
        users = {user.name: user.uid for user in self._facts.spec.local_users}
        known = [users[name] for name in self._facts.accounts[self._account].users if name in users]
        return known[0] if known else _UID


def _claim(facts: KubernetesFacts, machine: Machine) -> str | None:
    """Return the template by which a pod claims all GPUs of its node; None: it requests them."""
    gpu = machine.gpu if facts.scheduler.gpu.resource_claims else None
    return None if gpu is None else claim_template(facts, gpu.vendor, gpu.count)
