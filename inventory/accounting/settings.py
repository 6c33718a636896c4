"""How `sacctmgr` writes what a record holds: keys, values, and the same in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .records import PARENT_SHARE, Association, QosRecord

GPU = "gres/gpu"
"""The trackable resource that quotas count; slurm.conf names it in AccountingStorageTRES."""


class Setting(NamedTuple):
    """One key of a record."""

    key: str
    value: str
    """As sacctmgr takes it; what it takes to clear it is a value too."""
    words: str
    """Such as: at most 256 GPUs."""


def qos_settings(one: QosRecord) -> Iterator[Setting]:
    """Yield all settings of a QOS, also those at their defaults."""
    yield Setting("priority", str(one.priority), f"priority {one.priority:,}")
    gives = " and ".join(one.preempts) or "nobody"
    yield Setting("preempt", ",".join(one.preempts), f"preempts {gives}")
    yield Setting("preemptmode", one.preempt_mode, f"preempted: {one.preempt_mode}")
    yield Setting("gracetime", str(one.grace_s), f"grace {one.grace_s:,} s")
    yield _gpus("grptres", one.gpu_limit, "together")
    yield _gpus("maxtresperuser", one.gpu_limit_per_user, "a user")
    yield _limit("maxwall", one.max_time_min, "minutes")
    yield _limit("maxjobsperuser", one.max_jobs_per_user, "jobs of a user")


def association_settings(one: Association) -> Iterator[Setting]:
    """Yield all settings of an account or a member, also those at their defaults."""
    if not one.user:
        yield Setting("parent", one.parent, f"part of {one.parent}")
    share = "parent" if one.share == PARENT_SHARE else str(one.share)
    yield Setting("fairshare", share, f"share {share}")
    yield _gpus("grptres", one.gpu_quota, "together")
    yield Setting("qos", ",".join(one.qos), f"QOS {', '.join(one.qos) or 'as its account'}")
    yield Setting(
        "defaultqos", one.default_qos or "-1", f"by default {one.default_qos or 'as its account'}"
    )


def differing(before: Iterable[Setting], after: Iterable[Setting]) -> tuple[Setting, ...]:
    """Return the settings that change: slurmdbd fails where one has that value already."""
    had = {setting.key: setting.value for setting in before}
    return tuple(setting for setting in after if had.get(setting.key) != setting.value)


def _gpus(key: str, limit: int | None, whose: str) -> Setting:
    if limit is None:
        return Setting(key, f"{GPU}=-1", f"any number of GPUs {whose}")
    return Setting(key, f"{GPU}={limit}", f"at most {limit:,} GPUs {whose}")


def _limit(key: str, limit: int | None, unit: str) -> Setting:
    if limit is None:
        return Setting(key, "-1", f"any number of {unit}")
    return Setting(key, str(limit), f"at most {limit:,} {unit}")
