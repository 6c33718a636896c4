"""Settings of a running Slurm that the spec says by their names, and what becomes of the others."""

from __future__ import annotations

import re

from ...stack.slurm_settings import settings_of_files
from ..draft import Draft
from .output import SlurmOutput

_DEFAULTS = {
    "CompleteWait": {"0 sec", "0"},
    "DefMemPerCPU": set(),
    "DefMemPerNode": {"UNLIMITED"},
    "DisableRootJobs": {"No", "NO"},
    "EnforcePartLimits": {"NO"},
    "FairShareDampeningFactor": {"1"},
    "InactiveLimit": {"0 sec", "0"},
    "JobFileAppend": {"0"},
    "KillOnBadExit": {"0"},
    "KillWait": {"30 sec", "30"},
    "LaunchParameters": set(),
    "MaxArraySize": {"1001"},
    "MaxJobCount": {"10000"},
    "MaxMemPerCPU": set(),
    "MaxMemPerNode": {"UNLIMITED"},
    "MaxStepCount": {"40000"},
    "MaxTasksPerNode": {"512"},
    "MessageTimeout": {"10 sec", "10"},
    "MinJobAge": {"300 sec", "300"},
    "OverTimeLimit": {"0 min", "0"},
    "PriorityCalcPeriod": {"00:05:00"},
    "PriorityDecayHalfLife": {"7-00:00:00"},
    "PriorityFavorSmall": {"No", "NO"},
    "PriorityFlags": set(),
    "PriorityUsageResetPeriod": {"NONE"},
    "SchedulerParameters": set(),
    "ReturnToService": {"0"},
    "SchedulerTimeSlice": {"30 sec", "30"},
    "SlurmctldTimeout": {"120 sec", "120"},
    "TCPTimeout": {"2 sec", "2"},
    "TaskPluginParam": {"(null type)"},
    "TrackWCKey": {"No", "NO"},
    "UnkillableStepTimeout": {"60 sec", "60"},
    "VSizeFactor": {"0 percent", "0"},
    "WaitTime": {"0 sec", "0"},
}
"""What `scontrol show config` prints of settings that are not in slurm.conf (slurm.conf(5), 24.05).
For settings that are not listed here it is unknown whether they were set."""
_OF_THE_HOST = re.compile(
    r"(LogFile|PidFile|Port|User|Dir|Addr|Program|Prog|Epilog|Prolog|Host|Machine|Plugstack|Name)$"
)
"""Settings of one installation: paths, programs and ports, which gcluster's own has otherwise."""
_UNIT = re.compile(r"^(-?\d+) (?:sec|min|percent|bytes|KB|MB)$")
_WEIGHTS = {
    "PriorityWeightAge": "age",
    "PriorityWeightFairShare": "fairshare",
    "PriorityWeightFairshare": "fairshare",
    "PriorityWeightJobSize": "job_size",
    "PriorityWeightPartition": "partition",
    "PriorityWeightQOS": "qos",
}


_JOB_DEFAULT = re.compile(r"(DefCpuPerGPU|DefMemPerGPU)=(\d+)", re.IGNORECASE)
"""How scontrol prints two settings of slurm.conf, as JobDefaults."""


def carry_settings(output: SlurmOutput, draft: Draft) -> set[str]:
    """Write weights of priorities and settings of slurm.conf; return the keys that are carried."""
    weights = {
        _WEIGHTS[key]: int(value)
        for key, value in output.config.items()
        if key in _WEIGHTS and value.isdecimal()
    }
    carried = {key for key in output.config if key in _WEIGHTS}
    if "multifactor" in output.config.get("PriorityType", "") and any(weights.values()):
        draft.scheduler["priority"] = weights
        carried.add("PriorityType")
    for key, value in output.config.items():
        name = _settable(key)
        if key == "JobDefaults":
            for each in _JOB_DEFAULT.finditer(value):
                carry_named(each[1], each[2], draft)
                carried.add(key)
        elif name is None or _OF_THE_HOST.search(name) or key in carried:
            continue
        elif key in output.said or value not in _DEFAULTS.get(name, {value}):
            carry_named(key, value, draft)
            carried.add(key)
    return carried


def carry_named(key: str, value: str, draft: Draft) -> str:
    """Write one setting of slurm.conf into `scheduler.settings`.

    Returns:
        "", or why it can't be.
    """
    known = settings_of_files()["slurm"]
    name = _settable(key)
    if name is None:
        said = next(
            (by for each, by in known.written.items() if each.casefold() == key.casefold()), None
        )
        if said is None:
            return "no release of Slurm has a setting of this name"
        return f"{said} of the spec" if said else "gcluster sets it itself"
    if _OF_THE_HOST.search(name):
        return "paths, programs and ports are gcluster's own"
    found = _UNIT.match(value)
    settings = draft.scheduler.setdefault("settings", {}).setdefault("slurm", {})
    settings[name] = found[1] if found else value
    return ""


def _settable(key: str) -> str | None:
    """Return a setting's name as slurm.conf(5) writes it; None where the spec can't set it."""
    known = settings_of_files()["slurm"]
    closed = {*known.written, *known.secret}
    names = {name.casefold(): name for name in known.all_names if name not in closed}
    return names.get(key.casefold())
