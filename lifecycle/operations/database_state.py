"""Slurm's accounting database in a backup: a dump of it, and where that goes when it was lost.

Only a database that gcluster made is in a backup: what others run they keep themselves.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import io

from ...inventory.accounting.desired import keeps_accounts
from ...inventory.compile.slurm.accounting import accounting_hosts
from ...inventory.hosts import ClusterInventory, Host
from ...schemas.spec import ClusterSpec, SlurmScheduler
from ..cluster.outcome import LifecycleError, failure
from ..nodes.ssh import Answer, SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT

_PROGRAM = f"{AS_ROOT} /usr/local/libexec/gcluster/slurmdbd-restore.py"
DUMP = f"{_PROGRAM} dump"
PRINT = f"{_PROGRAM} print"
REPLACE = f"{_PROGRAM} replace"
UNDO = f"{_PROGRAM} undo"
KEEP = f"{_PROGRAM} keep"
SEED = "/var/lib/gcluster/slurmdbd.sql.gz"
"""On the database's host: what its slurmdbd begins with, where it has lost its own."""
REPLACEMENT = "/var/lib/gcluster/slurmdbd-replacement.sql.gz"
"""On the same host: what `REPLACE` puts in the place of the database there."""
KEPT = "kept: the database of cluster id"
"""Message of the program that the existing database is kept."""
_LIMIT_S = 3600
_MADE_BY = (b"MariaDB dump", b"MySQL dump")


def owns_database(spec: ClusterSpec) -> bool:
    """Return whether the cluster keeps accounts in a database of its own."""
    slurm = spec.scheduler
    theirs = isinstance(slurm, SlurmScheduler) and slurm.accounting and slurm.accounting.database
    return keeps_accounts(spec) and not theirs


def database_host(spec: ClusterSpec, hosts: ClusterInventory) -> Host | None:
    """Return the host of the database; None: there is none, or it is an external one."""
    run_it = accounting_hosts(spec, hosts.hosts) if owns_database(spec) else ()
    return run_it[0] if run_it and run_it[0].connection == "ssh" else None


def read_dump(session: SshSession, host: Host, *, written: bool) -> bytes:
    """Return a dump of the database, compressed.

    Args:
        session: reaches the host.
        host: where the database is.
        written: it was written while the queue was saved, and is only fetched.

    Raises:
        LifecycleError: GC969, there is none.
    """
    if not written:
        checked(host, session.run(host, DUMP, timeout_s=_LIMIT_S))
    dump = decoded(host.name, checked(host, session.run(host, PRINT, timeout_s=_LIMIT_S)))
    try:
        with gzip.open(io.BytesIO(dump)) as text:
            head = text.read(1 << 16)
    except (EOFError, OSError) as error:
        raise broken(f"the database of {host.name}", str(error)) from error
    if not any(name in head for name in _MADE_BY):
        raise broken(f"the database of {host.name}", "it gave no dump")
    return dump


def send(session: SshSession, host: Host, content: bytes, sha256: str, path: str) -> None:
    """Put a saved content on a host as a file that root alone reads, whole or not at all.

    Raises:
        LifecycleError: GC969, it is not what was saved, or the host doesn't take it.
    """
    if hashlib.sha256(content).hexdigest() != sha256:
        raise broken(path, "it is not what was saved")
    folder, _, name = path.rpartition("/")
    command = (
        f"{AS_ROOT} sh -c 'umask 077 && mkdir -p {folder} && cd {folder} && "
        f"base64 -d > {name}.new && mv {name}.new {name}'"
    )
    text = base64.encodebytes(content).decode()
    checked(host, session.run(host, command, stdin=text, timeout_s=_LIMIT_S))


def decoded(what: str, text: str) -> bytes:
    """Return what a program printed as base64; raises GC969 where it is none."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise broken(f"the answer of {what}", str(error)) from error


def checked(host: Host, answer: Answer) -> str:
    """Return a command's output; raises GC969 where it failed or the host is unreachable."""
    if isinstance(answer, Unreachable):
        raise failure("GC969", f"{host.name} can't be queried: {answer.reason}")
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or [f"exit {answer.returncode}"]
        raise failure("GC969", f"{host.name}: {'; '.join(lines[-2:])}")
    return answer.stdout


def broken(what: str, why: str) -> LifecycleError:
    """Return the error for something saved that can't be used."""
    return failure("GC969", f"{what} can't be used: {why}")
