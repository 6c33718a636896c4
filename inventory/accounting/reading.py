r"""Read the accounting database as `sacctmgr` prints it.

`--parsable2 --noheader` with named columns is the form that lasts: it is the same from Slurm 17.11
to 25.11, while `--json` follows the version of its data parser (v0.0.37 to v0.0.44, each with other
names) and needs a plugin that distributions leave out. `wopl` (without parents' limits) prints what
is set at each place, not what it inherits. Values here hold no "|".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ...schemas.structure.decoding import convert
from .desired import JobOwner
from .records import (
    GPU,
    PARENT_SHARE,
    ROOT,
    Accounting,
    Association,
    QosRecord,
    accounting,
)

QOS_COLUMNS = (
    "Name", "Priority", "Preempt", "PreemptMode", "GraceTime",
    "GrpTRES", "MaxTRESPU", "MaxWall", "MaxJobsPU",
)  # fmt: skip
ASSOCIATION_COLUMNS = (
    "Account", "ParentName", "User", "Partition", "Share", "GrpTRES", "QOS", "DefaultQOS",
)  # fmt: skip
USER_COLUMNS = ("User", "DefaultAccount")
JOB_COLUMNS = ("%u", "%a", "%q")
"""squeue's columns: user, account, QOS."""

_SHOW = ("sacctmgr", "--noheader", "--parsable2", "show")
_TIME = re.compile(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)")


class UnreadableAccountingError(ValueError):
    """Output that lacks the requested columns."""


def qos_query() -> tuple[str, ...]:
    """Return the command whose output `read_accounting` takes as `qos`."""
    return (*_SHOW, "qos", f"format={','.join(QOS_COLUMNS)}")


def association_query(cluster: str) -> tuple[str, ...]:
    """Return the command whose output `read_accounting` takes as `associations`."""
    columns = ",".join(ASSOCIATION_COLUMNS)
    return (*_SHOW, "associations", "where", f"cluster={cluster}", "wopl", f"format={columns}")


def user_query() -> tuple[str, ...]:
    """Return the command whose output `read_accounting` takes as `users`."""
    return (*_SHOW, "users", f"format={','.join(USER_COLUMNS)}")


def job_query() -> tuple[str, ...]:
    """Return the command that prints whose jobs haven't ended: what `squeue` shows by default."""
    return ("squeue", "--noheader", f"--format={'|'.join(JOB_COLUMNS)}")


def read_accounting(qos: str, associations: str, users: str) -> Accounting:
    """Return the database from the outputs of the three queries.

    The user root of the account root belongs to Slurm itself and is left out.

    Raises:
        UnreadableAccountingError: a line doesn't have the requested form.
    """
    found = {one.name: one for one in map(_qos, _rows(qos, len(QOS_COLUMNS)))}
    rows = map(_association, _rows(associations, len(ASSOCIATION_COLUMNS)))
    kept = {one.key: one for one in rows if (one.account, one.user) != (ROOT, ROOT)}
    members = {key.user for key in kept}
    defaults = {
        user: account
        for user, account in _rows(users, len(USER_COLUMNS))
        if account and user in members
    }
    return accounting(found, kept, defaults)


def read_jobs(text: str) -> tuple[JobOwner, ...]:
    """Return the owners of jobs; raises UnreadableAccountingError."""
    rows = _rows(text, len(JOB_COLUMNS))
    return tuple(JobOwner(user=user, account=account, qos=qos) for user, account, qos in rows)


def _rows(text: str, columns: int) -> Iterator[list[str]]:
    for line in text.splitlines():
        if not line.strip():
            continue
        row = [cell.strip() for cell in line.split("|")]
        if len(row) != columns:
            raise UnreadableAccountingError(f"expected {columns} columns, found: {line!r}")
        yield row


def _qos(row: list[str]) -> QosRecord:
    name, priority, preempts, mode, grace, together, a_user, wall, jobs = row
    try:
        return convert(
            {
                "name": name,
                "priority": int(priority or 0),
                "preempts": _names(preempts),
                "preempt_mode": mode.lower() or "cluster",
                "grace_s": _seconds(grace),
                "gpu_limit": _gpus(together),
                "gpu_limit_per_user": _gpus(a_user),
                "max_time_min": _seconds(wall) // 60 if wall else None,
                "max_jobs_per_user": int(jobs) if jobs else None,
            },
            QosRecord,
        )
    except (ValueError, msgspec.ValidationError) as error:
        raise UnreadableAccountingError(f"QOS {name}: {error}") from error


def _association(row: list[str]) -> Association:
    account, parent, user, partition, share, together, qos, default = row
    try:
        return Association(
            account=account,
            user=user,
            partition=partition,
            parent="" if user else parent,
            share=PARENT_SHARE if share == "parent" else int(share or 1),
            gpu_quota=_gpus(together),
            qos=_names(qos),
            default_qos=default,
        )
    except ValueError as error:
        raise UnreadableAccountingError(f"account {account}: {error}") from error


def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted(filter(None, text.split(","))))


def _gpus(text: str) -> int | None:
    """Return the GPUs of "cpu=8,gres/gpu=4"; None where there are none."""
    limits = dict(part.split("=", 1) for part in text.split(",") if part)
    return int(limits[GPU]) if GPU in limits else None


def _seconds(text: str) -> int:
    """Return the seconds of "7-00:00:00"; raises ValueError."""
    match = _TIME.fullmatch(text or "00:00:00")
    if match is None:
        raise ValueError(f"{text!r} is no length of time")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
