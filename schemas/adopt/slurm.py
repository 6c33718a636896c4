"""A spec from the configuration of a running Slurm."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..derived.hostlist import HostlistError, expand, fold
from .draft import Adopted, Draft, NothingToAdopt, gpu_machine
from .slurm_output import Record, SlurmOutput, write_partitions
from .slurm_settings import carry_settings

_SETTINGS: dict[str, tuple[frozenset[str], str]] = {
    "AccountingStorageType": (
        frozenset({"accounting_storage/none"}),
        "accounts, qos and users in slurmdbd: sacctmgr show account, qos; write accounts and qos",
    ),
    "AccountingStorageEnforce": (frozenset({"none"}), "accounting and qos of the spec set it"),
    "TopologyPlugin": (
        frozenset({"topology/default", "topology/none", "topology/flat"}),
        "blocks and leaves of hosts: block and leaf of the spec's hosts, scontrol show topology",
    ),
    "PreemptType": (frozenset({"preempt/none"}), "preempts of the spec's qos says it"),
    "PriorityType": (frozenset({"priority/basic"}), "priority of the scheduler weighs its factors"),
    "SuspendProgram": (frozenset(), "elastic pools of the spec come and go by gcluster's own"),
    "ResumeProgram": (frozenset(), "elastic pools of the spec come and go by gcluster's own"),
    "HealthCheckProgram": (frozenset(), "gcluster's own looks at nodes"),
    "JobSubmitPlugins": (frozenset(), "job_rules of the spec; gcluster's own plugin otherwise"),
    "JobCompType": (frozenset({"jobcomp/none"}), "the spec has no word for it"),
    "SelectType": (frozenset({"select/cons_tres"}), "gcluster uses select/cons_tres"),
    "SchedulerType": (frozenset({"sched/backfill"}), "gcluster uses sched/backfill"),
    "Licenses": (
        frozenset(),
        "gcluster writes its own; there is no word for yours",
    ),
    "MpiDefault": (frozenset({"pmix", "none"}), "gcluster uses PMIx"),
    "FederationParameters": (frozenset(), "the spec has no word for it"),
    "Epilog": (frozenset(), "your script does not run on gcluster's nodes"),
    "Prolog": (frozenset(), "your script does not run on gcluster's nodes"),
    "EpilogSlurmctld": (frozenset(), "your script does not run on gcluster's controller"),
    "PrologSlurmctld": (frozenset(), "your script does not run on gcluster's controller"),
    "TaskProlog": (frozenset(), "your script does not run on gcluster's nodes"),
    "TaskEpilog": (frozenset(), "your script does not run on gcluster's nodes"),
    "StateSaveLocation": (
        frozenset({"/var/spool/slurmctld", "/var/lib/slurm/slurmctld", "/var/spool"}),
        "state_save of the spec; gcluster backup saves the queue",
    ),
    "SlurmUser": (
        frozenset({"slurm(64030)", "slurm"}),
        "the user of the distribution's package",
    ),
    "SLURM_VERSION": (frozenset(), "software.slurm holds a version; default: the distribution's"),
    "AuthType": (frozenset({"auth/munge"}), "gcluster uses MUNGE"),
}
"""Key -> values that need no word, and what to do about others. Keys that are not here are limits
and times of Slurm's own that gcluster sets itself; docs/adopt.md says so."""


def leave_settings(config: Record, carried: set[str], draft: Draft) -> None:
    """List the settings that are set, and that the draft doesn't carry."""
    for key, value in config.items():
        if key in carried:
            continue
        plain, why = _SETTINGS.get(key.partition("[")[0], (None, ""))
        if plain is not None and value not in plain:
            draft.leave(f"{key}={value}", why)


SITE = "here"
_GPU = re.compile(r"(?:^|,)gpu(?::([A-Za-z][\w.-]*))?:(\d+)")
_CONTROLLER = re.compile(r"^([^\s(]+)(?:\(([^)]+)\))?")
_CARRIED = frozenset(
    {
        "NodeName",
        "NodeAddr",
        "NodeHostName",
        "Partitions",
        "Gres",
        "CPUTot",
        "CPUs",
        "Sockets",
        "CoresPerSocket",
        "ThreadsPerCore",
        "RealMemory",
        "Arch",
        "ActiveFeatures",
        "Features",
        "Feature",
        "Weight",
    }
)
_OBSERVED = frozenset(
    {
        "CPUAlloc",
        "CPUEfctv",
        "CPULoad",
        "CPUErr",
        "AvailableFeatures",
        "Version",
        "AllocMem",
        "FreeMem",
        "Boards",
        "State",
        "TmpDisk",
        "BootTime",
        "SlurmdStartTime",
        "LastBusyTime",
        "CfgTRES",
        "AllocTRES",
        "CurrentWatts",
        "AveWatts",
        "ResumeAfterTime",
        "GresUsed",
        "GresDrain",
        "CapWatts",
        "ExtSensorsJoules",
        "ExtSensorsWatts",
        "ExtSensorsTemp",
        "LowestJoules",
        "ConsumedJoules",
        "KeepAliveTime",
        "Owner",
        "MCS_label",
        "Port",
        "SocketsPerBoard",
    }
)
"""What a node is at the moment, or what Slurm derives itself."""


