"""slurmdbd gets its database, its cluster and a start with its files; all else is a double."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest
from recorded_machine import Machine
from running import module

CONF = """# Written by gcluster.
StorageHost=localhost
StoragePort=3306
StorageUser=slurm
StoragePass=a=secret
StorageLoc=slurm_acct
"""
MARIADB = """case "$*" in
  *defaults-extra-file=*)
    file=${{1#--defaults-extra-file=}}
    stat -c %a "$file" >{here}/login; cat "$file" >>{here}/login
    [ -e {here}/made ] || exit 1 ;;
  *)
    text=$(cat)
    case $text in
      "SELECT Host"*) cat {here}/hosts ;;
      *innodb_buffer_pool_size*) echo 4096 ;;
      *) echo "$text" >{here}/made; echo localhost >{here}/hosts ;;
    esac ;;
esac"""
"""It keeps the grants, and what it was called to make."""


@pytest.fixture
def host(machine: Machine) -> Machine:
    """Return the database's host, which has settings and nothing made yet."""
    machine.file("etc/slurm/slurmdbd.conf", CONF)
    machine.file("run/.keep")
    machine.file("hosts", "10.0.0.9\n")
    machine.tool("mariadb", MARIADB.format(here=machine.root))
    machine.tool("mariadb-admin", "true")
    return machine


def test_the_database_is_made_once_and_its_user_comes_from_its_hosts_alone(host: Machine) -> None:
    requested = {"hosts": ["localhost"]}
    would = host.call("slurmdbd_database", requested, check=True)
    assert would["changes"] == ["the database slurm_acct and its user slurm"]
    assert not (host.root / "made").exists()
    assert host.call("slurmdbd_database", requested)["changed"]
    made = (host.root / "made").read_text()
    assert "DROP USER 'slurm'@'10.0.0.9';" in made
    assert "ALTER USER 'slurm'@'localhost' IDENTIFIED BY 'a=secret';" in made
    assert not host.call("slurmdbd_database", requested)["changed"]


def test_who_logs_in_as_slurmdbd_does_it_by_a_file_of_its_own(host: Machine) -> None:
    (host.root / "hosts").write_text("localhost\n")
    host.call("slurmdbd_database", {"hosts": ["localhost"]})
    mode, *lines = (host.root / "login").read_text().splitlines()
    assert (mode, lines[-1]) == ("600", 'password="a=secret"')
    assert [path.name for path in (host.root / "run").iterdir()] == [".keep"]


def test_without_settings_a_database_is_planned_and_not_made(host: Machine) -> None:
    (host.root / "etc/slurm/slurmdbd.conf").unlink()
    requested = {"hosts": ["localhost"]}
    assert host.call("slurmdbd_database", requested, check=True)["changed"]
    assert (
        "there is no /etc/slurm/slurmdbd.conf" in host.call("slurmdbd_database", requested)["msg"]
    )


def test_a_cluster_is_added_where_slurmdbd_does_not_have_it(host: Machine) -> None:
    known = host.file("known", "other\n")
    host.tool("sacctmgr", f'case "$*" in *add*) echo campus >>{known} ;; *) cat {known} ;; esac')
    requested = {"name": "campus", "wait_seconds": 0}
    assert host.call("slurmdbd_cluster", requested, check=True)["changed"]
    assert known.read_text() == "other\n"
    assert host.call("slurmdbd_cluster", requested)["changed"]
    assert not host.call("slurmdbd_cluster", requested)["changed"]


def test_a_slurmdbd_that_does_not_answer_is_reported_and_would_have_no_cluster(
    host: Machine,
) -> None:
    host.tool("sacctmgr", "echo Connection refused; exit 1")
    requested = {"name": "campus", "wait_seconds": 0}
    assert host.call("slurmdbd_cluster", requested, check=True)["changed"]
    assert (
        "slurmdbd doesn't answer: Connection refused"
        in host.call("slurmdbd_cluster", requested)["msg"]
    )


def test_what_is_wrong_with_accounting_is_reported_at_once(
    host: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.tool("systemctl", "case $* in *timer) exit 3 ;; *) echo active ;; esac")
    host.tool("sacctmgr", "echo campus")
    conf = host.root / "etc/slurm/slurmdbd.conf"
    conf.chmod(0o644)
    monkeypatch.setattr(module("slurmdbd_check"), "OWNER", f"{getpass.getuser()} 600")
    wrong = host.call("slurmdbd_check", {"cluster": "lab", "buffer_pool_mib": 8192})["differences"]
    me = getpass.getuser()
    assert [line.split(":")[0] for line in wrong] == [
        "slurmdbd doesn't know the cluster lab",
        f"/etc/slurm/slurmdbd.conf belongs to {me} 644, and must to {me} 600",
        "the database runs with a buffer pool of 4096 MiB, not 8192",
        "no backup is written at night",
    ]
    conf.chmod(0o600)
    host.tool("systemctl", "echo active")
    assert not host.call("slurmdbd_check", {"cluster": "campus", "buffer_pool_mib": 4096})["failed"]


@pytest.fixture
def service(machine: Machine, tmp_path: Path) -> Path:
    """Return the settings of a service that runs once it was started."""
    machine.tool(
        "systemctl",
        f"case $1 in is-active) [ -e {tmp_path}/runs ] ;;"
        f" restart) echo x >>{tmp_path}/runs; [ ! -e {tmp_path}/broken ] ;; esac",
    )
    machine.tool("journalctl", "echo unknown option")
    settings = tmp_path / "settings"
    settings.touch()
    return settings


def test_a_service_is_started_with_its_files_and_again_when_one_is_newer(
    machine: Machine, service: Path
) -> None:
    requested = {"name": "mariadb", "files": [str(service)]}
    assert machine.call("service_restart", requested, check=True)["changed"]
    assert not service.with_name("runs").exists()
    assert machine.call("service_restart", requested)["changes"] == ["mariadb restarted"]
    assert not machine.call("service_restart", requested)["changed"]
    mark = machine.root / "run/gcluster/mariadb.taken-up"
    later = mark.stat().st_mtime_ns + 1
    os.utime(service, ns=(later, later))
    assert machine.call("service_restart", requested)["changed"]


def test_a_service_that_fails_reports_why_and_is_due_again(machine: Machine, service: Path) -> None:
    service.with_name("broken").touch()
    requested = {"name": "mariadb", "files": [str(service)]}
    assert "unknown option" in machine.call("service_restart", requested)["msg"]
    service.with_name("broken").unlink()
    assert machine.call("service_restart", requested)["changed"]
