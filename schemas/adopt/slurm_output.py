"""What `scontrol` and `sacctmgr` print: nodes, partitions and accounts."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

from ..derived.hostlist import HostlistError, expand
from .draft import Draft, duration

Record: TypeAlias = dict[str, str]
_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*(?:\[\d+\])?)=")
"""A key begins a word and is followed by =; TRES lists (cpu=4) are in lower case."""
_CONFIG = re.compile(r"^([A-Za-z][\w.]*(?:\[\d+\])?)\s+= ?(.*)$")
_FREE = re.compile(r"\s(?:Reason|Comment|Extra|OS)=")
"""Values that people or kernels write, with anything in them."""
_NONE = frozenset({"(null)", "N/A", "n/a", "none", "NONE", "None", ""})

_COMMENT = re.compile(r"(?<!\\)#")
"""Begins one in slurm.conf, but after a backslash."""


class SlurmOutput(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    config: Record
    nodes: tuple[Record, ...]
    """One host each."""
    partitions: tuple[Record, ...]
    said: frozenset[str] = frozenset()
    """Keys of `config` that stand in a slurm.conf: scontrol prints defaults too."""


def read_slurm(texts: list[str]) -> SlurmOutput:
    """Read outputs in any order, or slurm.conf; what is none of these is left out."""
    config: Record = {}
    said: set[str] = set()
    nodes: dict[str, Record] = {}
    partitions: dict[str, Record] = {}
    defaults: dict[str, Record] = {"NodeName": {}, "PartitionName": {}}
    for line in (line for text in texts for line in _joined(text)):
        kind = line.partition("=")[0]
        if kind in defaults:
            record = record_of(line)
            name = record.get(kind, "")
            if not name:
                continue
            if name == "DEFAULT":  # of slurm.conf: holds for the lines after it
                defaults[kind] |= record
                continue
            record = {**defaults[kind], **record}
            if kind == "NodeName":
                nodes |= {each[kind]: each for each in _hosts(record)}
            else:
                partitions[name] = record
        elif found := _CONFIG.match(line):
            config[found[1]] = found[2].strip()
        elif len(record := record_of(line)) == 1:
            config |= _numbered(record, config)
            said |= record.keys()
    return SlurmOutput(
        config={key: value for key, value in config.items() if value not in _NONE},
        nodes=tuple(nodes.values()),
        partitions=tuple(partitions.values()),
        said=frozenset(said),
    )


def _numbered(record: Record, before: Record) -> Record:
    """Number controllers as scontrol does: slurm.conf repeats the key, and the first line leads."""
    if "SlurmctldHost" not in record:
        return record
    number = sum(key.startswith("SlurmctldHost[") for key in before)
    return {f"SlurmctldHost[{number}]": record["SlurmctldHost"]}


def record_of(line: str) -> Record:
    """Split "Key=value Key=value" where a key begins; what people wrote freely is left out."""
    plain = _FREE.split(line, maxsplit=1)
    # OS= stands in the middle: what follows its text goes on with a key.
    text = plain[0] if len(plain) == 1 else f"{plain[0]} {_after_free(plain[1])}"
    found = list(_KEY.finditer(text))
    if not found:
        return {}
    ends = [*(each.start() for each in found[1:]), len(text)]
    pairs = (
        (each[1], text[each.end() : end].strip()) for each, end in zip(found, ends, strict=True)
    )
    return {key: value for key, value in pairs if value not in _NONE}


def _after_free(text: str) -> str:
    """Return what follows a kernel's name; after a person's words nothing is trusted."""
    found = re.search(r"\sRealMemory=.*$", text)
    return "" if found is None else _FREE.split(found[0], maxsplit=1)[0]


def _joined(text: str) -> list[str]:
    """Put a record on one line: scontrol indents what goes on, slurm.conf ends with a backslash."""
    lines: list[str] = []
    goes_on = False
    for raw in text.splitlines():
        if not raw.startswith((" ", "NodeName=")):
            line = _COMMENT.split(raw, maxsplit=1)[0].replace("\\#", "#")
        else:
            line = raw
        begins = line.strip()
        if not begins:
            goes_on = False
            continue
        if lines and (goes_on or line[0].isspace()):
            lines[-1] = f"{lines[-1]} {begins}"
        else:
            lines.append(begins)
        goes_on = begins.endswith("\\")
        lines[-1] = lines[-1].removesuffix("\\").strip()
    return lines


def _hosts(record: Record) -> list[Record]:
    """Return a record for each host of a line of slurm.conf; scontrol prints one host each."""
    try:
        names = expand(record["NodeName"])
        addresses = expand(record.get("NodeAddr", "")) if record.get("NodeAddr") else names
    except HostlistError:
        return [record]
    if len(addresses) != len(names):
        addresses = names
    return [
        {**record, "NodeName": name, "NodeAddr": address}
        for name, address in zip(names, addresses, strict=True)
    ]


def write_partitions(output: SlurmOutput, pools: dict[str, list[str]], draft: Draft) -> None:
    """Write the partitions that nodes serve; what the spec has no word for is listed."""
    written: dict[str, Any] = {}
    for partition in output.partitions:
        name = partition["PartitionName"]
        if not pools.get(name):
            draft.leave(f"partition {name}", "no node serves it")
            continue
        entry: dict[str, Any] = {"pools": pools[name]}
        if partition.get("Default") == "YES":
            entry["default"] = True
        for key, field in (("MaxTime", "max_time"), ("DefaultTime", "default_time")):
            limit = partition.get(key, "NONE")
            if seconds := slurm_seconds(limit):
                entry[field] = duration(seconds)
            elif limit not in {"UNLIMITED", "INFINITE", "NONE"}:
                draft.leave(f"partition {name}: {key}={limit}", "it could not be read")
        entry |= _order_and_limits(partition)
        written[draft.fit(name, "partition", written)] = entry
        _leave_partition(partition, draft)
    if written:
        draft.scheduler["partitions"] = written


def _order_and_limits(partition: Record) -> dict[str, Any]:
    """Return what the spec's other words say of a partition."""
    said: dict[str, Any] = {}
    if partition.get("MaxNodes", "").isdecimal():
        said["max_nodes"] = min(int(partition["MaxNodes"]), _size(partition))
    tier = partition.get("PriorityTier", "")
    if tier.isdecimal() and tier != "1":
        said["tier"] = int(tier)
    if partition.get("OverSubscribe") == "EXCLUSIVE":
        said["exclusive"] = True
    if partition.get("Hidden") == "YES":
        said["hidden"] = True
    return said


