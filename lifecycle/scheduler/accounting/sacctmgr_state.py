"""State of accounts, job owners and maintenance windows in Slurm, read in one SSH exec."""

from __future__ import annotations

import shlex

import msgspec

from ....inventory.accounting.desired import JobOwner
from ....inventory.accounting.reading import (
    UnreadableAccountingError,
    association_query,
    job_query,
    qos_query,
    read_accounting,
    read_jobs,
    user_query,
)
from ....inventory.accounting.records import (
    NORMAL,
    ROOT,
    Accounting,
    Association,
    QosRecord,
    accounting,
)
from ....inventory.hosts import Host
from ....inventory.reservations import ENVIRONMENT, Reservation, read_reservations, show_command
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from ...status.slurm import last_error_line

_BETWEEN = "=== gcluster ==="
_LIMIT_S = 60


class AccountingError(Exception):
    """They can't be read or changed; the message says why."""


class AccountingState(msgspec.Struct, frozen=True, kw_only=True):
    """What Slurm keeps at one moment."""

    accounting: Accounting
    jobs: tuple[JobOwner, ...] = ()
    reservations: tuple[Reservation, ...] = ()


EMPTY = AccountingState(
    accounting=accounting(
        {NORMAL: QosRecord(name=NORMAL)},
        {one.key: one for one in (Association(account=ROOT),)},
        {},
    )
)
"""Of a cluster that isn't there yet: what slurmdbd makes by itself."""


def dump_command(cluster: str, *, accounts: bool) -> str:
    """Return the shell script that prints the books; without accounts the windows alone."""
    requested = [job_query(), show_command()]
    if accounts:
        requested = [qos_query(), association_query(cluster), user_query(), *requested]
    between = f" && echo {shlex.quote(_BETWEEN)} && "
    return exports() + between.join(map(shlex.join, requested))


def exports() -> str:
    """Return what sets the environment that Slurm's times are read and printed in."""
    return "".join(f"export {name}={shlex.quote(value)}; " for name, value in ENVIRONMENT.items())


def query_accounting(
    session: SshSession, controller: Host, cluster: str, *, accounts: bool
) -> AccountingState:
    """Read the accounting state from a controller.

    Args:
        session: how it is reached.
        controller: where slurmctld runs.
        cluster: name of the cluster.
        accounts: whether there is a database; else its part is that of an empty one.

    Raises:
        BooksError: it can't be reached, or Slurm's output is not as expected.
    """
    command = as_root(controller, ["sh", "-c", dump_command(cluster, accounts=accounts)])
    answer = session.run_many([controller], command, timeout_s=_LIMIT_S)[controller.name]
    if isinstance(answer, Unreachable):
        raise AccountingError(f"{controller.name}: {answer.reason}")
    if answer.returncode != 0:
        raise AccountingError(f"Slurm on {controller.name}: {last_error_line(answer)}")
    try:
        return _read(answer.stdout, accounts=accounts)
    except (UnreadableAccountingError, ValueError) as error:
        raise AccountingError(f"{controller.name} says what can't be read: {error}") from error


def _read(text: str, *, accounts: bool) -> AccountingState:
    """Return the books; raises UnreadableAccountingError or ValueError."""
    parts = [part.strip("\n") for part in text.split(f"{_BETWEEN}\n")]
    expected = 5 if accounts else 2
    if len(parts) != expected:
        raise ValueError(f"{len(parts)} answers instead of {expected}")
    jobs, windows = parts[-2:]
    return AccountingState(
        accounting=read_accounting(*parts[:3]) if accounts else EMPTY.accounting,
        jobs=read_jobs(jobs),
        reservations=read_reservations(windows),
    )
