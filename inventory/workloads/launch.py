"""What each node or process of a workload runs: the launch lines of the frameworks."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from ...schemas.spec import (
    AccelerateWorkload,
    CommandWorkload,
    JaxWorkload,
    MpiWorkload,
    RayWorkload,
    TorchrunElasticWorkload,
    TorchtitanWorkload,
    TorchWorkload,
    Workload,
)
from .options import framework_options
from .place import Place

_BUS_OF = {
    "nvidia": """\
bus=$(nvidia-smi --id="$LOCAL_RANK" --query-gpu=pci.bus_id --format=csv,noheader) || bus=
bus=$(printf %s "${bus#0000}" | tr A-F a-f)
""",
    # As ROCm numbers GPUs: in the order of the kernel's nodes of them (amdkfd/kfd_topology.c).
    "amd": """\
bus=$(for kfd in $(ls -v /sys/class/kfd/kfd/topology/nodes); do
  awk '{ has[$1] = $2 } END { if (has["simd_count"] > 0) {
    at = has["location_id"]
    printf "%04x:%02x:%02x.%d\\n", has["domain"], at / 256, at % 256 / 8, at % 8 } }' \\
    "/sys/class/kfd/kfd/topology/nodes/$kfd/properties"
done | sed -n "$((LOCAL_RANK + 1))p")
""",
}
"""Lines that find a worker's GPU on PCI, by its maker."""


def near_gpu(place: Place) -> list[str]:
    """Return the lines that make the program which binds a worker near its GPU."""
    vendor = "amd" if place.node.has_gpu_of("amd") else "nvidia"
    order = "" if vendor == "amd" else " CUDA_DEVICE_ORDER=PCI_BUS_ID"
    return [
        "# Each worker runs on the cores next to its GPU, by the kernel's list for its PCI device.",
        "near_gpu=$(cat <<'EOF'",
        *_BUS_OF[vendor].splitlines(),
        "list=/sys/bus/pci/devices/$bus/local_cpulist",
        '[ ! -r "$list" ] || taskset --all-tasks --cpu-list --pid "$(cat "$list")" $$ >/dev/null',
        'exec "$@"',
        "EOF",
        ")",
        f"export near_gpu{order}",
    ]


def is_one_per_node(workload: Workload) -> bool:
    """Whether a program on each node starts its processes: torchrun, accelerate, Ray."""
    return isinstance(workload, TorchWorkload | RayWorkload)


def binds_near_gpus(workload: Workload | TorchWorkload, place: Place) -> bool:
    """Whether workers are bound to the cores next to their GPUs: unless all are of one socket."""
    cpu = place.node.machine.cpu if place.node.machine is not None else None
    several = cpu is None or cpu.sockets != 1
    whole = place.has_real_gpus and place.processes == place.gpus
    return isinstance(workload, TorchWorkload) and whole and several


_RAY_HEAD_S = 300
"""Until the head of a Ray cluster must answer."""


class Rendezvous(NamedTuple):
    """How processes find each other, which the scheduler decides."""

    setup: tuple[str, ...]
    """Lines before torchrun."""
    options: tuple[str, ...]
    """Of torchrun."""
    node: str
    """Number of this node, from 0, as bash takes it."""
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
    node='"$SLURM_NODEID"',
    ranks=("export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS",),
)


def node_program(
    workload: Workload,
    place: Place,
    checkpoints: str | None,
    rendezvous: Rendezvous = UNDER_SLURM,
) -> list[str]:
    """Return the lines that each node, or each process that srun starts, runs.

    Args:
        workload: what to start.
        place: where it runs.
        checkpoints: folder of its checkpoints; None: it has none.
        rendezvous: how its processes find each other.
    """
    if isinstance(workload, AccelerateWorkload):
        return _accelerate(workload, place, rendezvous)
    if isinstance(workload, TorchWorkload):
        return _torchrun(workload, place, checkpoints, rendezvous)
    if isinstance(workload, RayWorkload):
        return _ray(workload, place, rendezvous)
    if isinstance(workload, JaxWorkload):
        return _jax(workload, place)
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


def _program(workload: TorchWorkload | JaxWorkload | RayWorkload) -> list[str]:
    """Return the program and its arguments as words of bash."""
    return [shlex.quote(each) for each in (workload.script, *workload.arguments)]


