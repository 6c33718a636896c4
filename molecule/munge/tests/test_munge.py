"""The running daemon uses the cluster's key, which only its user can read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from conftest import Play
from testinfra.host import Host


def test_the_key_is_the_one_given_and_only_munge_reads_it(host: Host) -> None:
    key = host.file("/etc/munge/munge.key")
    given = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "munge.key").read_bytes()
    assert key.sha256sum == hashlib.sha256(given).hexdigest()
    assert (key.user, key.group, key.mode) == ("munge", "munge", 0o400)


def test_the_daemon_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("munge")
    assert service.is_running
    assert service.is_enabled


def test_the_daemon_started_after_its_key_was_put_in_place(host: Host) -> None:
    started = host.check_output("stat -c %Z /run/munge/munged.pid")
    placed = host.check_output("stat -c %Z /etc/munge/munge.key")
    assert int(started) >= int(placed)


def test_a_credential_of_one_user_is_read_back_by_another(host: Host) -> None:
    read = host.check_output("runuser -u nobody -- munge -n | unmunge")
    lines = {line.split(":")[0]: line for line in read.splitlines()}
    assert "Success (0)" in lines["STATUS"]
    assert "nobody" in lines["UID"]


def test_a_daemon_that_is_older_than_its_key_is_started_again(host: Host, converge: Play) -> None:
    before = host.check_output("cat /run/munge/munged.pid")
    host.check_output("touch /etc/munge/munge.key")  # as where a run was killed in between
    assert converge().returncode == 0
    assert host.check_output("cat /run/munge/munged.pid") != before
