"""A workload as Kubernetes objects: an Indexed Job with a pod a node, a JobSet of one, a TrainJob.

Its pods are those of the partition's templates (`kubernetes_objects/jobs/templates.py`): GPUs, the
fabric's devices and settings, queue and the restricted profile. Without gcluster `kubectl create`
takes them as they are.
"""

from __future__ import annotations

import math
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from ...schemas.derived.storage import mount_point
from ...schemas.spec import ScratchStorage, TorchrunElasticWorkload, TorchWorkload, Workload
from ..compile.kubernetes_objects.facts import KubernetesFacts, units_per_gpu
from ..compile.kubernetes_objects.jobs.templates import TRAINER, TRAINER_STEP, JobTemplate
from ..compile.kubernetes_objects.objects import DOMAIN, Object, documents, new
from ..compile.slurm.job_programs import PROGRAMS
from ..compile.steps import Json
from .checkpoints import WriteSpeed, folder, interval
from .launch import Rendezvous, binds_near_gpus, near_gpu, node_program
from .options import framework_variables
from .place import Place, place_of

WORKLOAD = f"{DOMAIN}/workload"
"""Label of a workload's objects and pods: the name of its job."""
SUBMITTER = f"{DOMAIN}/user"
"""Label of who submitted a job."""
CHECKPOINTS = f"{DOMAIN}/checkpoints"
"""Annotation with the folder that a job saves in: two jobs at once must not."""
COMMAND = f"{DOMAIN}/command"
"""Label of jobs of commands that no spec has; its value is "true"."""
CHECKPOINT_PROGRAM = "job-checkpoint.py"
_PORT = 29500
_LONGEST = 52
"""Characters of a Job's name, so that "-" and an index of ten digits still make a host's name."""
_LOST_NODE_S = 10
"""Until pods of a node that is lost are made elsewhere, after Kubernetes has noticed it."""
_RENDEZVOUS_S = 600
"""Until the first pod must have a name."""


def workload_name(name: str) -> str:
    """Return a workload's name as a Job may have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST].strip("-") or "job"


def account_of(facts: KubernetesFacts, workload: Workload) -> str:
    """Return the account, and so the namespace, that a workload is of (GC1233)."""
    return workload.account or next(iter(facts.accounts))


def pod_templates(objects: Sequence[Object]) -> list[dict[str, Json]]:
    """Return the templates of the pods of a workload's objects."""
    found: list[dict[str, Json]] = []
    for made in objects:
        spec = made.get("spec", {})
        sets = spec["template"]["spec"] if made["kind"] == "TrainingRuntime" else spec
        if made["kind"] == "Job":
            found.append(spec["template"])
        found += [each["template"]["spec"]["template"] for each in sets.get("replicatedJobs", ())]
    return found


def workload_text(objects: list[Object]) -> str:
    """Return a workload's objects as YAML, in the order in which they are made."""
    return documents(objects).decode()


def workload_objects(
    facts: KubernetesFacts,
    name: str,
    workload: Workload,
    checkpoint_program: str,
    measured: Mapping[str, WriteSpeed] | None = None,
) -> list[Object]:
    """Return the objects of one workload, the job last.

    Args:
        facts: the cluster that runs it; its spec passed its checks.
        name: the workload's.
        workload: passed its checks too, in this cluster.
        checkpoint_program: text of the program that completes and finds checkpoints.
        measured: storage -> what it was seen to take; None: nothing was measured.
    """
    return _Compiled(facts, name, workload, measured).objects(checkpoint_program)