def _torchrun(
    workload: TorchWorkload, place: Place, checkpoints: str | None, rendezvous: Rendezvous
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
    words = [*_program(workload), *framework_options(workload, checkpoints)]
    is_module = isinstance(workload, TorchtitanWorkload)
    if binds_near_gpus(workload, place):
        options += ["--no-python", 'bash -c "$near_gpu" near_gpu python3 -u']
    options += ["-m"] if is_module else []
    return [*rendezvous.setup, "exec torchrun \\", *_continued([*options, *words])]


def _accelerate(workload: AccelerateWorkload, place: Place, rendezvous: Rendezvous) -> list[str]:
    """Return accelerate's line, as its examples/slurm has it but for the rendezvous.

    There it is c10d, which gives workers the first node's name; that may be in no DNS. The static
    one gives them --main_process_ip, and takes each node's number.
    """
    processes = place.nodes * place.processes
    options = [
        *([f"--config_file={shlex.quote(workload.config)}"] if workload.config else []),
        # Without it accelerate starts one process where it sees one GPU or none.
        *(["--multi_gpu"] if workload.config is None and processes > 1 else []),
        f"--num_processes={processes}",
        f"--num_machines={place.nodes}",
        f"--machine_rank={rendezvous.node}",
        "--rdzv_backend=static",
        "--same_network",
        '--main_process_ip="$MASTER_ADDR"',
        '--main_process_port="$MASTER_PORT"',
    ]
    if binds_near_gpus(workload, place):
        options += ["--no_python", 'bash -c "$near_gpu" near_gpu python3 -u']
    return ["exec accelerate launch \\", *_continued([*options, *_program(workload)])]


def _jax(workload: JaxWorkload, place: Place) -> list[str]:
    """Return what a process of JAX runs.

    `jax.distributed.initialize()` reads number and count of processes from Slurm's variables, and
    takes for a process the GPU of its number on the node. The coordinator's address is given, for
    by itself JAX takes the first node's name, which may be in no DNS.
    """
    each = place.gpus // place.processes if place.has_real_gpus else 0
    devices = [
        f"first=$((SLURM_LOCALID * {each}))",
        f'JAX_LOCAL_DEVICE_IDS="$(seq -s, "$first" "$((first + {each - 1}))")"',
        "export JAX_LOCAL_DEVICE_IDS",
    ]
    return [
        "# As jax.distributed.initialize() reads it; the rest it takes from Slurm's variables.",
        'export JAX_COORDINATOR_ADDRESS="$MASTER_ADDR:$MASTER_PORT"',
        *(devices if each > 1 else []),
        "exec python3 -u \\",
        *_continued(_program(workload)),
    ]


def _ray(workload: RayWorkload, place: Place, rendezvous: Rendezvous) -> list[str]:
    """Return what a node of a Ray cluster runs: the head and the program, or a worker.

    `ray start --block` ends the node's Ray processes when it gets SIGTERM; `ray stop` would end
    those of another job of the same user too. Sources: ray, doc/source/cluster/doc_code/
    slurm-basic.sh, which starts the same in a step for each node, and python/ray/_private/node.py.
    """
    cpus = place.cpus * place.processes
    sizes = [
        f"--num-cpus={cpus}" if cpus else '--num-cpus="${SLURM_CPUS_ON_NODE:-1}"',
        f"--num-gpus={place.gpus if place.has_real_gpus else 0}",
        "--disable-usage-stats",
        "--block",
    ]
    return [
        *rendezvous.setup,
        'reached() { (: <"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null; }',
        "# However this ends, Ray ends first: without their parent its processes may be unknown.",
        "end_ray() {",
        '  [ -z "${ray:-}" ] || { kill -TERM "$ray" && wait "$ray"; } 2>/dev/null || true',
        "}",
        "trap end_ray EXIT",
        "trap 'exit 143' TERM",
        'if [ "$is_host" = true ]; then',
        '  ray start --head --node-ip-address="$MASTER_ADDR" --port="$MASTER_PORT" \\',
        f"    --include-dashboard=false {' '.join(sizes)} &",
        "  ray=$!",
        '  until reached; do kill -0 "$ray" || exit 1; sleep 1; done',
        '  export RAY_ADDRESS="$MASTER_ADDR:$MASTER_PORT"',
        "  code=0",
        f"  python3 -u {' '.join(_program(workload))} || code=$?",
        '  exit "$code"',
        "fi",
        "# A worker: it joins when the head answers, and ends when that does no more; Ray itself",
        "# would look for the head for another minute.",
        f"for _ in $(seq {_RAY_HEAD_S}); do",
        "  reached && break",
        "  sleep 1",
        "done",
        'ray start --address="$MASTER_ADDR:$MASTER_PORT" --node-ip-address="$address" \\',
        f"  {' '.join(sizes)} &",
        "ray=$!",
        "while reached; do",
        '  kill -0 "$ray" 2>/dev/null || exit 1',
        "  sleep 2",
        "done",
    ]


def _continued(words: list[str]) -> list[str]:
    """Return one word a line, each but the last continued."""
    return [f"  {word} \\" for word in words[:-1]] + [f"  {words[-1]}"]
