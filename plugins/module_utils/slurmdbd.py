"""slurmdbd's settings, and modules' queries of it and of its database."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .node import first_line, run, system_path
from .state import Failed

SETTINGS = "/etc/slurm/slurmdbd.conf"
CLIENT_SETTINGS = "/etc/slurm/slurmdbd-client.conf"
"""How sacctmgr reaches slurmdbd on its own host, whether there is a controller or not."""
ANSWER_S = 10
"""sacctmgr itself retries for long where nothing listens."""
LIST_CLUSTERS = ("--noheader", "--parsable2", "show", "cluster", "format=Cluster")


def settings() -> dict[str, str]:
    """Return slurmdbd.conf; {} where there is none."""
    lines = first_line(system_path(SETTINGS)).splitlines()
    pairs = [line.partition("=") for line in lines if "=" in line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


@contextlib.contextmanager
def login_file(said: dict[str, str]) -> Iterator[str]:
    """Give a file by which MariaDB's clients log in as slurmdbd does.

    The password is only in files, never in arguments.
    """
    descriptor, path = tempfile.mkstemp(prefix="gcluster-slurmdbd.", dir=system_path("/run"))
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(
                f"[client]\nhost={said['StorageHost']}\nport={said['StoragePort']}\n"
                f'user={said["StorageUser"]}\npassword="{said["StoragePass"]}"\n'
            )
        yield path
    finally:
        Path(path).unlink()


def sql(statements: str) -> str:
    """Return the database's response to root, authenticated by its socket.

    Raises:
        Failed: it doesn't respond.
    """
    code, text = run("mariadb", "--batch", "--skip-column-names", stdin=statements)
    if code:
        raise Failed(f"the database doesn't answer: {text}")
    return text


def sacctmgr(*words: str, timeout_s: float = 120) -> tuple[int, str]:
    """Return status and output of sacctmgr, which queries slurmdbd on this host."""
    environment = {"SLURM_CONF": str(system_path(CLIENT_SETTINGS))}
    return run("sacctmgr", *words, timeout_s=timeout_s, environment=environment)


def known_clusters(wait_s: float = 0) -> list[str]:
    """Return slurmdbd's clusters, once it responds.

    Raises:
        Failed: it doesn't within that time.
    """
    until = time.monotonic() + wait_s
    while True:
        code, text = sacctmgr(*LIST_CLUSTERS, timeout_s=ANSWER_S)
        if code == 0:
            return text.splitlines()
        if time.monotonic() >= until:
            latest = text.splitlines()[-1:] or ["no word why"]
            raise Failed(f"slurmdbd doesn't answer: {latest[0]}; journalctl -u slurmdbd says why")
        time.sleep(0.5)
