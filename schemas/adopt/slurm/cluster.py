"""A spec from the configuration of a running Slurm."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ...derived.hostlist import HostlistError, expand, fold
from ..draft import Adopted, Draft, NothingToAdopt
from .hardware import Hardware, hardware_of, machine_of
from .output import Record, SlurmOutput
from .partition import USUAL, partition_words
from .settings import carry_settings

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
    "PreemptType": (frozenset({"preempt/none"}), "preempts of the spec's qos"),
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
"""Key -> values that need no word, and what to do about others."""
_READ_ELSEWHERE = frozenset({"ClusterName", "SlurmctldHost", "ControlMachine", "ControlAddr"})


_ITS_OWN = "of that installation: gcluster's has its own paths, ports, programs and times"
_LONGEST_LIST = 2000


def leave_settings(output: SlurmOutput, carried: set[str], draft: Draft) -> None:
    """List the settings that are set, and that the draft doesn't carry."""
    printed = []
    for key, value in output.config.items():
        if key in carried or key.partition("[")[0] in _READ_ELSEWHERE:
            draft.carry(1)
            continue
        plain, why = _SETTINGS.get(key.partition("[")[0], (None, ""))
        if plain is not None:
            if value not in plain:
                draft.leave(f"{key}={value}", why, settings=1)
        elif key in output.said:
            draft.leave(f"{key}={value}", _ITS_OWN, "replaced", settings=1)
        else:
            printed.append(f"{key}={value}")
    if printed:
        text = ", ".join(printed)
        draft.leave(
            f"settings that scontrol prints, set or not: {text[:_LONGEST_LIST]}",
            _ITS_OWN,
            "replaced",
        )


SITE = "here"
_HEAD = "head"
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
_KNOWN = _CARRIED | _OBSERVED


def adopt_slurm(  # what the command was given
    output: SlurmOutput, *, name: str, user: str, origin: str, date: str, gpu: str = ""
) -> Adopted:
    """Draft a spec of a cluster by what Slurm says of it.

    Args:
        output: what scontrol prints, or slurm.conf.
        name: of the cluster; "": as Slurm has it.
        user: whom gcluster logs in to the nodes as.
        origin: where it comes from, in words.
        date: when it was read.
        gpu: model of the GPUs whose model Slurm doesn't say.

    Raises:
        NothingToAdopt: no nodes, or no controller, are in the output.
    """
    if not output.nodes:
        raise NothingToAdopt("it has no node: scontrol show nodes")
    draft = Draft(name or output.config.get("ClusterName", "cluster"), origin=origin, date=date)
    draft.sites[SITE] = {"provider": "bare-metal", "ssh": {"user": user}}
    why = f"Slurm doesn't know it: {user} is written"
    draft.leave("how nodes are reached by SSH", why, "guess")
    controllers = _controllers(output, draft)
    pools = _pools(output, controllers, gpu, draft)
    _partitions(output, pools, draft)
    leave_settings(output, carry_settings(output, draft), draft)
    draft.leave("/home and other storage", "Slurm doesn't know it: write storage before `up`")
    draft.leave("login nodes and users", "Slurm doesn't know them: write them yourself")
    return draft.finished()


def _controllers(output: SlurmOutput, draft: Draft) -> list[str]:
    """Make the pool of the first controller; return the hosts of all, it first."""
    keys = [key for key in output.config if re.match(r"SlurmctldHost(\[\d+\])?$", key)]
    found = [_CONTROLLER.match(output.config[key]) for key in sorted(keys)]
    hosts = [(each[1], each[2] or "") for each in found if each is not None]
    if not hosts and "ControlMachine" in output.config:  # until Slurm 18.08
        hosts = [(output.config["ControlMachine"], output.config.get("ControlAddr", ""))]
    if not hosts:
        raise NothingToAdopt("it has no SlurmctldHost: scontrol show config")
    draft.pools[_HEAD] = {"site": SITE, "role": "controller", "hosts": [_entry(*hosts[0])]}
    for name, _ in hosts[1:]:
        draft.leave(
            f"backup controller {name}", "it needs storage that controllers share: state_save"
        )
    return [name for name, _ in hosts]


def _entry(name: str, address: str) -> Any:
    return name if address in {"", name} else {"name": name, "address": address}


