"""A Slurm cluster's partitions, as the spec writes them."""

from __future__ import annotations

from typing import Any

from .draft import Draft, duration
from .slurm_output import Record, SlurmOutput


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
        limit = partition.get("MaxTime", "UNLIMITED")
        if limit not in {"UNLIMITED", "INFINITE"}:
            seconds = slurm_seconds(limit)
            if seconds:
                entry["max_time"] = duration(seconds)
            else:
                draft.leave(f"partition {name}: MaxTime={limit}", "it could not be read")
        if partition.get("MaxNodes", "").isdecimal():
            entry["max_nodes"] = min(int(partition["MaxNodes"]), _size(partition))
        if partition.get("PriorityTier", "1").isdecimal() and partition.get("PriorityTier") != "1":
            entry |= {"tier": int(partition["PriorityTier"])} if "PriorityTier" in partition else {}
        written[draft.fit(name, "partition", written)] = entry
        _leave_partition(partition, draft)
    if written:
        draft.scheduler["partitions"] = written


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


def _leave_partition(partition: Record, draft: Draft) -> None:
    for key, value in partition.items():
        if key not in _PARTITION and _USUAL.get(key) != value:
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
