"""The running daemon keeps accounts in a database that it alone gets into, and is written away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from testinfra.host import Host

SACCTMGR = "SLURM_CONF=/etc/slurm/slurmdbd-client.conf sacctmgr --noheader --parsable2"
BACKUP = "/usr/local/libexec/gcluster/slurmdbd-backup.py"
BACKUPS = "/var/backups/gcluster/slurmdbd"


def password() -> str:
    path = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "slurmdbd.password")
    return path.read_text().strip()


@pytest.mark.parametrize("unit", ["mariadb", "slurmdbd"])
def test_the_daemons_run_now_and_after_a_reboot(host: Host, unit: str) -> None:
    service = host.service(unit)
    assert service.is_running
    assert service.is_enabled


def test_the_database_has_the_cluster(host: Host) -> None:
    assert host.check_output(f"{SACCTMGR} show cluster format=Cluster") == "molecule"


def test_an_account_that_is_added_is_there_after_a_restart(host: Host) -> None:
    try:
        host.check_output(f"{SACCTMGR} --immediate add account lab cluster=molecule")
        host.check_output("systemctl restart mariadb && systemctl restart slurmdbd && sleep 3")
        listed = host.check_output(f"{SACCTMGR} show account lab format=Account")
        assert listed == "lab"
    finally:
        host.run(f"{SACCTMGR} --immediate remove account lab")


def test_the_password_is_in_one_file_that_slurm_alone_reads(host: Host) -> None:
    conf = host.file("/etc/slurm/slurmdbd.conf")
    assert (conf.user, conf.group, conf.mode) == ("slurm", "slurm", 0o600)
    found = host.run(f"grep -rlF '{password()}' /etc /var/log /run --exclude-dir=mariadb")
    assert found.stdout.split() == ["/etc/slurm/slurmdbd.conf"]
    assert password() not in host.check_output("journalctl --no-pager --output cat")


def test_no_process_shows_the_password(host: Host) -> None:
    assert password() not in host.check_output(
        "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true"
    )


def test_the_database_runs_with_what_schedmd_requests(host: Host) -> None:
    sizes = ("max_allowed_packet", "innodb_buffer_pool_size")
    mib = ", ".join(f"@@{name} DIV 1048576" for name in sizes)
    ask = f"SELECT @@innodb_lock_wait_timeout, {mib}"
    printed = host.check_output(f"mariadb --batch --skip-column-names --execute='{ask}'")
    assert printed.split() == ["900", "16", "128"]


def test_the_database_listens_to_its_own_host_alone(host: Host) -> None:
    listening = host.check_output("ss --listening --numeric --tcp --no-header 'sport = :3306'")
    assert {line.split()[3] for line in listening.splitlines()} == {"127.0.0.1:3306"}


def test_a_backup_can_be_read_and_is_root_s_alone(host: Host) -> None:
    host.check_output(f"{BACKUP} now")
    newest = host.check_output(f"ls -1t {BACKUPS}/*-nightly.sql.gz | head -n 1")
    assert (host.file(newest).user, host.file(newest).mode) == ("root", 0o600)
    try:
        host.check_output("mariadb --execute='CREATE DATABASE again'")
        host.check_output(f"zcat {newest} | mariadb again")
        ask = "mariadb --batch --skip-column-names --execute='SELECT name FROM cluster_table' again"
        assert host.check_output(ask) == "molecule"
    finally:
        host.check_output("mariadb --execute='DROP DATABASE IF EXISTS again'")


def test_another_version_s_start_is_preceded_by_a_backup(host: Host) -> None:
    before = f"ls {BACKUPS}/*-before-*.sql.gz 2>/dev/null | wc -l"
    had = int(host.check_output(before))
    host.check_output("echo 0.0.1 >/var/lib/gcluster/slurmdbd.version; systemctl restart slurmdbd")
    host.check_output("systemctl restart slurmdbd")
    assert int(host.check_output(before)) == had + 1


def test_slurmdbd_does_not_start_when_the_backup_before_an_upgrade_fails(host: Host) -> None:
    host.check_output("systemctl stop slurmdbd")
    try:
        host.check_output("echo 0.0.2 >/var/lib/gcluster/slurmdbd.version")
        host.check_output("systemctl stop mariadb")
        assert host.run(f"{BACKUP} before-upgrade").rc != 0
        assert host.file("/var/lib/gcluster/slurmdbd.version").content_string.strip() == "0.0.2"
    finally:
        host.check_output("systemctl start mariadb && systemctl restart slurmdbd && sleep 3")