def _size(partition: Record) -> int:
    """Return how many nodes it has; more than there are is what the spec's checks warn of."""
    total = partition.get("TotalNodes", "")
    return int(total) if total.isdecimal() else 2**31


_PARTITION = frozenset(
    {
        "PartitionName",
        "Nodes",
        "Default",
        "MaxTime",
        "DefaultTime",
        "MaxNodes",
        "PriorityTier",
        "TotalCPUs",
        "TotalNodes",
        "TRES",
    }
)
_USUAL = {
    "AllowGroups": "ALL",
    "AllowAccounts": "ALL",
    "AllowQos": "ALL",
    "AllocNodes": "ALL",
    "State": "UP",
    "MinNodes": "0",
    "LLN": "NO",
    "MaxCPUsPerNode": "UNLIMITED",
    "MaxCPUsPerSocket": "UNLIMITED",
    "PriorityJobFactor": "1",
    "RootOnly": "NO",
    "ReqResv": "NO",
    "OverSubscribe": "NO",
    "OverTimeLimit": "0",
    "PreemptMode": "OFF",
    "DefMemPerNode": "UNLIMITED",
    "MaxMemPerNode": "UNLIMITED",
    "GraceTime": "0",
    "Hidden": "NO",
    "ExclusiveUser": "NO",
    "DisableRootJobs": "NO",
    "ExclusiveTopo": "NO",
    "SuspendTime": "GLOBAL",
    "PowerDownOnIdle": "NO",
    "ResumeTimeout": "GLOBAL",
    "SuspendTimeout": "GLOBAL",
}
"""What a partition says that was set up with nothing; it needs no word."""
_SAID = {"OverSubscribe": "EXCLUSIVE", "Hidden": "YES"}
"""What `exclusive` and `hidden` of the spec say."""


def _leave_partition(partition: Record, draft: Draft) -> None:
    for key, value in partition.items():
        if key not in _PARTITION and value not in {_USUAL.get(key), _SAID.get(key)}:
            where = f"partition {partition['PartitionName']}: {key}={value}"
            why = (
                "accounts and qos of the spec say it"
                if key.startswith("Allow")
                else "no word for it"
            )
            draft.leave(where, why)


def slurm_seconds(text: str) -> int:
    """Read Slurm's time: minutes, minutes:seconds, hours:minutes:seconds, days-hours:..."""
    days, dash, rest = text.partition("-")
    if not dash:
        days, rest = "0", text
    parts = rest.split(":")
    if not days.isdecimal() or not all(part.isdecimal() for part in parts) or len(parts) > 3:  # noqa: PLR2004  # h:m:s
        return 0
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
    elif len(numbers) == 1:
        hours, minutes, seconds = 0, numbers[0], 0
    else:
        hours, minutes, seconds = (0, *numbers)[-3:]
    return int(days) * 86_400 + hours * 3_600 + minutes * 60 + seconds