class _Hardware(NamedTuple):
    """What tells nodes apart."""

    gpu: str
    gpus: int
    sockets: int
    cores: int
    threads: int
    memory_gib: int
    architecture: str
    partitions: tuple[str, ...]
    features: tuple[str, ...]
    weight: int


def adopt_slurm(output: SlurmOutput, *, name: str, user: str, origin: str, date: str) -> Adopted:
    """Draft a spec of a cluster by what Slurm says of it.

    Raises:
        NothingToAdopt: no nodes, or no controller, stand in the output.
    """
    if not output.nodes:
        raise NothingToAdopt("no node stands in it: scontrol show nodes")
    draft = Draft(name or output.config.get("ClusterName", "cluster"), origin=origin, date=date)
    draft.sites[SITE] = {"provider": "bare-metal", "ssh": {"user": user}}
    draft.leave("how nodes are reached by SSH", f"Slurm doesn't know it: {user} is a guess")
    controllers = _controllers(output, draft)
    pools = _pools(output, controllers, draft)
    write_partitions(output, pools, draft)
    leave_settings(output.config, carry_settings(output, draft), draft)
    draft.leave("login nodes, users, storage", "Slurm doesn't know them: write them yourself")
    return draft.finished()


def _controllers(output: SlurmOutput, draft: Draft) -> set[str]:
    """Make the pool of the controllers; return their hosts."""
    keys = [key for key in output.config if re.match(r"SlurmctldHost(\[\d+\])?$", key)]
    found = [_CONTROLLER.match(output.config[key]) for key in sorted(keys)]
    hosts = [(each[1], each[2] or "") for each in found if each is not None]
    if not hosts and "ControlMachine" in output.config:  # until Slurm 18.08
        hosts = [(output.config["ControlMachine"], output.config.get("ControlAddr", ""))]
    if not hosts:
        raise NothingToAdopt("no SlurmctldHost stands in it: scontrol show config")
    draft.pools["head"] = {"site": SITE, "role": "controller", "hosts": [_entry(*hosts[0])]}
    for name, _ in hosts[1:]:
        draft.leave(
            f"backup controller {name}", "it needs storage that controllers share: state_save"
        )
    return {name for name, _ in hosts}


def _entry(name: str, address: str) -> Any:
    return name if address in {"", name} else {"name": name, "address": address}


def _pools(output: SlurmOutput, controllers: set[str], draft: Draft) -> dict[str, list[str]]:
    """Make a pool of nodes that are alike; return partition -> its pools."""
    alike: dict[_Hardware, list[Record]] = defaultdict(list)
    of_partition = _memberships(output)
    for node in output.nodes:
        name = node["NodeName"]
        if name in controllers:
            draft.leave(f"node {name}", "it is a controller, and runs no jobs under gcluster")
        else:
            alike[_hardware(node, of_partition.get(name, ()), draft)].append(node)
    pools: dict[str, list[str]] = defaultdict(list)
    for hardware, nodes in alike.items():
        pool = draft.fit(_pool_name(hardware, nodes), "pool", draft.pools)
        draft.pools[pool] = _pool(hardware, nodes, pool, draft)
        for partition in hardware.partitions:
            pools[partition].append(pool)
        if not hardware.partitions:
            draft.leave(f"pool {pool}", "its nodes serve no partition")
        for key in sorted({k for node in nodes for k in node} - _CARRIED - _OBSERVED):
            draft.leave(f"pool {pool}: {key}", "the spec has no word for it")
    return pools


