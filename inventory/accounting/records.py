"""Content of Slurm's accounting database: QOS, accounts, users and their limits.

Only what gcluster sets is here; limits of other kinds, set by hand, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

PreemptMode: TypeAlias = Literal["cluster", "requeue", "cancel"]
"""cluster: as slurm.conf has it; the jobs of a QOS that none may preempt are never preempted."""

ROOT = "root"
"""The account that all others are part of, and the one user that it has from the start."""
NORMAL = "normal"
"""The QOS that a new database has; jobs without another one get it."""
SMOKE_QOS = "gcluster-smoke"
"""The QOS of the AllReduce that a cluster must pass, for root's account alone: no limit of a spec's
QOS keeps the job waiting, whatever "normal" allows."""
SMOKE_USER, SMOKE_UID = "nobody", 65534
"""The user of those jobs: the unprivileged user that every distribution has under this number
(Debian base-passwd; systemd, UIDS-GIDS), and that owns no files."""
SMOKE_MEMBER = str(SMOKE_UID)
"""Its name in the accounting database. Since 25.11 Slurm takes "nobody" for a reserved user 99 and
finds no association of it; the number of a user that the system has is taken as it is
(SchedMD/slurm src/common/uid.c, uid_from_string, at slurm-24-11-7-1 and slurm-25-11-7-1)."""
PARENT_SHARE = 0x7FFFFFFF
"""Share of an association that counts as its parent does: `fairshare=parent`."""


class QosRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A quality of service. None: no limit."""

    name: str
    priority: int = 0
    preempts: tuple[str, ...] = ()
    """QOS whose jobs give way to these, sorted."""
    preempt_mode: PreemptMode = "cluster"
    grace_s: int = 0
    """Seconds that a job gets before it gives way."""
    gpu_limit: int | None = None
    """GPUs of all its jobs together (GrpTRES)."""
    gpu_limit_per_user: int | None = None
    """GPUs of one user's jobs together (MaxTRESPerUser)."""
    max_time_min: int | None = None
    """Longest run time of a job in minutes (MaxWall)."""
    max_jobs_per_user: int | None = None


class AssociationKey(NamedTuple):
    """What names an association: an account, or a user in an account."""

    account: str
    user: str
    """"": the account itself."""
    partition: str
    """Only where an association of a single partition was created by hand; else ""."""


class Association(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An account, or a user in an account, with its share and limits."""

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    """Account that an account is part of; "" for users and for root."""
    share: int = 1
    """Fair share among its siblings; PARENT_SHARE: counts as its parent does."""
    gpu_quota: int | None = None
    """GPUs of all its jobs together (GrpTRES); None: no limit."""
    qos: tuple[str, ...] = ()
    """QOS that its jobs may request, sorted; (): its parent's."""
    default_qos: str = ""
    """For jobs that request none; "": its parent's."""

    @property
    def key(self) -> AssociationKey:
        """What names it."""
        return AssociationKey(self.account, self.user, self.partition)


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """The database as far as one cluster goes; tuples are sorted by name."""

    qos: tuple[QosRecord, ...] = ()
    associations: tuple[Association, ...] = ()
    default_accounts: tuple[tuple[str, str], ...] = ()
    """(user, account that jobs which name none are charged to)."""

    @property
    def accounts(self) -> dict[str, Association]:
        """Account -> its own association, root's included."""
        return {a.account: a for a in self.associations if not a.user and not a.partition}

    @property
    def members(self) -> dict[AssociationKey, Association]:
        """Associations of users."""
        return {a.key: a for a in self.associations if a.user}

    @property
    def qos_by_name(self) -> dict[str, QosRecord]:
        """Name -> QOS."""
        return {one.name: one for one in self.qos}


def accounting(
    qos: dict[str, QosRecord],
    associations: dict[AssociationKey, Association],
    default_accounts: dict[str, str],
) -> Accounting:
    """Return the records in their one order, so that equal content is equal."""
    return Accounting(
        qos=tuple(qos[name] for name in sorted(qos)),
        associations=tuple(associations[key] for key in sorted(associations)),
        default_accounts=tuple(sorted(default_accounts.items())),
    )


def accounts_from_the_top(accounts: dict[str, Association]) -> list[str]:
    """Return the accounts, each after the one it is part of, siblings by name.

    An account whose parent isn't there counts as one at the top: it is placed, not lost.
    """
    parts: dict[str, list[str]] = {}
    for name in sorted(accounts):
        parent = accounts[name].parent
        parts.setdefault(parent if parent in accounts else "", []).append(name)
    ordered: list[str] = []
    waiting = parts.get("", [])[::-1]
    while waiting:
        name = waiting.pop()
        ordered.append(name)
        waiting.extend(parts.get(name, [])[::-1])
    return ordered


def effective_qos(accounts: dict[str, Association], name: str) -> tuple[tuple[str, ...], str]:
    """Return the QOS that an account's jobs may request and get, its parents' where unset."""
    qos: tuple[str, ...] = ()
    default = ""
    here: str | None = name
    seen: set[str] = set()
    while here in accounts and here not in seen:
        seen.add(here)
        found = accounts[here]
        qos = qos or found.qos
        default = default or found.default_qos
        here = found.parent
    return qos or (NORMAL,), default


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
