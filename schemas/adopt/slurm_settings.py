"""Settings of a Slurm cluster that its spec says otherwise, or doesn't say: each is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .slurm_output import Record

if TYPE_CHECKING:
    from .draft import Draft

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
    "LaunchParameters": (frozenset(), "the spec has no word for it"),
    "SelectType": (frozenset({"select/cons_tres"}), "gcluster uses select/cons_tres"),
    "SchedulerParameters": (frozenset(), "the spec has no word for it"),
    "SchedulerType": (frozenset({"sched/backfill"}), "gcluster uses sched/backfill"),
    "Licenses": (frozenset(), "the spec has no word for it"),
    "MpiDefault": (frozenset({"pmix", "none"}), "gcluster uses PMIx"),
    "FederationParameters": (frozenset(), "the spec has no word for it"),
    "X11Parameters": (frozenset(), "the spec has no word for it"),
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


def leave_settings(config: Record, draft: Draft) -> None:
    """List the settings that are set, and that the draft doesn't carry."""
    for key, value in config.items():
        plain, why = _SETTINGS.get(key.partition("[")[0], (None, ""))
        if plain is not None and value not in plain:
            draft.leave(f"{key}={value}", why)
