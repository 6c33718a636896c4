"""What workloads train: parallel sizes, containers, data and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.storage import copy_place, write_bytes_per_s
from ...diagnostics import PathTuple, Severity, listing
from ...spec import (
    Degrees,
    MegatronWorkload,
    NemoWorkload,
    ObjectStorage,
    Parallel,
    Pool,
    ScratchStorage,
    Storage,
    TorchtitanWorkload,
    Workload,
)
from ..context import CheckContext
from ..registry import Finding, check
from .workloads import AT, NEEDS, WorkloadPlace, placed


@check("GC1205", summary="The parallel sizes of a workload don't fit its GPUs.")
def parallel_sizes(context: CheckContext) -> Iterator[Finding]:
    """The sizes of `parallel` (Megatron, NeMo, torchtitan) divide the GPUs of the workload.

    tensor x pipeline x context divides all GPUs; what is left is data parallel. Tensor parallelism
    exchanges activations in every layer, so it stays inside an NVLink domain. Experts are
    spread over the data parallel GPUs of a stage. The global batch is whole micro-batches for each
    data parallel replica; a pipeline needs as many of them as it has stages, or stages idle.
    """
    for name, workload, place in placed(context):
        each = place.gpus_of_a_node(context)
        sizes = getattr(workload, "parallel", None)
        if not isinstance(sizes, Degrees) or not each:
            continue
        gpus = workload.node_count(each) * workload.gpus_per_node(each)
        domains = [m.nvlink.domain_gpus for m in place.machines(context) if m and m.nvlink]
        domain = min(domains, default=1)
        problem = _wrong_sizes(sizes, gpus, domain)
        if problem is not None:
            key, what, hint, severity = problem
            path: PathTuple = (AT, name, "parallel", key)
            size: PathTuple = (AT, name, "nodes" if workload.gpus is None else "gpus")
            yield Finding(
                summary=f'workload "{name}": {what}',
                path=path if getattr(sizes, key) != 1 else path[:-1],
                at_key=getattr(sizes, key) == 1,
                hint=hint,
                severity=severity,
                relies_on=((AT, name, "parallel"), size, (AT, name, "partition"), *NEEDS),
            )


def _wrong_sizes(sizes: Degrees, gpus: int, domain: int) -> tuple[str, str, str, Severity] | None:
    """Return key, problem, hint and severity of the first size that doesn't fit."""
    model = sizes.tensor * sizes.pipeline * sizes.context
    written = f"tensor {sizes.tensor} x pipeline {sizes.pipeline} x context {sizes.context}"
    if gpus % model:
        what = f"{written} = {model}, which doesn't divide its {gpus:,} GPUs"
        return "tensor", what, "their product divides the GPUs", Severity.ERROR
    if sizes.tensor > domain:
        what = f"tensor {sizes.tensor} is more than the {domain} GPUs of an NVLink domain"
        return "tensor", what, f"at most {domain}; use pipeline for more", Severity.ERROR
    data = gpus // model
    if (data * sizes.tensor * sizes.context) % sizes.expert:
        what = f"expert {sizes.expert} doesn't divide the {data * sizes.tensor * sizes.context} "
        return "expert", what + "GPUs of a stage", "a divisor of that", Severity.ERROR
    return _wrong_batches(sizes, data) if isinstance(sizes, Parallel) else None


