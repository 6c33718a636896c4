"""A workload as a batch script: what sbatch reads, its environment, its processes, its end."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from ...schemas.catalog import Catalog
from ...schemas.spec import (
    ClusterSpec,
    SlurmScheduler,
    Workload,
    WorkloadCheckpoint,
)
from ...schemas.spec.units import Duration
from ..compile.gpu.nccl import node_environment
from ..compile.slurm.daemons import job_scratch
from ..compile.slurm.job_programs import PROGRAMS
from .checkpoints import WriteSpeed, copy_folders, folder, interval
from .launch import binds_near_gpus, is_one_per_node, near_gpu, node_program
from .options import framework_variables
from .place import Place, place_of

CHECKPOINTS = f"{PROGRAMS}/job-checkpoint.py"
LAUNCH = f"{PROGRAMS}/job_launch/launch.py"
PARTS = f"{PROGRAMS}/job_launch/parts.py"
"""On every node of the cluster (role slurm)."""
_GATE_S = 120
"""Longest time of the gate: MPI starts in seconds, each of the few rounds takes one."""
_LAST_MOVE_S = 60
"""Longest time for what is left to move when a program failed: other nodes may have failed too."""
_PORTS = (20_000, 10_000)
"""First port of the rendezvous, and how many there are: below those that Linux gives to others."""
_MINUTE_S = 60


def batch_scripts(spec: ClusterSpec, catalog: Catalog) -> dict[str, str]:
    """Return the script of each workload of a spec that passed its checks, by its name."""
    if not isinstance(spec.scheduler, SlurmScheduler):
        return {}
    return {
        name: batch_script(spec, catalog, name, workload)
        for name, workload in spec.workloads.items()
    }


def batch_script(
    spec: ClusterSpec,
    catalog: Catalog,
    name: str,
    workload: Workload,
    measured: Mapping[str, WriteSpeed] | None = None,
) -> str:
    """Return the script of one workload.

    Args:
        spec: the cluster that runs it; it passed its checks.
        catalog: describes its machines and fabrics.
        name: the workload's.
        workload: passed its checks too, in this cluster.
        measured: storage -> what it was seen to take; None: nothing was measured.
    """
    place = place_of(spec, catalog, workload)
    saved = workload.checkpoint
    checkpoints = None if saved is None else folder(name, saved, place)
    sections = [
        _directives(name, workload, place),
        _head(spec, name, workload, place),
        _fabric(place) if place.has_real_gpus else [],
        _variables(workload),
        [] if saved is None else _checkpoints(spec, saved, place, checkpoints or "", measured),
        _rendezvous(),
        near_gpu(place) if binds_near_gpus(workload, place) else [],
        _node(workload, place, checkpoints),
        _launch(
            workload, place, checkpoints, [] if saved is None else copy_folders(name, saved, place)
        ),
    ]
    return "\n".join(["#!/bin/bash", *_joined(sections)])


def _joined(sections: Iterable[list[str]]) -> Iterator[str]:
    """Yield the lines of sections with an empty line between them, and one at the end."""
    for index, lines in enumerate(each for each in sections if each):
        yield from ([""] if index > 1 else [])
        yield from lines
    yield ""


def _directives(name: str, workload: Workload, place: Place) -> list[str]:
    """Return the #SBATCH lines (sbatch(1), Slurm 24.11)."""
    saved = workload.checkpoint
    fewest = workload.fewest_nodes or place.nodes
    keeps_nodes = bool(workload.spares) or fewest < place.nodes
    tasks = 1 if is_one_per_node(workload) else place.processes
    options = [
        f"--job-name={name}",
        f"--partition={place.partition}",
        *([f"--account={workload.account}"] if workload.account else []),
        *([f"--qos={workload.qos}"] if workload.qos else []),
        f"--nodes={_sizes(fewest, place.nodes + workload.spares)}",
        f"--ntasks-per-node={tasks}",
        *([f"--gpus-per-node={place.gpus}"] if place.gpus else []),
        *(["--exclusive", "--mem=0"] if place.is_whole else _part(place, tasks)),
        *([f"--time={_slurm_time(workload.time)}"] if workload.time else []),
        *([f"--chdir={workload.chdir}"] if workload.chdir else []),
        *([f"--comment=data={','.join(workload.data)}"] if workload.data else []),
        "--output=%x-%j.log",
        "--open-mode=append",
        "--requeue",
        *(["--no-kill"] if keeps_nodes else []),
        *([f"--signal=B:USR1@{int(saved.notice.value)}"] if saved else []),
    ]
    return [f"#SBATCH {option}" for option in options]


def _sizes(fewest: int, most: int) -> str:
    """Return a number of nodes, or the fewest and the most (sbatch(1), "--nodes")."""
    return str(most) if fewest >= most else f"{fewest}-{most}"


