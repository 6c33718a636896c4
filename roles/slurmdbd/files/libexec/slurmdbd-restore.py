#!/usr/bin/python3
"""Dump Slurm's accounting database, and restore such a dump completely or not at all.

    slurmdbd-restore.py dump      write it to DUMP; nothing, where the database isn't on this host
    slurmdbd-restore.py print     print DUMP as base64, and remove it
    slurmdbd-restore.py take      before every start of slurmdbd: restore SEED, where there is one
    slurmdbd-restore.py replace   restore REPLACEMENT under a running slurmdbd; undo or keep
                                  follows
    slurmdbd-restore.py undo      restore the database from before `replace`
    slurmdbd-restore.py keep      confirm `replace`: it can't be undone any more

A dump is read into a second database, and only then are all tables exchanged, in one statement. A
database that has the dump's cluster id already is the newer one, and stays. The old one is kept as
DATABASE_before until the next time.

Runs as root on MariaDB's host, which authenticates root by its socket. Exit 0: done, or nothing to
do; 1: it could not be done, the reason on stderr, and the tables are as they were.
"""

from __future__ import annotations

import base64
import gzip
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

CONF = Path(os.environ.get("SLURMDBD_CONF", "/etc/slurm/slurmdbd.conf"))
FOLDER = Path(os.environ.get("GCLUSTER_STATE", "/var/lib/gcluster"))
SEED = FOLDER / "slurmdbd.sql.gz"
REPLACEMENT = FOLDER / "slurmdbd-replacement.sql.gz"
DUMP = FOLDER / "slurmdbd-dump.sql.gz"
OPEN = FOLDER / "slurmdbd-replaced"
"""Is there from `replace` until `undo` or `keep`."""
ANSWER_S = 60
BLOCK = 1 << 20
NEWER = b"/*M!999999"
"""How a dump of MariaDB 10.5.25, 10.11.8 and later begins; older clients end at it."""


def main() -> None:
    """Run the given verb."""
    acts = {
        "dump": dump,
        "print": print_dump,
        "take": take,
        "replace": replace,
        "undo": undo,
        "keep": keep,
    }
    act = acts.get(" ".join(sys.argv[1:]))
    if act is None:
        sys.exit(__doc__)
    act()


def setting(name: str) -> str:
    """Return a value of slurmdbd.conf; "" where it is missing."""
    found = ""
    if CONF.exists():
        for line in CONF.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            found = value.strip() if key.strip() == name else found
    return found


def is_here() -> bool:
    """Return whether the database is on this host, from the role's settings."""
    return setting("StorageHost") == "localhost"


def dump() -> None:
    """Write the database to DUMP; as one moment, without a lock."""
    if not is_here():
        return
    part = DUMP.with_name(f"{DUMP.name}.part")
    os.umask(0o077)
    FOLDER.mkdir(parents=True, exist_ok=True)
    words = ["mariadb-dump", "--single-transaction", "--quick", setting("StorageLoc")]
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE) as printing,
        gzip.open(part, "wb", 6) as out,
    ):
        if printing.stdout:
            shutil.copyfileobj(printing.stdout, out, BLOCK)
    if printing.returncode != 0:
        part.unlink()
        sys.exit("the database could not be read whole")
    part.rename(DUMP)


def print_dump() -> None:
    """Print DUMP; nothing, where there is none."""
    if DUMP.exists():
        with DUMP.open("rb") as written:
            base64.encode(written, sys.stdout.buffer)
        DUMP.unlink()


def take() -> None:
    """Take SEED up before slurmdbd starts; where it can't be, slurmdbd must not start."""
    if not SEED.exists() or not is_here():
        return
    if prepare():
        swap()


def replace() -> None:
    """Take REPLACEMENT up; slurmdbd is stopped for as long as the tables change places."""
    if not is_here():
        sys.exit("the database is not on this host")
    if OPEN.exists():
        undo()
    if not REPLACEMENT.exists():
        sys.exit(f"there is no {REPLACEMENT}")
    REPLACEMENT.rename(SEED)
    try:
        if not prepare():
            return
        drop(f"{setting('StorageLoc')}_before")
        OPEN.touch()
        run("systemctl", "stop", "slurmdbd")
        swap()
        run("systemctl", "start", "slurmdbd")
        await_answer()
    except SystemExit:
        SEED.unlink(missing_ok=True)  # the next start would take it up
        undo()
        raise


def undo() -> None:
    """Have the tables again that were there before; safe to repeat."""
    if not OPEN.exists():
        return
    name = setting("StorageLoc")
    before, staged = f"{name}_before", f"{name}_restored"
    run("systemctl", "stop", "slurmdbd")
    drop(staged)
    if tables(before):
        sql(f"CREATE DATABASE `{staged}`")
        move((name, staged), (before, name))
    drop(staged, before)
    OPEN.unlink()
    run("systemctl", "start", "slurmdbd")