def _wrong_batches(sizes: Parallel, data: int) -> tuple[str, str, str, Severity] | None:
    """Return the same of the batches, over so many replicas; torchtitan's have other names."""
    step = data * sizes.micro_batch
    if sizes.global_batch % step:
        what = f"a global batch of {sizes.global_batch:,} is no multiple of {step:,}: "
        what += f"{data} replicas x micro_batch {sizes.micro_batch}"
        above = (sizes.global_batch // step + 1) * step
        return "global_batch", what, f"write {above}", Severity.ERROR
    batches = sizes.global_batch // step
    if batches < sizes.pipeline:
        what = f"{batches} micro-batches a step leave stages of a pipeline of {sizes.pipeline} idle"
        least = step * sizes.pipeline
        return "global_batch", what, f"write {least} or more", Severity.WARNING
    return None


@check("GC1206", summary="A workload requests a container where none can run.")
def workload_container(context: CheckContext) -> Iterator[Finding]:
    """`image` runs in enroot by pyxis, which `software.containers` brings to machines.

    Local and simulated nodes have none. `sif` is a file for Apptainer, which the nodes have by
    their own image or a hook. `mounts` are a container's, so they need an `image` or a `sif`.
    """
    if context.slurm is None:  # Kubernetes runs nothing else
        return
    for name, workload, place in placed(context):
        found = _wrong_container(context, workload, place)
        if found is not None:
            key, what, hint = found
            yield Finding(
                summary=f'workload "{name}" {what}',
                path=(AT, name, key),
                at_key=key != "image",
                hint=hint,
                relies_on=((AT, name), ("software",), *NEEDS)
                if key == "image"
                else ((AT, name, "image"), (AT, name, "sif"), (AT, name, key)),
            )


def _wrong_container(
    context: CheckContext, workload: Workload, place: WorkloadPlace
) -> tuple[str, str, str] | None:
    """Return key, problem and hint; None: it has no container, or one that can run."""
    if workload.image is None:
        if workload.sif is None and workload.mounts:
            hint = "add image or sif, or leave mounts out: processes see their node's folders"
            return "mounts", "has mounts and no image", hint
        return None
    if workload.sif is not None:
        return "sif", "has an image and a sif", "keep one of the two"
    without = [pool for pool, one in place.pools.items() if _runs_none(context, one)]
    if not without:
        return None
    what = f"has an image, and nodes of {listing(without)} run no containers"
    return "image", what, "use venv, or what the nodes have"


def _runs_none(context: CheckContext, pool: Pool) -> bool:
    """Whether jobs on a pool's nodes can't run in containers."""
    own = "auto" if pool.software is None else pool.software.containers
    own = context.software.containers if own == "auto" else own
    return own == "none" or _is_made_here(context, pool)


def _is_made_here(context: CheckContext, pool: Pool) -> bool:
    """Whether a pool's nodes are containers or simulated ones of this machine."""
    site = context.sites.get(pool.site)
    return site is not None and site.is_made_here


@check("GC1207", summary="A workload's data or checkpoints are not where its nodes can use them.")
def workload_storage(context: CheckContext) -> Iterator[Finding]:
    """All nodes of a workload mount what it reads and where it saves.

    Checkpoints outlive the nodes that wrote them, and other nodes resume from them: so they are on
    storage that may be written, and not on the nodes' own disks. Nor are they saved to a bucket of
    S3: its client, mount-s3, renames no file and appends to none, and what says that a checkpoint
    is complete, here and in PyTorch's own format, is renamed into place. Copies need neither.
    """
    for name, workload, place in placed(context):
        uses: list[tuple[str, PathTuple]] = [
            (storage, (AT, name, "data", i)) for i, storage in enumerate(workload.data)
        ]
        saved = workload.checkpoint
        if saved is not None:
            uses.append((saved.to, (AT, name, "checkpoint", "to")))
        for storage, path in uses:
            saves = path[-1] == "to"
            hint = "name a storage that all its nodes mount" + " and may write" * saves
            problem = _unusable(context, storage, place, saves=saves)
            if problem is None and saves and _renames_nothing(context.storage.get(storage)):
                problem = f'"{storage}" is a bucket of S3, where mount-s3 can\'t rename files'
                hint = f"save to a file system, and write copies: [{storage}]"
            if problem is not None:
                yield Finding(
                    summary=f'workload "{name}": {problem}',
                    path=path,
                    hint=hint,
                    relies_on=(path, ("storage", storage), (AT, name, "partition"), *NEEDS),
                )


def _unusable(context: CheckContext, name: str, place: WorkloadPlace, *, saves: bool) -> str | None:
    storage = context.storage.get(name)
    if storage is None:
        return None
    if saves and isinstance(storage, ScratchStorage):
        return f'checkpoints on "{name}" are gone with the node that wrote them'
    if saves and getattr(storage, "read_only", False):
        return f'checkpoints can\'t be written to "{name}", which is read only'
    mounting = set(context.mounts.mounted_by(name))
    without = [pool for pool in place.pools if pool not in mounting]
    if without and context.mounts.is_certain(name):
        return f'nodes of {listing(without)} don\'t mount "{name}"'
    return None


def _renames_nothing(storage: Storage | None) -> bool:
    """Whether the program that mounts a storage can't rename files.

    Source: awslabs/mountpoint-s3, doc/SEMANTICS.md, "You cannot rename an existing file" (of the
    buckets of S3 only directory buckets can, and those need --incremental-upload to append).
    gcsfuse and blobfuse2 rename.
    """
    return isinstance(storage, ObjectStorage) and storage.bucket.startswith("s3://")


@check("GC1219", summary="Checkpoints of a workload can't be copied so.")
def checkpoint_copies(context: CheckContext) -> Iterator[Finding]:
    """A complete checkpoint is copied from its folder to storage that the nodes mount.

    A bucket is mounted as storage of `type: object`, by the nodes' own identity and its cloud's own
    program: a copy has no keys and no client of its own. `copies` names the storage, or has the URL
    of its bucket or of a prefix in that. A checkpoint is complete when the program has run
    `job-checkpoint.py commit`; Megatron, NeMo and torchtitan write theirs by themselves and don't.
    """
    for name, workload, place in placed(context):
        saved = workload.checkpoint
        if saved is None:
            continue
        seen: dict[tuple[str, str], str] = {}
        for index, to in enumerate(saved.copies):
            path: PathTuple = (AT, name, "checkpoint", "copies", index)
            where = copy_place(context.storage, to)
            problem = _uncopied(context, workload, place, to)
            if problem is None and where is not None:
                if where in seen:
                    problem = f'copies checkpoints twice to "{where[0]}"', "write it once"
                seen[where] = to
            if problem is not None:
                what, hint = problem
                yield Finding(
                    summary=f'workload "{name}" {what}',
                    path=path,
                    hint=hint,
                    relies_on=((AT, name), ("storage",), *NEEDS),
                )


def _uncopied(
    context: CheckContext, workload: Workload, place: WorkloadPlace, to: str
) -> tuple[str, str] | None:
    """Return why a workload's checkpoints can't be copied to a place, and what to write."""
    found = copy_place(context.storage, to)
    if found is None:
        if "://" not in to:  # GC403
            return None
        hint = f"add one: {{type: object, mount: /copies, bucket: {to}}}"
        return f"copies checkpoints to {to}, which no storage of the spec shows", hint
    if isinstance(workload, MegatronWorkload | NemoWorkload | TorchtitanWorkload):
        what = f"is {workload.__struct_config__.tag}, which says of no checkpoint when it is whole"
        return what + ", so none is copied", "copy by a job of its own, after this one"
    storage, saved = context.storage[found[0]], workload.checkpoint
    if saved is not None and saved.to == found[0]:
        return f'copies checkpoints from "{saved.to}" to itself', "name another storage"
    if isinstance(storage, ObjectStorage):
        made = [name for name, pool in place.pools.items() if _is_made_here(context, pool)]
        if made or storage.bucket.startswith("oci://"):
            what = f'copies checkpoints to "{found[0]}", a bucket that its nodes don\'t mount'
            return what, "name a storage that they mount"
    problem = _unusable(context, found[0], place, saves=True)
    return None if problem is None else (f"copies checkpoints: {problem}", "name another storage")


@check("GC1220", summary="A workload can't be made to save while it trains.")
def checkpoint_async(context: CheckContext) -> Iterator[Finding]:
    """`async: true` is an option of the framework's own program: Megatron's and torchtitan's.

    In any other the program itself saves, and so it decides: PyTorch has
    `torch.distributed.checkpoint.async_save`.
    """
    for name, workload in context.workloads.items():
        saved = workload.checkpoint
        if saved is None or not saved.is_async:
            continue
        if not isinstance(workload, MegatronWorkload | TorchtitanWorkload):
            tag = workload.__struct_config__.tag
            yield Finding(
                summary=f'workload "{name}" is {tag}, whose program decides how it saves',
                path=(AT, name, "checkpoint", "async"),
                at_key=True,
                hint="leave it out, and have the program save so",
                relies_on=((AT, name),),
            )


@check("GC1235", summary="A workload can't save to its nodes' own disks first.")
def checkpoint_local_first(context: CheckContext) -> Iterator[Finding]:
    """With `local_first` each node's part of a checkpoint is on its own disks before it is on `to`.

    There it has the job's own folder (`scheduler.job_scratch`), and the program says when the part
    is written (`job_launch/parts.py send`). Megatron, NeMo and torchtitan write by themselves and
    don't.
    """
    slurm = context.slurm
    if slurm is None:  # GC1233
        return
    for name, workload in context.workloads.items():
        saved = workload.checkpoint
        if saved is None or not saved.local_first:
            continue
        problem = None
        if isinstance(workload, MegatronWorkload | NemoWorkload | TorchtitanWorkload):
            tag = workload.__struct_config__.tag
            problem = f"is {tag}, which doesn't say when a node has written its part"
            hint = "leave it out; async: true takes the write out of its way, where it has that"
        elif slurm.job_scratch is None:
            problem = "saves to its nodes' own disks first, and jobs have no folder there"
            hint = "add scheduler: {job_scratch: /local}, on a storage of type local-nvme"
        if problem is not None:
            yield Finding(
                summary=f'workload "{name}" {problem}',
                path=(AT, name, "checkpoint", "local_first"),
                at_key=True,
                hint=hint,
                relies_on=((AT, name), ("scheduler", "job_scratch"), ("scheduler", "type")),
            )


@check("GC1209", summary="The interval of a workload's checkpoints can't be worked out.")
def checkpoint_interval_unknown(context: CheckContext) -> Iterator[Finding]:
    """`every: auto` needs how long a checkpoint takes to write, and how often the GPUs fail.

    The first follows from `size` or `parameters` and what the storage takes: as `gcluster smoke
    --storage` has measured it, else as the spec says (Lustre with capacity and throughput, EFS with
    provisioned throughput, FSx for OpenZFS). Where the spec doesn't say it and until it is
    measured, 30 minutes are taken. The second is from published failures of large jobs.
    """
    for name, workload, _ in placed(context):
        saved = workload.checkpoint
        if saved is None or not saved.every.is_auto:
            continue
        storage = context.storage.get(saved.to)
        at: PathTuple = (AT, name, "checkpoint")
        if storage is None:
            continue
        needs = (at, ("storage", saved.to))
        sizes = (saved.size is not None) + (saved.parameters is not None)
        if sizes != 1:
            what = "both its size and its parameters" if sizes else "no size"
            yield Finding(
                summary=f'workload "{name}": the checkpoint has {what}, so how often it saves '
                "can't be worked out",
                path=at,
                at_key=True,
                hint="keep one of size and parameters"
                if sizes
                else "add size: 500 GB, or parameters: 70000000000; or write every: 15m",
                relies_on=needs,
            )
        elif not write_bytes_per_s(storage):
            yield Finding(
                summary=f'workload "{name}": the spec doesn\'t say what "{saved.to}" takes, so it '
                "saves every 30 minutes until that is measured",
                path=at,
                at_key=True,
                severity=Severity.WARNING,
                hint="gcluster smoke CLUSTER --storage measures it; or write every: 15m",
                relies_on=needs,
            )