def _pools(
    output: SlurmOutput, controllers: list[str], gpu: str, draft: Draft
) -> dict[str, list[str]]:
    """Make a pool of nodes that are alike, and have a controller that is a node compute.

    Returns:
        Partition -> its pools.
    """
    alike: dict[tuple[Hardware, bool], list[Record]] = defaultdict(list)
    of_partition = _memberships(output)
    for node in output.nodes:
        name = node["NodeName"]
        if name in controllers[1:]:
            draft.leave(f"node {name}", "it is a backup controller, and runs no jobs here")
        else:
            hardware = hardware_of(node, of_partition.get(name, ()), gpu, draft)
            alike[hardware, name == controllers[0]].append(node)
    pools: dict[str, list[str]] = defaultdict(list)
    for (hardware, is_controller), nodes in alike.items():
        if hardware.architecture not in {"x86_64", "aarch64", ""}:
            draft.leave(
                f"nodes {fold([node['NodeName'] for node in nodes])}",
                f"they are {hardware.architecture}, for which gcluster has no software: left out",
                settings=_settings_of(nodes),
            )
            continue
        if is_controller:
            pool, head = _HEAD, draft.pools[_HEAD]
            written = _pool(hardware, nodes, pool, draft)
            own = nodes[0].get("NodeAddr", "") not in {"", nodes[0]["NodeName"]}
            hosts = written["hosts"] if own else head["hosts"]
            draft.pools[pool] = {**head, "compute": True, **written, "hosts": hosts}
        else:
            pool = draft.fit(_pool_name(hardware, nodes), "pool", draft.pools)
            draft.pools[pool] = _pool(hardware, nodes, pool, draft)
        for partition in hardware.partitions:
            pools[partition].append(pool)
        if not hardware.partitions:
            draft.leave(f"pool {pool}", "its nodes serve no partition")
        left = sorted({(k, v) for node in nodes for k, v in node.items() if k not in _KNOWN})
        for key, value in left:
            draft.leave(f"pool {pool}: {key}={value}", "the spec has no word for it")
        lost = len({key for key, _ in left})
        draft.carry(_settings_of(nodes) - lost)
        draft.leave_count("lost", lost)
    return pools


def _settings_of(nodes: list[Record]) -> int:
    """Return how many settings nodes that are alike have together: each key once."""
    return len({key for node in nodes for key in node} - _OBSERVED)


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


def _pool_name(hardware: Hardware, nodes: list[Record]) -> str:
    if len(hardware.partitions) == 1:
        return hardware.partitions[0]
    return re.split(r"[\d.]", nodes[0]["NodeName"], maxsplit=1)[0].rstrip("-_") or "nodes"


def _pool(hardware: Hardware, nodes: list[Record], pool: str, draft: Draft) -> dict[str, Any]:
    cpu = {
        "sockets": hardware.sockets,
        "cores": hardware.cores,
        "threads_per_core": hardware.threads,
    }
    machine = machine_of(hardware, cpu, pool, draft)
    written: dict[str, Any] = {"site": SITE, "machine": machine, "hosts": _hosts(nodes), "cpu": cpu}
    if hardware.memory_gib:
        written["memory"] = f"{hardware.memory_gib} GiB"
    if hardware.features:
        written["features"] = list(hardware.features)
    if hardware.weight > 1:
        written["weight"] = hardware.weight
    if hardware.gres:
        written["gres"] = {
            name: {"count": count} | ({"type": kind} if kind else {})
            for name, kind, count in hardware.gres
        }
    return written


def _partitions(output: SlurmOutput, pools: dict[str, list[str]], draft: Draft) -> None:
    """Write the partitions that nodes serve; what the spec has no word for is listed."""
    written: dict[str, Any] = {}
    for partition in output.partitions:
        name = partition["PartitionName"]
        if not pools.get(name):
            draft.leave(f"partition {name}", "no node serves it", settings=len(partition))
            continue
        entry: dict[str, Any] = {"pools": pools[name]}
        if partition.get("Default") == "YES":
            entry["default"] = True
        said, left = partition_words(partition)
        written[draft.fit(name, "partition", written)] = entry | said
        for key, why in left.items():
            draft.leave(f"partition {name}: {key}={partition[key]}", why, settings=1)
        unset = sum(partition.get(key) == value for key, value in USUAL.items())
        draft.carry(len(partition) - len(left) - unset)
    if written:
        draft.scheduler["partitions"] = written


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
