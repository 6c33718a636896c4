"""slurm.conf's node lines: processors, memory, and GPUs with their cores and links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from ....schemas.catalog import Catalog, Machine
from ....schemas.catalog.model.machine import Cpu
from ....schemas.derived.hostlist import host_order
from ....schemas.spec import ClusterSpec, Pool, SlurmScheduler
from ....schemas.spec.pool import Gres
from ...hosts import Host
from ..steps import Json

MEMORY_SHARE = 0.95
"""Share of a machine's nominal memory that jobs may use. Kernel and firmware keep 1.5-3 % (a 2 TiB
node reports about 2,014 GiB), and Slurm drains a node that reports less than its RealMemory. AWS
ParallelCluster takes the same share (aws-samples/aws-eda-slurm-cluster#283, 2024-11)."""

MIB_PER_GIB = 1024
SMT_THREADS = 2
"""Threads of a core where a cloud's vCPU is a thread, as on all x86 machines of the catalog."""

GPU_FILES = {"nvidia": "/dev/nvidia", "amd": "/dev/gcluster/amd-gpu"}
"""GPU vendor -> stem of the device files, from 0: as the driver names them, or role amd_gpu in PCI
order (the kernel's renderD128 may be another device's)."""
GPU_FLAGS = {"nvidia": "nvidia_gpu_env", "amd": "amd_gpu_env"}
"""GPU vendor -> Flags of gres.conf(5): without them Slurm sets all vendors' variables, and ROCm
counts by CUDA's what it has hidden by its own."""


def machine_of(spec: ClusterSpec, pool: str, catalog: Catalog) -> Machine:
    """Return the machine type of a pool, with the pool's own overrides."""
    pool_spec = spec.pools[pool]
    if pool_spec.machine is None:
        raise ValueError(f"compute pool {pool!r} names no machine: check the spec first")
    machine = catalog.machines[pool_spec.machine]
    if pool_spec.cpu is not None:
        architecture = machine.cpu.architecture
        shape = msgspec.structs.asdict(pool_spec.cpu)
        sockets = shape.pop("gpus")
        machine = msgspec.structs.replace(machine, cpu=Cpu(architecture=architecture, **shape))
        if machine.gpu is not None:
            # The catalog's sockets are those of its own processors.
            gpu = msgspec.structs.replace(machine.gpu, sockets=sockets)
            machine = msgspec.structs.replace(machine, gpu=gpu)
    if not pool_spec.boot.smt:
        machine = msgspec.structs.replace(machine, cpu=_cores_alone(machine.cpu))
    if pool_spec.memory is not None:
        machine = msgspec.structs.replace(machine, memory_gib=pool_spec.memory.value / 2**30)
    return machine


def _cores_alone(cpu: Cpu) -> Cpu:
    """Return processors of which one thread of each core works.

    Where a cloud only gives vCPUs, two of them are a core unless it states otherwise.
    """
    unsaid = SMT_THREADS if cpu.vcpus and cpu.architecture == "x86_64" else 1
    threads = cpu.threads_per_core or unsaid
    vcpus = None if cpu.vcpus is None else max(1, cpu.vcpus // threads)
    return msgspec.structs.replace(cpu, threads_per_core=1, vcpus=vcpus)


def node_lines(hosts: Sequence[Host], shape: dict[str, Json]) -> list[Json]:
    """Return the node lines of one pool: one for each run of names and addresses."""
    pairs = ((host.name, host.address or host.name) for host in hosts)
    return [
        {"names": names, "addresses": addresses, **shape}
        for names, addresses in folded_pairs(pairs)
    ]


def node_shape(machine: Machine, name: str, pool: Pool, reserved_mib: int) -> dict[str, Json]:
    """Return the common fields of a pool's node lines.

    What the catalog lacks of a machine is 0 and left out of slurm.conf. The first feature is the
    pool: prologs and folders of jobs are found by it.
    """
    cpu = machine.cpu
    alike: dict[str, Json] = {
        "boards": 1,
        "sockets": (cpu.sockets or 0) if cpu else 0,
        "cores": (cpu.cores or 0) if cpu else 0,
        "threads": (cpu.threads_per_core or 0) if cpu else 0,
        "memory_mib": memory_mib(machine, reserved_mib),
        "gpu_type": "",
        "gpu_count": gpu_count(machine),
        "gpu_files": "",
        "features": [name, *(each for each in pool.features if each != name)],
    }
    if cpu and not cpu.sockets:
        alike["cpus"] = cpu.threads
    if machine.gpu:
        alike["gpu_type"] = machine.gpu.model.lower()
        alike["gpu_files"] = gpu_files(machine.gpu.vendor, machine.gpu.count)
        alike["gpu_flags"] = GPU_FLAGS[machine.gpu.vendor]
        if devices := gpu_devices(machine):
            alike["gpu_devices"] = devices
    if pool.is_sliced:
        alike |= slice_fields(machine, pool.gpus.mig_slices)
    if pool.gres:
        alike["gres"] = [gres_fields(gres, pool.gres[gres]) for gres in sorted(pool.gres)]
    if pool.weight is not None:
        alike["weight"] = pool.weight
    return alike


PLUGINS = frozenset({"mps", "shard", "nic"})
"""Generic resources besides gpu that Slurm has a plugin for (gres.conf(5), "Name")."""


def gres_fields(name: str, gres: Gres) -> dict[str, Json]:
    """Return one generic resource of a node line.

    What has neither a plugin nor files is counted alone (CountOnly): else Slurm would look for a
    plugin of that name at every start.
    """
    flags: list[Json] = [*gres.flags]
    if gres.files is None and name not in PLUGINS:
        flags.append("CountOnly")
    return {
        "name": name,
        "type": gres.type or "",
        "count": gres.number,
        "files": gres.files or "",
        "cores": gres.cores or "",
        "flags": flags,
    }


SLICES = "/dev/gcluster/mig"
"""Links to the device files of slices, as roles/nvidia_driver/files/libexec/mig-slices.py makes
them: the driver gives out the files' own numbers on the node."""


def slice_fields(machine: Machine, slices: Mapping[str, int]) -> dict[str, Json]:
    """Return what differs on the node lines of GPUs that are cut into MIG slices.

    A slice is its GPU's device file and those of its two instances (MultipleFiles, gres.conf(5));
    its type is the profile. AutoDetect=nvml would find them by itself, but takes a slurmd that was
    built with NVML, and no nodes that come and go (gres.conf(5)). No links: slices have no NVLink.

    Args:
        machine: with GPUs.
        slices: profile -> slices of one GPU.
    """
    gpus = gpu_count(machine)
    cores = _cores_of_gpus(machine)
    lines: list[Json] = []
    ordered = profiles_by_size(slices)
    before = 0
    for profile in ordered:
        for gpu in range(gpus):
            for place in range(before, before + slices[profile]):
                stem = f"{SLICES}/gpu{gpu}-{place}"
                files = f"{GPU_FILES['nvidia']}{gpu},{stem}-instance,{stem}-compute"
                line: dict[str, Json] = {"type": profile, "files": files}
                if cores:
                    line["cores"] = cores[gpu]
                lines.append(line)
        before += slices[profile]
    return {
        "gpu_type": "",
        "gpu_files": "",
        "gpu_count": gpus * sum(slices.values()),
        "gpu_slices": [{"type": profile, "count": gpus * slices[profile]} for profile in ordered],
        "gpu_devices": lines,
    }


def profiles_by_size(slices: Iterable[str]) -> list[str]:
    """Return MIG profiles, the largest first: the order of a GPU's places on its node."""

    def size(profile: str) -> tuple[int, int]:
        share, memory = profile.removesuffix("gb").split("g.")
        return int(share), int(memory)

    return sorted(slices, key=size, reverse=True)


def _cores_of_gpus(machine: Machine) -> list[str]:
    """Return the cores near each GPU, as ranges of Slurm's numbers; [] where they aren't known."""
    gpu, cpu = machine.gpu, machine.cpu
    if gpu is None or not (cpu.sockets and cpu.cores):
        return []
    sockets = gpu.sockets if gpu.sockets and len(gpu.sockets) == gpu.count else []
    return [f"{socket * cpu.cores}-{(socket + 1) * cpu.cores - 1}" for socket in sockets]


def gpu_files(vendor: str, count: int, skip: int = 0) -> str:
    """Return the device files of GPUs as a range, from the one after the first `skip`."""
    stem, first = GPU_FILES[vendor], skip
    return f"{stem}{first}" if count == 1 else f"{stem}[{first}-{first + count - 1}]"


def gpu_devices(machine: Machine) -> list[Json]:
    """Return the lines of gres.conf for a machine's GPUs; [] where all of them are equal.

    A line has `files`, the `cores` near them (as a range of Slurm's own numbers, socket by socket)
    and `links`, the NVLinks to each GPU of the node, -1 at its own place. GPUs with links have a
    line each: they differ in that place.
    """
    gpu = machine.gpu
    if gpu is None:
        return []
    cores = _cores_of_gpus(machine)
    peer_links = machine.nvlink.peer_links if machine.nvlink and gpu.count > 1 else None
    if not cores and peer_links is None:
        return []
    lines: list[Json] = []
    for first, count in _runs(cores or [""] * gpu.count, one_by_one=peer_links is not None):
        line: dict[str, Json] = {"files": gpu_files(gpu.vendor, count, first)}
        if cores:
            line["cores"] = cores[first]
        if peer_links is not None:
            numbers = (-1 if i == first else peer_links for i in range(gpu.count))
            line["links"] = ",".join(map(str, numbers))
        lines.append(line)
    return lines


def _runs(cores: list[str], *, one_by_one: bool) -> Iterator[tuple[int, int]]:
    """Yield the first GPU and the number of each run of neighbours near the same cores."""
    first = 0
    for end in range(1, len(cores) + 1):
        if one_by_one or end == len(cores) or cores[end] != cores[first]:
            yield first, end - first
            first = end


def mem_per_cpu_mib(machine: Machine, reserved_mib: int) -> int:
    """Return a CPU's share of the memory that jobs may use; 0: not in the catalog."""
    if not machine.cpu.threads:
        return 0
    return memory_mib(machine, reserved_mib) // machine.cpu.threads


def cpus_per_gpu(machine: Machine, pool: Pool) -> int:
    """Return a GPU's share of the CPUs, or a slice's; 0: no GPU, or not in the catalog.

    A node may have more slices than CPUs: each gets one then.
    """
    if machine.gpu is None:
        return 0
    least = min(1, machine.cpu.threads) if pool.is_sliced else 0
    return max(least, machine.cpu.threads // (machine.gpu.count * pool.slices_per_gpu))


def memory_mib(machine: Machine, reserved_mib: int) -> int:
    """Return the memory that jobs may use: the machine's without what is reserved, at most 95 %."""
    nominal = (machine.memory_gib or 0) * MIB_PER_GIB
    return max(0, int(min(nominal * MEMORY_SHARE, nominal - reserved_mib)))


def gpu_count(machine: Machine | None) -> int:
    """Return the GPUs of a machine, 0 for none."""
    return machine.gpu.count if machine and machine.gpu else 0


def reserved_memory_mib(spec: ClusterSpec) -> int:
    """Return the memory of each node that the spec keeps from jobs, in MiB."""
    slurm = spec.scheduler
    reserved = slurm.memory_reserved if isinstance(slurm, SlurmScheduler) else None
    return 0 if reserved is None else int(reserved.value / 2**20)


_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
"""Letters, then the number a range can run over; more digits than that are no count."""

_Parts: TypeAlias = tuple[str, str]


def folded_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Fold (name, address) pairs into pairs of ranges that expand to them, pair by pair.

    Slurm takes the addresses of a node line in the order of its names. Hosts whose names differ
    only in the number at their end, and likewise their addresses, share a line: 1,000 hosts in
    four /24 networks take four. Whatever has no number at its end has a line of its own. Lines
    and hosts come in host order.

    Returns:
        (name range, address range), such as ("gpu[001-064]", "10.0.1.[1-64]").
    """
    lines: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for name, address in sorted(pairs, key=lambda pair: host_order(pair[0])):
        stem, number = _parts(name)
        address_stem, address_number = _parts(address)
        if not (number and address_number):
            stem, number, address_stem, address_number = name, "", address, ""
        numbers = lines.setdefault((stem, address_stem), ([], []))
        numbers[0].append(number)
        numbers[1].append(address_number)
    return [
        (_range(stem, names), _range(address_stem, addresses))
        for (stem, address_stem), (names, addresses) in lines.items()
    ]


def _parts(text: str) -> _Parts:
    """Split "gpu001" into ("gpu", "001"); IPv6 numbers are hexadecimal and stay whole."""
    match = None if ":" in text else _NUMBERED.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


def _range(stem: str, numbers: list[str]) -> str:
    """Write numbers behind their stem, runs as first-last, in the order given."""
    if len(numbers) == 1:
        return stem + numbers[0]
    runs: list[tuple[str, str]] = []
    for number in numbers:
        if runs and number == str(int(runs[-1][1]) + 1).zfill(len(runs[-1][0])):
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return f"{stem}[{','.join(a if a == b else f'{a}-{b}' for a, b in runs)}]"
