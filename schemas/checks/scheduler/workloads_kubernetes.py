"""Workloads under Kubernetes: what a Job's pods need, and what they can't have."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import PathTuple, Severity, listing
from ...spec import (
    JaxWorkload,
    KubernetesScheduler,
    MpiWorkload,
    RayWorkload,
    ScratchStorage,
    TorchrunElasticWorkload,
    Workload,
)
from ..context import CheckContext
from ..registry import Finding, check
from .workloads import AT

_TRAINER = "kubeflow-trainer"


@check("GC1233", summary="A workload requests what a Job of Kubernetes can't have, or lacks it.")
def workload_as_job(context: CheckContext) -> Iterator[Finding]:
    """Under Kubernetes a workload runs in pods of its account's namespace.

    So it names an `image`, no `sif`, and, where there are several accounts, its `account`. Nodes'
    folders (`mounts`) are closed to pods of accounts; storage of the spec isn't: `data`,
    `checkpoint` and the storage below `chdir`, `script` and `venv` are mounted. MPI's ranks are
    started by the MPI Operator, of whose jobs `gcluster compile` writes a template; JAX finds its
    processes by Slurm's variables, and Ray's clusters are KubeRay's. Where pods claim GPUs a job
    starts from the templates of `gcluster compile`. Spare nodes, the search for hangs, the gate,
    copies of checkpoints, `local_first` and a command's `min_nodes` are what the batch script does
    under Slurm. A `kind: TrainJob` needs Kubeflow Trainer among the add-ons, and Kubernetes.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        yield from _kinds_elsewhere(context)
        return
    for name, workload in context.workloads.items():
        found = _unfit(kubernetes, workload)
        if found is not None:
            key, what, hint = found
            yield Finding(
                summary=f'workload "{name}" {what}',
                path=(AT, name, key) if key else (AT, name),
                at_key=True,
                hint=hint,
                relies_on=((AT, name), ("scheduler",)),
            )


def _kinds_elsewhere(context: CheckContext) -> Iterator[Finding]:
    """Yield kinds of objects where the scheduler is another one."""
    for name, workload in context.workloads.items():
        if context.slurm is not None and workload.kind is not None:
            yield Finding(
                summary=f'workload "{name}" has kind, which Kubernetes has and Slurm has not',
                path=(AT, name, "kind"),
                at_key=True,
                hint="leave it out",
                relies_on=((AT, name, "kind"), ("scheduler",)),
            )


def _unfit(kubernetes: KubernetesScheduler, workload: Workload) -> tuple[str, str, str] | None:
    """Return key, problem and hint; None: it fits."""
    problem = None
    if workload.sif is not None:
        what = "has sif, a file for Apptainer, and pods run images of a registry"
        problem = "sif", what, "use image: registry.example.edu/train:1"
    elif workload.image is None:
        hint = "add image: registry.example.edu/train:1"
        problem = "", "has no image, in which its pods run", hint
    elif workload.mounts:
        what = "has mounts: folders of the nodes are closed to pods of accounts"
        hint = "leave them out; storage under data, checkpoint and chdir is mounted"
        problem = "mounts", what, hint
    elif isinstance(workload, MpiWorkload):
        what = "is framework mpi, whose ranks a Job doesn't start"
        hint = "use the MPIJob that gcluster compile writes (addons: [mpi-operator])"
        problem = "framework", what, hint
    elif isinstance(workload, JaxWorkload):
        what = "is framework jax, which finds its processes by Slurm's variables"
        hint = "use framework: command, whose RANK, WORLD_SIZE and MASTER_ADDR its program gives "
        problem = "framework", what, hint + "to jax.distributed.initialize()"
    elif isinstance(workload, RayWorkload):
        what = "is framework ray, whose head and workers a Job doesn't start"
        problem = "framework", what, "use KubeRay's RayJob"
    elif (key := _of_the_script(workload)) is not None:
        what = f"has {key}, which the batch script of Slurm does"
        problem = key, what, "leave it out; restarts and checkpoints bring it back"
    elif workload.checkpoint is not None and workload.checkpoint.copies:
        what = "has checkpoint.copies, which the batch script of Slurm makes"
        problem = "checkpoint", what, "leave them out; copy by a Job of its own"
    elif workload.checkpoint is not None and workload.checkpoint.local_first:
        what = "has checkpoint.local_first, which the batch script of Slurm does"
        problem = "checkpoint", what, "leave it out; have the program save asynchronously"
    else:
        problem = _lacking(kubernetes, workload)
    return problem


def _lacking(kubernetes: KubernetesScheduler, workload: Workload) -> tuple[str, str, str] | None:
    """Return the same of what the cluster is without, or has several of."""
    problem = None
    if workload.kind is not None and _TRAINER not in kubernetes.addons:
        what = "is a TrainJob, and the cluster has no Kubeflow Trainer"
        problem = "kind", what, f"add {_TRAINER} to scheduler.addons, or leave kind out"
    elif kubernetes.gpu.resource_claims:
        what = "runs where GPUs are claimed (gpu.resource_claims)"
        problem = "", what, "leave one of the two out"
    elif workload.account is None and len(kubernetes.accounts) > 1:
        hint = f"add account: one of {listing(kubernetes.accounts)}"
        problem = "", "names no account, and there are several", hint
    return problem


def _of_the_script(workload: Workload) -> str | None:
    """Return the first key of what a script around the processes does under Slurm."""
    shrinks = not isinstance(workload, TorchrunElasticWorkload) and workload.fewest_nodes
    keys = {
        "spares": workload.spares,
        "hang": workload.hang,
        "gate": workload.gate,
        "min_nodes": shrinks,
    }
    return next((key for key, value in keys.items() if value), None)


@check("GC1234", summary="A workload under Kubernetes does not come back, or not with its data.")
def workload_comes_back(context: CheckContext) -> Iterator[Finding]:
    """What a Job of Kubernetes does otherwise than one of Slurm.

    A lost node counts as one of its `restarts`, for the processes on the others end with it: with
    none a training that saves ends there. And the nodes' own disks are no volumes of an account,
    so `data` is on storage that nodes share.
    """
    if context.kubernetes is None:
        return
    for name, workload in context.workloads.items():
        path: PathTuple = (AT, name)
        if workload.checkpoint is not None and not workload.restarts:
            yield Finding(
                summary=f'workload "{name}" saves checkpoints, and a lost node ends it: restarts '
                "is 0",
                path=(*path, "checkpoint"),
                at_key=True,
                severity=Severity.WARNING,
                hint="add restarts: 3",
                relies_on=((*path, "restarts"), (*path, "checkpoint"), ("scheduler",)),
            )
        for index, storage in enumerate(workload.data):
            if isinstance(context.storage.get(storage), ScratchStorage):
                yield Finding(
                    summary=f'workload "{name}": "{storage}" is each node\'s own disk, which is no '
                    "volume of an account",
                    path=(*path, "data", index),
                    hint="name a storage that nodes share; pods have the disks as their folder",
                    relies_on=((*path, "data", index), ("storage", storage), ("scheduler",)),
                )