def keep() -> None:
    """Drop the possibility to undo."""
    OPEN.unlink(missing_ok=True)


def prepare() -> bool:
    """Read SEED into a second database; return whether to use it.

    It isn't used where the current one has the same cluster id: nothing was lost there.
    """
    name = setting("StorageLoc")
    staged = f"{name}_restored"
    await_database()
    drop(staged)
    sql(f"CREATE DATABASE `{staged}`")
    with gzip.open(SEED, "rb") as text:
        reading = subprocess.Popen(["mariadb", "--batch", staged], stdin=subprocess.PIPE)
        why = feed(text, reading.stdin) if reading.stdin else ""
        if why:
            reading.kill()
    if reading.wait() != 0 or why:
        drop(staged)
        sys.exit(f"{SEED} could not be read into the database: {why}")
    theirs, ours = cluster_id(staged), cluster_id(name)
    if not theirs:
        drop(staged)
        sys.exit(f"{SEED} knows no cluster: it is no dump of slurmdbd's")
    if theirs == ours:
        print(f"kept: the database of cluster id {ours} is the newer one", file=sys.stderr)
        drop(staged)
        SEED.rename(SEED.with_name(SEED.name + ".aside"))
        return False
    return True


def feed(text: gzip.GzipFile, to: IO[bytes]) -> str:
    """Give a client the statements of a dump; return why it could not be given all."""
    try:
        with to:
            first = text.readline()
            to.write(b"" if first.startswith(NEWER) else first)
            shutil.copyfileobj(text, to, BLOCK)
    except (OSError, EOFError) as error:
        return str(error)
    return ""


def swap() -> None:
    """Have the prepared tables change places with those in use, all at once."""
    name = setting("StorageLoc")
    before, staged = f"{name}_before", f"{name}_restored"
    drop(before)
    sql(f"CREATE DATABASE `{before}`")
    move((name, before), (staged, name))
    drop(staged)
    SEED.unlink()
    print("replaced", file=sys.stderr)


def move(*pairs: tuple[str, str]) -> None:
    """Move the tables of one database to another, pair by pair, in one statement."""
    moves = [
        f"`{source}`.`{table}` TO `{target}`.`{table}`"
        for source, target in pairs
        for table in tables(source)
    ]
    if moves:
        sql(f"RENAME TABLE {', '.join(moves)}")


def tables(database: str) -> list[str]:
    """Return the names of a database's tables."""
    query = f"SELECT table_name FROM information_schema.tables WHERE table_schema='{database}'"  # noqa: S608  # our name
    return sql(query).splitlines()


def cluster_id(database: str) -> str:
    """Return the id by which slurmctld recognises the database; "" where there is none."""
    if "cluster_table" not in tables(database):
        return ""
    query = f"SELECT id FROM `{database}`.cluster_table WHERE deleted=0 ORDER BY name"  # noqa: S608  # our name
    return " ".join(sql(query).split())


def drop(*names: str) -> None:
    """Remove databases, where they are."""
    for name in names:
        sql(f"DROP DATABASE IF EXISTS `{name}`")


def await_database() -> None:
    """Wait until MariaDB answers; after a start of the host it may not yet."""
    end = time.monotonic() + ANSWER_S
    words = ["mariadb-admin", "--silent", "ping"]
    while subprocess.run(words, capture_output=True, check=False).returncode:
        if time.monotonic() > end:
            sys.exit("MariaDB doesn't answer; journalctl -u mariadb says why")
        time.sleep(0.5)


def await_answer() -> None:
    """Wait until slurmdbd answers with the tables that it has now."""
    environment = {**os.environ, "SLURM_CONF": "/etc/slurm/slurmdbd-client.conf"}
    words = ["timeout", "10", "sacctmgr", "--noheader", "show", "cluster", "format=Cluster"]
    end = time.monotonic() + ANSWER_S
    while True:
        requested = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False
        )
        if requested.returncode == 0 and requested.stdout.strip():
            return
        if time.monotonic() > end:
            sys.exit(f"slurmdbd doesn't answer with it: {requested.stderr.strip()[-300:]}")
        time.sleep(0.5)


def sql(text: str) -> str:
    """Run SQL as root; ends the program where it fails."""
    words = ["mariadb", "--batch", "--skip-column-names"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the database refuses: {done.stderr.strip()}")
    return done.stdout


def run(*words: str) -> None:
    """Run a command; ends the program where it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
