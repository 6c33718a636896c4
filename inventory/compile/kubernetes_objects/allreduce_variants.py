"""The same AllReduce for clusters that have JobSet or the MPI Operator."""

from __future__ import annotations

import shlex

from ..steps import Json
from .allreduce import (
    DEADLINE_S,
    RUN,
    AllReduceRun,
    companions,
    job_spec,
    pod_template,
    rank_environment,
)
from .objects import SYSTEM_NAMESPACE, Object, new

_RANKS = "ranks"
_SSH = "/usr/sbin/sshd"
_PORT = "2222"
"""Not the nodes' own: on their network it is taken."""


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
    """Return the run as an MPIJob: the operator makes keys and names, and starts the launcher.

    The launcher has the first node's programs too, and no GPU.
    """
    told = rank_environment(run)
    environment = {name: value for name, value in told.items() if name not in _FOR_SCRIPT}
    launch = ["/bin/sh", "-c", _launch(run, told)]
    worker = pod_template(run, [_SSH, "-D", "-e", "-p", _PORT], environment)
    launcher = pod_template(run, launch, environment)
    for template in (worker, launcher):
        _leave_to_the_operator(template)
    launcher["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "100m", "memory": "128Mi"}
    }
    del launcher["spec"]["affinity"]["podAntiAffinity"]
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
    claims = [one for one in companions(run) if one["kind"] == "ResourceClaimTemplate"]
    return [*claims, made]


_FOR_SCRIPT = frozenset({"FORWARD", "PREPEND"})


def _launch(run: AllReduceRun, told: dict[str, str]) -> str:
    """Return what the launcher's shell runs: values that go before others, then mpirun."""
    before = [line.partition("=") for line in told.get("PREPEND", "").splitlines()]
    exports = [
        f'export {name}={shlex.quote(value)}"${{{name}:+:${name}}}"' for name, _, value in before
    ]
    forwarded = [word for name in told["FORWARD"].split() for word in ("-x", name)]
    options = f"-p {_PORT} -o StrictHostKeyChecking=no -o ConnectionAttempts=10"
    words = [
        *("mpirun", "--allow-run-as-root", "--mca", "plm_rsh_args", options),
        *("-np", str(run.nodes * run.slots), "--map-by", f"ppr:{run.slots}:node"),
        *(*forwarded, *run.program),
    ]
    return "; ".join([*exports, f"exec {shlex.join(words)}"])


def _leave_to_the_operator(template: dict[str, Json]) -> None:
    """Take out what the operator itself gives a pod: its name, keys and script."""
    spec = template["spec"]
    del spec["subdomain"]
    spec["volumes"] = [one for one in spec["volumes"] if one["name"] not in {"script", "ssh"}]
    container = spec["containers"][0]
    mounts = container["volumeMounts"]
    container["volumeMounts"] = [one for one in mounts if one["name"] not in {"script", "ssh"}]
