"""What each node or process of a workload runs: the launch lines of the frameworks."""

from __future__ import annotations

import shlex
from typing import NamedTuple, TypeAlias

from ...schemas.spec import (
    CommandWorkload,
    DeepspeedWorkload,
    MegatronWorkload,
    MpiWorkload,
    TorchrunElasticWorkload,
    TorchrunWorkload,
    TorchWorkload,
    Workload,
)
from .place import Place

NEAR_GPU = """\
# Each worker runs on the cores next to its GPU, which the kernel lists for the GPU's PCI device.
near_gpu=$(cat <<'EOF'
bus=$(nvidia-smi --id="$LOCAL_RANK" --query-gpu=pci.bus_id --format=csv,noheader) || bus=
list=/sys/bus/pci/devices/$(printf %s "${bus#0000}" | tr A-F a-f)/local_cpulist
[ ! -r "$list" ] || taskset --all-tasks --cpu-list --pid "$(cat "$list")" $$ >/dev/null
exec "$@"
EOF
)
export near_gpu CUDA_DEVICE_ORDER=PCI_BUS_ID
"""


_Torch: TypeAlias = (
    TorchrunWorkload | TorchrunElasticWorkload | DeepspeedWorkload | MegatronWorkload
)


def is_torch(workload: Workload) -> bool:
    """Whether torchrun starts its processes, one torchrun a node."""
    return isinstance(workload, TorchWorkload)


def binds_near_gpus(workload: Workload, place: Place) -> bool:
    """Whether workers are bound to the cores next to their GPUs (several sockets, NVIDIA)."""
    cpu = place.node.machine.cpu if place.node.machine is not None else None
    several = cpu is not None and (cpu.sockets or 1) > 1
    whole = place.has_real_gpus and place.processes == place.gpus
    return is_torch(workload) and whole and several and place.node.has_gpu_of("nvidia")


class Rendezvous(NamedTuple):
    """How processes find each other, which the scheduler decides."""

    setup: tuple[str, ...]
    """Lines before torchrun."""
    options: tuple[str, ...]
    """Of torchrun."""
    ranks: tuple[str, ...]
    """Lines that set RANK, LOCAL_RANK and WORLD_SIZE of a process that no torchrun starts."""


UNDER_SLURM = Rendezvous(
    setup=(
        "# This node's address as the others reach it: names of nodes may be in no DNS.",
        "address=$(python3 -c 'import os, socket",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        's.connect((os.environ["MASTER_ADDR"], 9))',
        "print(s.getsockname()[0])')",
        '[ "$address" = "$MASTER_ADDR" ] && is_host=true || is_host=false',
    ),
    options=(
        '--rdzv-id="$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}.$attempt"',
        "--rdzv-backend=c10d",
        '--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"',
        '--rdzv-conf="is_host=$is_host"',
        '--local-addr="$address"',
    ),
    ranks=("export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS",),
)


def node_program(
    workload: Workload,
    place: Place,
    checkpoints: str | None,
    rendezvous: Rendezvous = UNDER_SLURM,
) -> list[str]:
    """Return the lines that each node, or each process without torchrun, runs; the last by exec.

    Args:
        workload: what to start.
        place: where it runs.
        checkpoints: folder of its checkpoints; None: it has none.
        rendezvous: how its processes find each other.
    """
    if isinstance(workload, TorchWorkload):
        return _torchrun(workload, place, checkpoints, rendezvous)
    command = shlex.join(_command(workload))
    if isinstance(workload, MpiWorkload):
        return [f"exec {command}"]
    return [
        "# As torch.distributed reads them (init_method env://).",
        *rendezvous.ranks,
        f"exec {command}",
    ]


def _command(workload: Workload) -> list[str]:
    assert isinstance(workload, CommandWorkload | MpiWorkload)  # noqa: S101  # for mypy
    return workload.command


def _torchrun(
    workload: _Torch, place: Place, checkpoints: str | None, rendezvous: Rendezvous
) -> list[str]:
    nodes, restarts = str(place.nodes), 0
    if isinstance(workload, TorchrunElasticWorkload):
        restarts = workload.worker_restarts
    if workload.fewest_nodes is not None:
        nodes = '"$GCLUSTER_NODES"'  # of this attempt
    options = [
        f"--nnodes={nodes}",
        f"--nproc-per-node={place.processes}",
        f"--max-restarts={restarts}",
        *rendezvous.options,
    ]
    words = [shlex.quote(workload.script), *map(shlex.quote, workload.arguments)]
    words += _framework_options(workload, checkpoints)
    if binds_near_gpus(workload, place):
        options += ["--no-python", 'bash -c "$near_gpu" near_gpu python3 -u']
    return [*rendezvous.setup, "exec torchrun \\", *_continued([*options, *words])]


def _framework_options(workload: TorchWorkload, checkpoints: str | None) -> list[str]:
    """Return what the framework's own programs take, as their help spells it."""
    if isinstance(workload, DeepspeedWorkload):
        return ["--deepspeed", f"--deepspeed_config={shlex.quote(workload.config)}"]
    if not isinstance(workload, MegatronWorkload):
        return []
    sizes = workload.parallel
    own = [
        f"--tensor-model-parallel-size={sizes.tensor}",
        f"--pipeline-model-parallel-size={sizes.pipeline}",
        f"--context-parallel-size={sizes.context}",
        f"--expert-model-parallel-size={sizes.expert}",
        f"--micro-batch-size={sizes.micro_batch}",
        f"--global-batch-size={sizes.global_batch}",
    ]
    if checkpoints is not None:
        own += ['--save="$GCLUSTER_CHECKPOINTS"', '--load="$GCLUSTER_CHECKPOINTS"']
    return own


def _continued(words: list[str]) -> list[str]:
    """Return one word a line, each but the last continued."""
    return [f"  {word} \\" for word in words[:-1]] + [f"  {words[-1]}"]