def _memberships(output: SlurmOutput) -> dict[str, tuple[str, ...]]:
    """Return node -> its partitions, by the nodes' own word, else by the partitions'."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in output.nodes:
        found[node["NodeName"]] += [p for p in node.get("Partitions", "").split(",") if p]
    for partition in output.partitions:
        named = partition.get("Nodes", "")
        try:
            hosts = list(found) if named == "ALL" else expand(named) if named else []
        except HostlistError:
            hosts = []
        for host in hosts:
            if host in found and partition["PartitionName"] not in found[host]:
                found[host].append(partition["PartitionName"])
    return {host: tuple(sorted(names)) for host, names in found.items()}


def _hardware(node: Record, partitions: tuple[str, ...], draft: Draft) -> _Hardware:
    gres = node.get("Gres", "")
    gpus = [(model or "", int(count)) for model, count in _GPU.findall(gres)]
    if len(gpus) > 1:
        draft.leave(f"node {node['NodeName']}: {gres}", "GPUs of several kinds, or MIG slices")
    others = [each for each in gres.split(",") if each and not each.startswith("gpu")]
    if others:
        draft.leave(f"node {node['NodeName']}: {', '.join(others)}", "resources besides GPUs")
    model, count = gpus[0] if gpus else ("", 0)
    threads = _number(node, "ThreadsPerCore") or 1
    sockets = _number(node, "Sockets") or 1
    cpus = _number(node, "CPUTot") or _number(node, "CPUs") or 1
    cores = _number(node, "CoresPerSocket") or max(1, cpus // (sockets * threads))
    return _Hardware(
        gpu=_model(model),
        gpus=count,
        sockets=sockets,
        cores=cores,
        threads=threads,
        memory_gib=(_number(node, "RealMemory") or 0) // 1024,
        architecture=node.get("Arch", "x86_64"),
        partitions=partitions,
        features=tuple(sorted(_features(node))),
        weight=_number(node, "Weight") or 1,
    )


def _features(node: Record) -> set[str]:
    said = node.get("ActiveFeatures", node.get("Features", node.get("Feature", "")))
    return {each for each in said.split(",") if each}


def _number(node: Record, key: str) -> int:
    value = node.get(key, "")
    return int(value) if value.isdecimal() else 0


def _model(name: str) -> str:
    """Return a GPU's model as vendors write it, from a GRES type: nvidia_h100_80gb_hbm3."""
    found = re.search(
        r"(gb?\d{3}|[abhlvptm]\d{1,3}|mi\d{3}x?|rtx\w*)(?![a-z0-9])", name.lower().replace("_", " ")
    )
    return found[1].replace(" ", "").upper() if found else name.upper()


def _pool_name(hardware: _Hardware, nodes: list[Record]) -> str:
    if len(hardware.partitions) == 1:
        return hardware.partitions[0]
    return re.split(r"[\d.]", nodes[0]["NodeName"], maxsplit=1)[0].rstrip("-_") or "nodes"


def _pool(hardware: _Hardware, nodes: list[Record], pool: str, draft: Draft) -> dict[str, Any]:
    known = gpu_machine(hardware.gpu, hardware.gpus, "bare-metal") if hardware.gpus else None
    cpu = {
        "sockets": hardware.sockets,
        "cores": hardware.cores,
        "threads_per_core": hardware.threads,
    }
    if known is not None:
        machine = known.name
    else:
        facts: dict[str, Any] = {
            "cpu": {"architecture": _architecture(hardware.architecture), **cpu},
        }
        if hardware.memory_gib:
            facts["memory_gib"] = hardware.memory_gib
        if hardware.gpus:
            what = f"{hardware.gpus} x {hardware.gpu or 'GPU'}"
            draft.leave(f"pool {pool}: {what}", "no machine type of the catalog has these")
        machine = draft.machine(f"{draft.name}-{pool}", ["bare-metal"], **facts)
    written: dict[str, Any] = {"site": SITE, "machine": machine, "hosts": _hosts(nodes), "cpu": cpu}
    if hardware.memory_gib:
        written["memory"] = f"{hardware.memory_gib} GiB"
    if hardware.features:
        written["features"] = list(hardware.features)
    if hardware.weight > 1:
        written["weight"] = hardware.weight
    return written


def _architecture(name: str) -> str:
    return "aarch64" if name in {"aarch64", "arm64"} else "x86_64"


def _hosts(nodes: Iterable[Record]) -> Any:
    """Write hosts as ranges, with their addresses where these are not their names."""
    listed = list(nodes)
    names = [node["NodeName"] for node in listed]
    addresses = [node.get("NodeAddr") or node["NodeName"] for node in listed]
    if addresses == names:
        return fold(names)
    name, address = fold(names), fold(addresses)
    if expand(name) == names and expand(address) == addresses and "," not in f"{name}{address}":
        return [{"name": name, "address": address}]
    return [_entry(*each) for each in zip(names, addresses, strict=True)]
