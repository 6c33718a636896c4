"""Settings of a running Slurm that the spec says by their names, and what becomes of the others."""

from __future__ import annotations

import re

from ..stack.slurm_settings import settings_of_files
from .draft import Draft
from .slurm_output import SlurmOutput

_DEFAULTS = {
    "CompleteWait": {"0 sec", "0"},
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
    "MaxStepCount": {"40000"},
    "MaxTasksPerNode": {"512"},
    "MinJobAge": {"300 sec", "300"},
    "OverTimeLimit": {"0 min", "0"},
    "PriorityCalcPeriod": {"00:05:00"},
    "PriorityDecayHalfLife": {"7-00:00:00"},
    "PriorityFavorSmall": {"No", "NO"},
    "PriorityFlags": set(),
    "PriorityUsageResetPeriod": {"NONE"},
    "SchedulerParameters": set(),
    "SchedulerTimeSlice": {"30 sec", "30"},
    "TaskPluginParam": {"(null type)"},
    "TrackWCKey": {"No", "NO"},
    "VSizeFactor": {"0 percent", "0"},
}
"""What `scontrol show config` prints of settings that nobody set (slurm.conf(5), 24.05). Of those
that are not here it can't be seen whether anybody did."""
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
    known = settings_of_files()["slurm"]
    closed = {*known.written, *known.secret}
    names = {name.casefold(): name for name in known.all_names if name not in closed}
    settings = {}
    for key, value in output.config.items():
        name = names.get(key.casefold())
        if name is None or _OF_THE_HOST.search(name) or key in carried:
            continue
        if key in output.said or value not in _DEFAULTS.get(name, {value}):
            found = _UNIT.match(value)
            settings[name] = found[1] if found else value
            carried.add(key)
    if settings:
        draft.scheduler["settings"] = {"slurm": settings}
    return carried
