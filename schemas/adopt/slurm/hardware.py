"""Nodes that are alike: GPUs, processors, memory and architecture, as Slurm says them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ...catalog import load_catalog
from ..draft import Draft, gpu_machine
from .output import Record

_GPU = re.compile(r"(?:^|,)gpu(?::([A-Za-z][\w.-]*))?:(\d+)")
_MODEL = re.compile(r"(g[bh]\d{3}|gb?\d{3}|[abhlvptmk]\d{1,3}s?|mi\d{3}x?|rtx\w*)(?![a-z0-9])")
_COUNT = re.compile(r"(\d{1,12})([KMGTP]?)", re.IGNORECASE)
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
"""What a number of gres.conf(5) is multiplied by ("Count")."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MEMORY = re.compile(r"(\d+)gb")
_ARCHITECTURES = {
    "aarch64": {"aarch64", "arm64", "arm", "armv8", "armv9", "grace", "neoverse", "altra", "a64fx"},
    "ppc64le": {"ppc64le", "ppc64", "power", "power8", "power9", "power10"},
    "x86_64": {"x86_64", "amd64", "x86", "intel", "amd"},
}
"""Features by which sites distinguish their nodes' processors."""
_GRACE = re.compile(r"^G[BH]\d{3}$")
"""GPUs that come with NVIDIA's Grace, whose cores are ARM's Neoverse V2: GH200, GB200, GB300."""


class Hardware(NamedTuple):
    """What distinguishes nodes."""

    gpu: str
    """Model; "" where Slurm doesn't say it."""
    gpu_memory_gib: int
    """0 where the GRES' name doesn't say it."""
    gpus: int
    sockets: int
    cores: int
    threads: int
    memory_gib: int
    architecture: str
    """As `uname -m` writes it; "" where nothing says it."""
    partitions: tuple[str, ...]
    features: tuple[str, ...]
    weight: int
    gres: tuple[tuple[str, str, int], ...] = ()
    """Name, type and number of the generic resources besides GPUs."""