class _Compiled:
    """One workload in its cluster."""

    def __init__(
        self,
        facts: KubernetesFacts,
        name: str,
        workload: Workload,
        measured: Mapping[str, WriteSpeed] | None,
    ) -> None:
        self._facts, self._workload, self._measured = facts, workload, measured
        self._name = workload_name(name)
        self._place: Place = place_of(facts.spec, facts.catalog, workload)
        self._account = account_of(facts, workload)
        self._template = JobTemplate(facts, self._place.partition, self._account)
        self._pool = self._place.node.name
        saved = workload.checkpoint
        self._checkpoints = None if saved is None else folder(name, saved, self._place)
        self._is_train_job = workload.kind == "TrainJob"
        self._in_set = self._is_train_job or "jobset" in facts.named_addons
        part = "node" if self._is_train_job else "workers"
        self._stem = f"{self._name}-{part}-0" if self._in_set else self._name

    def objects(self, checkpoint_program: str) -> list[Object]:
        made: list[Object] = self._template.domain(self._name, {WORKLOAD: self._name})
        if not self._in_set:
            service: dict[str, Json] = {
                "clusterIP": "None",
                "selector": {WORKLOAD: self._name},
                "publishNotReadyAddresses": True,
            }
            made.append(self._new("v1", "Service", spec=service))
        if self._checkpoints is not None:
            data: Json = {CHECKPOINT_PROGRAM: checkpoint_program}
            made.append(self._new("v1", "ConfigMap", data=data))
        if self._is_train_job:
            return made + self._train_job()
        made.append(self._jobset() if self._in_set else self._job())
        return made

    def _new(self, api: str, kind: str, **parts: Json) -> Object:
        labels, notes = {WORKLOAD: self._name}, {}
        if kind in {"Job", "JobSet", "TrainJob"}:
            labels |= self._template.labels()
            notes = {CHECKPOINTS: self._checkpoints} if self._checkpoints else {}
        return new(
            api,
            kind,
            self._name,
            namespace=self._account,
            labels=labels,
            annotations=notes,
            **parts,
        )

    def _job(self) -> Object:
        nodes = self._place.nodes
        spec = self._job_spec() | {"backoffLimit": nodes * (self._workload.restarts + 1) - 1}
        spec["template"]["spec"]["subdomain"] = self._name
        return self._new("batch/v1", "Job", spec=spec)

    def _jobset(self) -> Object:
        job = self._job_spec() | {"backoffLimit": 0}
        spec: dict[str, Json] = {
            "network": {"enableDNSHostnames": True, "subdomain": self._name},
            "failurePolicy": {"maxRestarts": self._workload.restarts},
            "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}],
        }
        return self._new("jobset.x-k8s.io/v1alpha2", "JobSet", spec=spec)

    def _train_job(self) -> list[Object]:
        """Return a TrainJob and the runtime of its own: the pods, in all that isn't their number.

        The trainer makes a JobSet by its name of them, starts all pods again as often as that says,
        and in the container called node sets torchrun's PET_ variables, over which the script's
        options hold (kubeflow/trainer v2.3.0 pkg/runtime/framework/plugins/{torch,jobset}).
        """
        nodes, is_torch = self._place.nodes, isinstance(self._workload, TorchWorkload)
        pod = self._pod()
        pod["spec"]["containers"][0]["name"] = "node"
        job = {
            "name": "node",
            "replicas": 1,
            "template": {
                "metadata": TRAINER_STEP,
                "spec": {"backoffLimit": 0, "completionMode": "Indexed", "template": pod},
            },
        }
        jobs = {
            "network": {"enableDNSHostnames": True, "subdomain": self._name},
            "failurePolicy": {"maxRestarts": self._workload.restarts},
            "replicatedJobs": [job],
        }
        runtime: dict[str, Json] = {
            "mlPolicy": {"numNodes": nodes, **({"torch": {}} if is_torch else {})},
            "template": {"spec": jobs},
        }
        each = {"numProcPerNode": self._place.processes} if is_torch else {}
        spec: dict[str, Json] = {
            "runtimeRef": {"apiGroup": TRAINER, "kind": "TrainingRuntime", "name": self._name},
            "trainer": {"numNodes": nodes, **each},
            **self._deadline(),
        }
        api = f"{TRAINER}/v1alpha1"
        return [
            self._new(api, "TrainingRuntime", spec=runtime),
            self._new(api, "TrainJob", spec=spec),
        ]

    def _deadline(self) -> dict[str, Json]:
        time = self._workload.time
        own = {"activeDeadlineSeconds": math.ceil(time.value)} if time is not None else {}
        return {**self._template.deadline(), **own}

    def _job_spec(self) -> dict[str, Json]:
        return {
            "completions": self._place.nodes,
            "parallelism": self._place.nodes,
            "completionMode": "Indexed",
            **self._deadline(),
            "template": self._pod(),
        }

    def _pod(self) -> dict[str, Json]:
        script = "\n".join([*self._script(), ""])
        pod = self._template.pod(["/bin/bash", "-c", script], self._name)
        metadata, spec = pod["metadata"], pod["spec"]
        metadata["labels"] = {**metadata.get("labels", {}), WORKLOAD: self._name}
        container = spec["containers"][0]
        container["image"] = self._workload.image
        if self._workload.chdir:
            container["workingDir"] = self._workload.chdir
        container["env"] += [
            {"name": key, "value": value}
            for key, value in (*self._variables().items(), *self._workload.variables.items())
        ]
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        container["env"].append({"name": "POD_IP", "valueFrom": address})
        resource = self._template.gpu_resource
        if resource is not None:
            units = str(self._place.gpus * units_per_gpu(self._facts, self._pool))
            for part in ("requests", "limits"):
                container["resources"][part][resource] = units
        for storage, at in self._mounts():
            container["volumeMounts"].append({"name": storage, "mountPath": at})
            claim = {"claimName": storage}
            spec["volumes"].append({"name": storage, "persistentVolumeClaim": claim})
        if self._checkpoints is not None:
            mount = {"name": "programs", "mountPath": PROGRAMS, "readOnly": True}
            container["volumeMounts"].append(mount)
            programs = {"name": self._name, "defaultMode": 0o555}
            spec["volumes"].append({"name": "programs", "configMap": programs})
        if self._workload.qos is not None:
            spec["priorityClassName"] = self._workload.qos
        saved = self._workload.checkpoint
        spec["terminationGracePeriodSeconds"] = 5 if saved is None else int(saved.notice.value)
        spec["tolerations"] = [
            *spec.get("tolerations", []),
            *(
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _LOST_NODE_S,
                }
                for state in ("not-ready", "unreachable")
            ),
        ]
        # A pod a node where it has not all of a node's GPUs to itself, for ranks are counted so.
        if self._place.nodes > 1:
            alike = {"labelSelector": {"matchLabels": {WORKLOAD: self._name}}}
            term = {**alike, "topologyKey": "kubernetes.io/hostname"}
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            spec.setdefault("affinity", {})["podAntiAffinity"] = {required: [term]}
        return pod

    def _mounts(self) -> Iterator[tuple[str, str]]:
        """Yield storage and where the pods see it: what it reads, saves to, or is started from."""
        workload, spec = self._workload, self._facts.spec
        used = {*workload.data, *([workload.checkpoint.to] if workload.checkpoint else [])}
        paths = [workload.chdir, workload.venv]
        paths += [workload.script] if isinstance(workload, TorchWorkload) else []
        for name, storage in spec.storage.items():
            at = mount_point(storage)
            starts = any(f"{path}/".startswith(f"{at}/") for path in paths if path)
            if name in used or (starts and not isinstance(storage, ScratchStorage)):
                yield name, at

    def _variables(self) -> dict[str, str]:
        place = self._place
        found = {
            "MASTER_ADDR": f"{self._stem}-0.{self._name}",
            "MASTER_PORT": str(_PORT),
            "WORLD_SIZE": str(place.nodes * place.processes),
        }
        least = self._workload.fewest_nodes
        if least is not None:
            found["GCLUSTER_NODES"] = f"{least}:{place.nodes}"  # as torchrun's --nnodes takes them
        other = {"HOME": "/tmp", **framework_variables(self._workload)}  # noqa: S108  # of the pod
        own = self._workload.variables
        found |= {key: value for key, value in other.items() if key not in own}
        saved = self._workload.checkpoint
        if saved is not None and self._checkpoints is not None:
            often = interval(self._facts.spec, saved, place, self._measured)
            found |= {
                "GCLUSTER_CHECKPOINTS": self._checkpoints,
                "GCLUSTER_CHECKPOINT_EVERY": str(often.seconds),
                "GCLUSTER_CHECKPOINT_KEEP": str(saved.keep),
            }
        return found

    def _script(self) -> Iterator[str]:
        """Yield the lines that a pod runs."""
        workload, place, saved = self._workload, self._place, self._workload.checkpoint
        framework = workload.__struct_config__.tag
        yield f"# {framework}, {place.nodes} x {place.processes} processes; written by gcluster."
        if saved is not None:
            often = interval(self._facts.spec, saved, place, self._measured)
            yield f"# A checkpoint every {often.seconds:,} s: {often.reason[0]}"
            yield from (f"# {line}" for line in often.reason[1:])
        yield "set -euo pipefail"
        yield 'ulimit -S -l "$(ulimit -H -l)" -n "$(ulimit -H -n)"'
        if workload.venv is not None:
            yield f". {shlex.quote(workload.venv)}/bin/activate"
        yield "# The first pod's name is known when it is placed."
        yield f"for _ in $(seq {_RENDEZVOUS_S}); do"
        yield '  getent hosts "$MASTER_ADDR" >/dev/null && break'
        yield "  sleep 1"
        yield "done"
        if saved is not None:
            program = posixpath.join(PROGRAMS, CHECKPOINT_PROGRAM)
            yield f'{program} open "$GCLUSTER_CHECKPOINTS"'
            yield f'GCLUSTER_RESUME_FROM=$({program} newest "$GCLUSTER_CHECKPOINTS")'
            yield "export GCLUSTER_RESUME_FROM"
            said = "${GCLUSTER_RESUME_FROM:-nothing: no checkpoint yet}"
            yield f'echo "gcluster: resuming from {said}"'
        if binds_near_gpus(workload, place):
            yield from near_gpu(place)
        yield "node() {"
        if saved is not None:
            yield "  trap '' USR1  # the request to save ends no process that doesn't handle it"
        yield from (f"  {line}" for line in self._node())
        yield "}"
        yield from self._started(saves=saved is not None)

    def _node(self) -> list[str]:
        elastic = isinstance(self._workload, TorchrunElasticWorkload)
        return node_program(
            self._workload,
            self._place,
            self._checkpoints,
            Rendezvous(
                setup=('[ "$JOB_COMPLETION_INDEX" = 0 ] && is_host=true || is_host=false',)
                if elastic
                else (),
                options=(
                    f"--rdzv-id={self._name}",
                    "--rdzv-backend=c10d",
                    '--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"',
                    '--rdzv-conf="is_host=$is_host"',
                    '--local-addr="$POD_IP"',
                )
                if elastic
                else (
                    '--node-rank="$JOB_COMPLETION_INDEX"',
                    '--master-addr="$MASTER_ADDR"',
                    '--master-port="$MASTER_PORT"',
                ),
                node='"$JOB_COMPLETION_INDEX"',
                ranks=(
                    "export LOCAL_RANK=$1",
                    f"export RANK=$((JOB_COMPLETION_INDEX * {self._place.processes} + $1))",
                ),
            ),
        )

    def _started(self, *, saves: bool) -> Iterator[str]:
        """Yield what starts a pod's processes, waits for them, and has them save before its end."""
        count = 1 if isinstance(self._workload, TorchWorkload) else self._place.processes
        yield "steps=()"
        yield f"for local in $(seq 0 {count - 1}); do"
        yield '  node "$local" &'
        yield "  steps+=($!)"
        yield "done"
        if saves:
            yield "# The pod is to end: save. All processes but this one get the signal."
            yield """trap 'echo "gcluster: saving before the end of the pod"; kill -USR1 -1' TERM"""
        else:
            yield """trap 'kill -TERM -1' TERM"""
        yield "code=0"
        yield 'for step in "${steps[@]}"; do'
        yield "  while :; do"
        yield '    wait "$step" && ended=0 || ended=$?'
        yield "    # A signal ends the waiting, not the process."
        yield '    kill -0 "$step" 2>/dev/null || break'
        yield "  done"
        yield '  [ "$ended" = 0 ] || { code=$ended; kill -TERM -1 2>/dev/null || true; }'
        yield "done"
        yield 'exit "$code"'
