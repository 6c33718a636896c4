#!/usr/bin/python3
"""Write Slurm's accounting database away, in /var/backups/gcluster/slurmdbd, for root alone.

  slurmdbd-backup.py now              one file more; the newest seven of these stay
  slurmdbd-backup.py before-upgrade   only when slurmdbd is of another version than at its last
                                      start; these files all stay

Back again: stop slurmdbd, `zcat FILE | mariadb DATABASE`, install the version of the file's name.
Exit 0: written, or not needed; 1: it could not be written, and slurmdbd must not start.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

SETTINGS = Path("/etc/slurm/slurmdbd.conf")
FOLDER = Path("/var/backups/gcluster/slurmdbd")
SEEN = Path("/var/lib/gcluster/slurmdbd.version")
RUN = Path("/run")
KEPT = 7
MODES = ("now", "before-upgrade")


class RefusedError(Exception):
    """Why it could not be written."""


def main() -> None:
    """Write it, where it is due."""
    if sys.argv[1:] not in ([mode] for mode in MODES):
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    mode = sys.argv[1]
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)  # the file with the password must go
    try:
        version = re.sub(r"^[^0-9]*", "", output_of("slurmdbd", "-V"))
        last = SEEN.read_text().strip() if SEEN.exists() else ""
        if mode == "before-upgrade" and version == last:
            return
        write(last or version, "nightly" if mode == "now" else f"before-{version}")
        if mode == "before-upgrade":
            SEEN.parent.mkdir(parents=True, exist_ok=True)
            new = SEEN.with_name(f"{SEEN.name}.new")
            new.write_text(f"{version}\n")
            new.rename(SEEN)
    except (RefusedError, OSError) as why:
        sys.exit(str(why))


def stop(*_: object) -> NoReturn:
    """End by an exception."""
    sys.exit(1)


def write(version: str, why: str) -> None:
    """Write the database that a version of slurmdbd has left, if it has made one by now."""
    said = settings()
    name = said["StorageLoc"]
    descriptor, login = tempfile.mkstemp(prefix="gcluster-slurmdbd.", dir=RUN)
    try:
        # MariaDB's clients log in as slurmdbd does; the password is never among arguments.
        with os.fdopen(descriptor, "w") as file:
            file.write(
                f"[client]\nhost={said['StorageHost']}\nport={said['StoragePort']}\n"
                f'user={said["StorageUser"]}\npassword="{said["StoragePass"]}"\n'
            )
        as_slurmdbd = f"--defaults-extra-file={login}"
        tables = f"information_schema.tables WHERE table_schema='{name}'"
        ask = ("--batch", "--skip-column-names", f"--execute=SELECT COUNT(*) FROM {tables}")  # noqa: S608  # of slurmdbd.conf
        if int(output_of("mariadb", as_slurmdbd, *ask)):
            now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            dump(name, as_slurmdbd, f"{name}-{version}-{now}-{why}.sql.gz")
    finally:
        Path(login).unlink()


def settings() -> dict[str, str]:
    """Return the settings of slurmdbd.conf."""
    lines = SETTINGS.read_text().splitlines()
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def dump(database: str, as_slurmdbd: str, name: str) -> None:
    """Write the database to a file, and remove nightly ones that are over the number kept."""
    os.umask(0o077)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for cut_off in FOLDER.glob("*.part"):
        cut_off.unlink()
    part = FOLDER / f"{name}.part"
    # As one moment, without a lock: jobs are recorded meanwhile.
    command = ["mariadb-dump", as_slurmdbd, "--single-transaction", "--quick", database]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as dumping:
        assert dumping.stdout is not None  # noqa: S101  # it is a pipe
        with gzip.open(part, "wb", compresslevel=1) as out:
            shutil.copyfileobj(dumping.stdout, out)
    if dumping.returncode != 0:
        raise RefusedError(f"mariadb-dump ended with {dumping.returncode}")
    part.rename(FOLDER / name)
    nightly = sorted(FOLDER.glob("*-nightly.sql.gz"), key=lambda each: each.stat().st_mtime)
    for old in nightly[:-KEPT]:
        old.unlink()


def output_of(*command: str) -> str:
    """Return what a program prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RefusedError(f"{command[0]} ended with {done.returncode}")
    return done.stdout.strip()


main()