def hardware_of(node: Record, partitions: tuple[str, ...], gpu: str, draft: Draft) -> Hardware:
    """Return what a node is.

    Args:
        node: its record.
        partitions: that it serves.
        gpu: model of GPUs without a model in the source.
        draft: what can't be said is listed there.
    """
    gres = node.get("Gres", "")
    gpus = [(model or "", int(count)) for model, count in _GPU.findall(gres)]
    if len(gpus) > 1:
        draft.leave(f"node {node['NodeName']}: {gres}", "GPUs of several kinds, or MIG slices")
    others = _others(node["NodeName"], gres, gpus[0][1] if gpus else 0, draft)
    kind, count = gpus[0] if gpus else ("", 0)
    features = tuple(sorted(_features(node)))
    model = _model(kind) or (count and (_of_features(features) or gpu.upper())) or ""
    memory = _MEMORY.search(kind.lower())
    threads = _number(node, "ThreadsPerCore") or 1
    sockets = _number(node, "Sockets") or 1
    cpus = _number(node, "CPUTot") or _number(node, "CPUs") or 1
    cores = _number(node, "CoresPerSocket") or max(1, cpus // (sockets * threads))
    return Hardware(
        gpu=model,
        gpu_memory_gib=int(memory[1]) if memory else 0,
        gpus=count,
        sockets=sockets,
        cores=cores,
        threads=threads,
        memory_gib=(_number(node, "RealMemory") or 0) // 1024,
        architecture=_architecture(node.get("Arch", ""), model, features),
        partitions=partitions,
        features=features,
        weight=_number(node, "Weight") or 1,
        gres=others,
    )


def _others(node: str, written: str, gpus: int, draft: Draft) -> tuple[tuple[str, str, int], ...]:
    """Return the generic resources besides GPUs; those that a pool can't have are listed.

    Args:
        node: its name.
        written: "gpu:h100:8(S:0-1),shard:32(S:0-1),bandwidth:lustre:no_consume:4G".
        gpus: that the node has.
        draft: what can't be said is listed there.
    """
    found: dict[str, tuple[str, str, int]] = {}
    for each in re.sub(r"\([^)]*\)", "", written).split(","):
        name, *rest = each.strip().split(":")
        if name in {"", "gpu", "(null)"}:
            continue
        match = _COUNT.fullmatch(rest.pop()) if rest else None
        number = int(match[1]) * _FACTORS[match[2].upper()] if match else 0
        why = ""
        if not number or name in found or len(rest) > 1 or "no_consume" in rest:
            why = "gres of a pool has a number, of one type, which jobs use up"
        elif name in {"shard", "mps"} and (rest or not gpus or number % gpus):
            why = "shares of GPUs are equal here on all GPUs of a node"
        elif _NAME.fullmatch(name) is None:
            why = "its name isn't lower-case letters, digits and _"
        if why:
            draft.leave(f"node {node}: {each}", why)
        else:
            found[name] = name, rest[0] if rest else "", number
    return tuple(sorted(found.values()))


def machine_of(hardware: Hardware, cpu: dict[str, int], pool: str, draft: Draft) -> str:
    """Return the machine type of a pool: of the catalog by its GPUs, else one of its own."""
    if hardware.gpus:
        known = gpu_machine(hardware.gpu, hardware.gpus, "bare-metal")
        built_for = hardware.architecture
        if known is not None and built_for in {"", known.cpu.architecture}:
            return known.name
    architecture = hardware.architecture or "x86_64"
    if not hardware.architecture:
        why = "not in slurm.conf, x86_64 is written: aarch64 in machines.yaml where it is ARM"
        draft.leave(f"pool {pool}: architecture", why, "guess")
    facts: dict[str, Any] = {"cpu": {"architecture": architecture, **cpu}}
    if hardware.memory_gib:
        facts["memory_gib"] = hardware.memory_gib
    if hardware.gpus:
        facts["gpu"] = _gpu(hardware, pool, draft)
    else:
        facts["gpu"] = None
    return draft.machine(f"{draft.name}-{pool}", ["bare-metal"], **facts)


def _gpu(hardware: Hardware, pool: str, draft: Draft) -> dict[str, Any]:
    """Return the GPUs of a machine type; what isn't known is missing there, and listed."""
    gpu: dict[str, Any] = {}
    if hardware.gpu:
        gpu = {"vendor": "amd" if hardware.gpu.startswith("MI") else "nvidia"}
        gpu["model"] = hardware.gpu
    memories = {
        machine.gpu.memory_gib
        for machine in load_catalog().machines.values()
        if machine.gpu is not None and machine.gpu.model == hardware.gpu
    }
    memory = hardware.gpu_memory_gib or (memories.pop() if len(memories) == 1 else 0)
    if memory:
        gpu["memory_gib"] = memory
    gpu["count"] = hardware.gpus
    missing = [key for key in ("vendor", "model", "memory_gib") if key not in gpu]
    if missing:
        what = f"{hardware.gpus} x {hardware.gpu or 'GPU'}"
        why = f"write {', '.join(missing)} of its GPUs in machines.yaml"
        if not hardware.gpu:
            why += ", or give --gpu MODEL"
        draft.leave(f"pool {pool}: {what}", why, "unfinished")
    return gpu


def _features(node: Record) -> set[str]:
    said = node.get("ActiveFeatures", node.get("Features", node.get("Feature", "")))
    return {each for each in said.split(",") if each}


def _of_features(features: tuple[str, ...]) -> str:
    """Return the one GPU model among a node's features; "" where there is none, or several."""
    models = {each for feature in features for each in [_model(feature)] if _is_gpu(each)}
    return models.pop() if len(models) == 1 else ""


def _is_gpu(model: str) -> bool:
    return any(
        machine.gpu is not None and machine.gpu.model == model
        for machine in load_catalog().machines.values()
    )


def _number(node: Record, key: str) -> int:
    value = node.get(key, "")
    return int(value) if value.isdecimal() else 0


def _model(name: str) -> str:
    """Return a GPU's model as vendors write it, from a GRES type: nvidia_h100_80gb_hbm3."""
    found = _MODEL.search(name.lower().replace("_", " "))
    return found[1].replace(" ", "").upper() if found else name.upper()


def _architecture(said: str, gpu: str, features: tuple[str, ...]) -> str:
    """Return what nodes are built for: as slurmd says, else by their GPUs and features."""
    if said:
        return "aarch64" if said == "arm64" else said
    if _GRACE.match(gpu):
        return "aarch64"
    words = {feature.lower() for feature in features}
    found = {name for name, marks in _ARCHITECTURES.items() if words & marks}
    return found.pop() if len(found) == 1 else ""