def _part(place: Place, tasks: int) -> list[str]:
    """Return what a workload gets of a node that it shares: the CPUs that its GPUs have there."""
    cpus = place.cpus * place.processes // tasks
    return [f"--cpus-per-task={cpus}"] if cpus else []


def _slurm_time(time: Duration) -> str:
    """Return a time as minutes, rounded up (sbatch(1), "--time")."""
    return str(max(1, -(-int(time.value) // _MINUTE_S)))


def _head(spec: ClusterSpec, name: str, workload: Workload, place: Place) -> list[str]:
    framework = workload.__struct_config__.tag
    size = f"{place.nodes} node{'s' * (place.nodes > 1)} x {place.processes} "
    return [
        (
            f'# Workload "{name}" of cluster "{spec.name}": {framework}, {size}'
            f"process{'es' * (place.processes > 1)}."
        ),
        "# Written by gcluster from the spec: sbatch takes it as it is.",
        "set -euo pipefail",
    ]


def _fabric(place: Place) -> list[str]:
    """Return the settings of NCCL or RCCL; what a job has set itself stays.

    What the nodes resolve, such as the names of their rails, is left to them.
    """
    given = node_environment(place.node)
    own = sorted(key for key, value in given.items() if value.startswith("@"))
    lines = [_setting(key, value) for key, value in sorted(given.items()) if key not in own]
    if not given:
        return []
    return [
        f"# Fabric {place.node.fabric_class}, as the catalog has it; what is set already stays.",
        *([f"# The nodes themselves set {', '.join(own)}."] if own else []),
        *lines,
    ]


def _setting(key: str, value: str) -> str:
    """Return the line of one variable; the value of NAME+ goes before what NAME has."""
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    if key.endswith("+"):
        name = key[:-1]
        return f'export {name}="{quoted}${{{name}:+:${name}}}"'
    return f'export {key}="${{{key}:-{quoted}}}"'


def _variables(workload: Workload) -> list[str]:
    needed = framework_variables(workload)
    lines = ["# The framework requires this; what is set already stays."] if needed else []
    lines += [_setting(key, value) for key, value in needed.items()]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in workload.variables.items()]
    if workload.venv is not None:
        lines += [
            "# shellcheck source=/dev/null",
            f". {shlex.quote(workload.venv)}/bin/activate",
        ]
    return lines


def _checkpoints(
    spec: ClusterSpec,
    saved: WorkloadCheckpoint,
    place: Place,
    path: str,
    measured: Mapping[str, WriteSpeed] | None,
) -> list[str]:
    """Return where the workload saves, how often, and what it resumes from."""
    often = interval(spec, saved, place, measured)
    return [
        f"# A checkpoint every {often.seconds:,} s: {often.reason[0]}",
        *(f"# {line}" for line in often.reason[1:]),
        f"export GCLUSTER_CHECKPOINTS={shlex.quote(path)}",
        f"export GCLUSTER_CHECKPOINT_EVERY={often.seconds}",
        f"export GCLUSTER_CHECKPOINT_KEEP={saved.keep}",
        f"checkpoint={CHECKPOINTS}",
        "# One job at a time writes there.",
        '"$checkpoint" open "$GCLUSTER_CHECKPOINTS"',
    ]


def _rendezvous() -> list[str]:
    first, count = _PORTS
    return [
        "# Rendezvous on the first node, which runs this script, at a port of the job's own.",
        (
            'address=$(scontrol show node "$SLURMD_NODENAME" | sed -n '
            "'s/.*NodeAddr=\\([^ ]*\\).*/\\1/p')"
        ),
        'export MASTER_ADDR="${address:-$(hostname)}"',
        f"export MASTER_PORT=$(({first} + SLURM_JOB_ID % {count}))",
    ]


def _node(workload: Workload, place: Place, checkpoints: str | None) -> list[str]:
    """Return the program of each task of srun, as a here-document."""
    return [
        f"# What each {'node' if is_one_per_node(workload) else 'process'} runs.",
        "node=$(cat <<'NODE'",
        'ulimit -S -l "$(ulimit -H -l)" -n "$(ulimit -H -n)"',
        *(
            [
                "# The request to save reaches all processes; it ends none that doesn't handle it.",
                "trap '' USR1",
            ]
            if checkpoints is not None
            else []
        ),
        *_moved(workload, node_program(workload, place, checkpoints)),
        "NODE",
        ")",
    ]


def _moved(workload: Workload, program: list[str]) -> list[str]:
    """Return a program whose checkpoints go to the node's own disks first, and then are moved."""
    if workload.checkpoint is None or not workload.checkpoint.local_first:
        return program
    return [
        'export GCLUSTER_CHECKPOINTS_LOCAL="$JOB_SCRATCH/checkpoints"',
        'mkdir -p "$GCLUSTER_CHECKPOINTS_LOCAL"',
        "(",
        *program,
        ")",
        "code=$?",
        "# What is on this node's disks yet is moved, or gone with the job.",
        f'[ "$code" = 0 ] && limit=0 || limit={_LAST_MOVE_S}',
        f'timeout "$limit" {PARTS} wait "$GCLUSTER_CHECKPOINTS_LOCAL"',
        'exit "$code"',
    ]


def _launch(
    workload: Workload, place: Place, checkpoints: str | None, copies: list[str]
) -> list[str]:
    """Return the last command: it starts the processes, and again when something ends them."""
    alone = is_one_per_node(workload) or place.processes == 1
    saved, fewest = workload.checkpoint, workload.fewest_nodes
    own = [
        f"--nodes={place.nodes}",
        *([f"--least={fewest}"] if fewest is not None and fewest < place.nodes else []),
        *([f"--spares={workload.spares}"] if workload.spares else []),
        *([f"--tasks-per-node={place.processes}"] if not alone else []),
        *([f"--restarts={workload.restarts}"] if workload.restarts else []),
        *([f"--hang={int(workload.hang.value)}"] if workload.hang else []),
        *([f"--gate={_GATE_S}"] if workload.gates.before else []),
        *([f"--gate-after={_GATE_S}"] if workload.gates.after else []),
        *([f"--notice={int(saved.notice.value)}"] if saved else []),
        *(f"--copy={shlex.quote(each)}" for each in copies),
        "--",
    ]
    srun = [
        "--kill-on-bad-exit=1",
        *(["--mpi=pmix"] if workload.__struct_config__.tag == "mpi" else []),
        # One task of a node has all its cores; several have each their own, in the order of the
        # GPUs, whose sockets are in that order too.
        *(["--cpu-bind=none"] if alone else []),
        *(
            [f"--cpus-per-task={place.cpus} --distribution=block:block --cpu-bind=cores"]
            if not alone and place.cpus
            else []
        ),
        *_container(workload, place, checkpoints),
        *_apptainer(workload, place, checkpoints),
    ]
    return [
        "# Starts srun with these words, and again from the newest checkpoint when it fails,",
        "# on the nodes that are left; at SIGUSR1 the job saves and goes back in line.",
        f"exec {LAUNCH} run \\",
        f"  {' '.join(own)} \\",
        *(f"  {option} \\" for option in srun),
        '  bash -c "$node"',
    ]


def _container(workload: Workload, place: Place, checkpoints: str | None) -> list[str]:
    """Return pyxis' options (srun --help where its plugin is)."""
    if workload.image is None:
        return []
    full = _mounts(workload, place, checkpoints)
    return [
        f"--container-image={shlex.quote(_enroot(workload.image))}",
        *([f"--container-mounts={shlex.quote(','.join(full))}"] if full else []),
        *([f"--container-workdir={workload.chdir}"] if workload.chdir else []),
    ]


def _apptainer(workload: Workload, place: Place, checkpoints: str | None) -> list[str]:
    """Return Apptainer's line before a program (cmd/internal/cli/action_flags.go).

    The environment, /dev with its channels of IMEX, and the user's home folder are there by its
    own defaults; the job's folder on the node's disks, which is its TMPDIR, is not.
    """
    if workload.sif is None:
        return []
    gpus = "--rocm" if place.node.has_gpu_of("amd") else "--nv"
    own = job_scratch(place.node.spec, place.node.cluster)
    full = [*_mounts(workload, place, checkpoints), *([f"{own}:{own}"] if own else [])]
    return [
        f"apptainer exec{f' {gpus}' if place.has_real_gpus else ''}",
        *([f"--bind={shlex.quote(','.join(full))}"] if full else []),
        *([f"--cwd={workload.chdir}"] if workload.chdir else []),
        workload.sif,
    ]


def _mounts(workload: Workload, place: Place, checkpoints: str | None) -> list[str]:
    """Return what a container sees of its node, each as PATH:PATH."""
    named = [*workload.data, *([workload.checkpoint.to] if workload.checkpoint else [])]
    paths = dict.fromkeys(place.mounts[name] for name in named)
    folder = workload.chdir or ""
    is_inside = any(f"{folder}/".startswith(f"{path}/") for path in paths)
    mounts = [
        *([folder] if folder.startswith("/") and not is_inside else []),
        *paths,
        *([f"{PROGRAMS}:{PROGRAMS}:ro"] if checkpoints is not None else []),
        *workload.mounts,
    ]
    return [each if ":" in each.removesuffix(":ro") else f"{each}:{each}" for each in mounts]


def _enroot(image: str) -> str:
    """Return an image as enroot writes it: REGISTRY#IMAGE (enroot import, "docker://")."""
    registry, slash, rest = image.partition("/")
    has_registry = slash and ("." in registry or ":" in registry or registry == "localhost")
    return f"{registry}#{rest}" if has_registry else image
