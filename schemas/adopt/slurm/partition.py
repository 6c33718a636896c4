"""What Slurm says of a partition, in the spec's words."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from ..draft import duration

Record: TypeAlias = dict[str, str]
_SAID_ELSEWHERE = frozenset(
    {"PartitionName", "Nodes", "Default", "TotalCPUs", "TotalNodes", "TRES", "MaxNodes"}
)
"""What the caller writes, what Slurm counts itself."""
USUAL = {
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
    "PriorityTier": "1",
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
_UNLIMITED = frozenset({"UNLIMITED", "INFINITE", "NONE"})
_TIMES = (("MaxTime", "max_time"), ("DefaultTime", "default_time"))
_MEMORY = {
    "DefMemPerCPU": "memory_per_cpu", "DefMemPerGPU": "memory_per_gpu",
    "DefMemPerNode": "memory_per_node",
}  # fmt: skip
"""Slurm writes these in MiB (slurm.conf(5)); of several the first is written."""
_WHY = {
    "AllowAccounts": "accounts of the partition, once accounts of the scheduler has them",
    "AllowQos": "qos of the partition, once qos of the scheduler has them",
    "QOS": "qos of the scheduler has such limits",
    "QoS": "qos of the scheduler has such limits",
    "State": "gcluster drain holds nodes back, not partitions",
    "PreemptMode": "preempts of a QOS",
    "GraceTime": "grace of a QOS",
    "SuspendTime": "suspend_after is the whole scheduler's",
    "ResumeTimeout": "resume_timeout is the whole scheduler's",
}


def partition_words(partition: Record) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the spec says of a partition, and key -> why it can't be said."""
    said, left = _times(partition)
    if partition.get("MaxNodes", "").isdecimal():
        said["max_nodes"] = min(int(partition["MaxNodes"]), _size(partition))
    tier = partition.get("PriorityTier", "1")
    if tier.isdecimal() and tier != "1":
        said["tier"] = int(tier)
    if partition.get("OverSubscribe", "").upper() == "EXCLUSIVE":
        said["exclusive"] = True
    if partition.get("Hidden", "").upper() == "YES":
        said["hidden"] = True
    for key, field in _MEMORY.items():
        if partition.get(key, "").isdecimal() and not said.keys() & set(_MEMORY.values()):
            said[field] = f"{partition[key]} MiB"
    words = {"OverSubscribe": "exclusive", "Hidden": "hidden", "PriorityTier": "tier", **_MEMORY}
    for key, value in partition.items():
        if key in _SAID_ELSEWHERE or key in dict(_TIMES) or words.get(key) in said:
            continue
        if value.upper() != USUAL.get(key, "").upper():
            left[key] = _WHY.get(key, "no word for it")
    return said, left


def _times(partition: Record) -> tuple[dict[str, Any], dict[str, str]]:
    said: dict[str, Any] = {}
    left: dict[str, str] = {}
    for key, field in _TIMES:
        limit = partition.get(key, "NONE")
        if seconds := slurm_seconds(limit):
            said[field] = duration(seconds)
        elif limit.upper() not in _UNLIMITED:
            left[key] = "it could not be read"
    return said, left


def _size(partition: Record) -> int:
    """Return how many nodes it has; more than there are is what the spec's checks warn of."""
    total = partition.get("TotalNodes", "")
    return int(total) if total.isdecimal() else 2**31


def slurm_seconds(text: str) -> int:
    """Read Slurm's time: minutes, minutes:seconds, hours:minutes:seconds, days-hours:..."""
    days, dash, rest = text.partition("-")
    if not dash:
        days, rest = "0", text
    parts = rest.split(":")
    if not re.fullmatch(r"\d+", days) or len(parts) > 3:  # noqa: PLR2004  # h:m:s
        return 0
    if not all(re.fullmatch(r"\d+", part) for part in parts):
        return 0
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
    elif len(numbers) == 1:
        hours, minutes, seconds = 0, numbers[0], 0
    else:
        hours, minutes, seconds = (0, *numbers)[-3:]
    return int(days) * 86_400 + hours * 3_600 + minutes * 60 + seconds
