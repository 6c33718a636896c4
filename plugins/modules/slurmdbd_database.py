#!/usr/bin/python
"""Make slurmdbd's database in MariaDB, and its user."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurmdbd_database
short_description: Create slurmdbd's database and its user
description:
  - Runs next to the database, which lets root in by its socket. Name, user and password are those of slurmdbd.conf.
  - The user may come from the given hosts alone.
author: The gcluster authors
options:
  hosts:
    description: Hosts from which slurmdbd may come, as MariaDB names them.
    type: list
    elements: str
    required: true
  wait_seconds:
    description: Seconds to wait until MariaDB answers.
    type: int
    default: 60
attributes:
  check_mode: {support: full, description: Says what would be made.}
"""

EXAMPLES = r"""
- name: Create the database and its user
  gcluster.cluster.slurmdbd_database: {hosts: [localhost, 10.0.0.2]}
"""

RETURN = r"""
changes:
  description: What was done, one line each.
  returned: always
  type: list
  elements: str
  sample: [the database slurm_acct and its user slurm]
"""

import time
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run
from ..module_utils.slurmdbd import SETTINGS, login_file, settings, sql
from ..module_utils.state import Failed, exit_with_progress

ARGUMENTS: dict[str, Any] = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "wait_seconds": {"type": "int", "default": 60},
}


def wait_for_database(wait_s: int) -> None:
    """Wait until MariaDB answers.

    Raises:
        Failed: it doesn't within that time.
    """
    until = time.monotonic() + wait_s
    while run("mariadb-admin", "--silent", "ping")[0]:
        if time.monotonic() >= until:
            raise Failed("MariaDB doesn't answer; journalctl -u mariadb says why")
        time.sleep(0.5)


def lets_in(said: dict[str, str]) -> bool:
    """Return whether the database is there and lets slurmdbd in with its password."""
    with login_file(said) as login:
        requested = (f"--defaults-extra-file={login}", "--execute=SELECT 1", said["StorageLoc"])
        return run("mariadb", *requested)[0] == 0


def ensure_database(hosts: list[str], wait_s: int, *, act: bool) -> Iterator[str]:
    """Yield what is made."""
    said = settings()
    if not said:
        if act:
            raise Failed(f"there is no {SETTINGS}")
        yield "the database"
        return
    wait_for_database(wait_s)
    user, name = said["StorageUser"], said["StorageLoc"]
    there = sql(f"SELECT Host FROM mysql.user WHERE User='{user}';").split()  # noqa: S608  # of slurmdbd.conf
    if sorted(there) == sorted(hosts) and lets_in(said):
        return
    if act:
        sql("".join(statements(said, there, hosts)))
    yield f"the database {name} and its user {user}"


def statements(said: dict[str, str], there: list[str], hosts: list[str]) -> Iterator[str]:
    """Yield SQL that makes the database, and its user come from these hosts alone."""
    user, name = said["StorageUser"], said["StorageLoc"]
    yield f"CREATE DATABASE IF NOT EXISTS `{name}`;\n"
    for host in sorted({*there} - {*hosts}):
        yield f"DROP USER '{user}'@'{host}';\n"
    for host in hosts:
        yield f"CREATE USER IF NOT EXISTS '{user}'@'{host}';\n"
        yield f"ALTER USER '{user}'@'{host}' IDENTIFIED BY '{said['StoragePass']}';\n"
        yield f"GRANT ALL ON `{name}`.* TO '{user}'@'{host}';\n"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    exit_with_progress(
        module,
        ensure_database(requested["hosts"], requested["wait_seconds"], act=not module.check_mode),
    )


if __name__ == "__main__":
    main()
