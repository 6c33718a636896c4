"""People of a real directory, over TLS: known with its numbers, let in by its keys and groups."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from conftest import Play, SshOptions
from testinfra.host import Host

testinfra_hosts = ["ansible://node01"]
Ssh: TypeAlias = Callable[[str, str], tuple[int, str]]
FOLDER = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])


@pytest.fixture
def key(host: Host) -> str:
    """Put the key that the directory has for its people on the node, and return its path."""
    path = "/root/ada"
    private = (FOLDER / "ada").read_text()
    host.check_output("umask 077; printf %%s %s > " + path, private)
    return path


@pytest.fixture
def ssh(host: Host, key: str, ssh_options: SshOptions) -> Ssh:
    """Return a function that logs in as a user by the key."""
    options = f"-i {key} -o IdentitiesOnly=yes {ssh_options('localhost')}"

    def log_in(user: str, command: str) -> tuple[int, str]:
        done = host.run(f"ssh {options} {user}@localhost '{command}' || exit 1")
        return done.rc, done.stdout

    return log_in


def test_a_person_has_the_directory_s_numbers(host: Host) -> None:
    assert host.check_output("id ada").split()[:2] == ["uid=2001(ada)", "gid=2000(research)"]
    assert "hpc-admins" in host.check_output("id --groups --name ada")


def test_a_person_below_the_range_is_not_known(host: Host) -> None:
    assert host.run("getent passwd eve").rc != 0


def test_a_key_of_the_directory_lets_in_and_a_home_is_made(ssh: Ssh) -> None:
    assert ssh("ada", "id --user; pwd") == (0, "2001\n/home/ada\n")


def test_who_is_in_none_of_the_groups_is_refused(ssh: Ssh) -> None:
    assert ssh("bob", "true")[0] != 0


def test_an_admin_of_the_directory_becomes_root_without_a_password(ssh: Ssh) -> None:
    assert ssh("ada", "sudo -n id --user") == (0, "0\n")


def test_root_still_can_log_in_when_the_directory_is_away(host: Host, key: str, ssh: Ssh) -> None:
    host.check_output(f"ssh-keygen -y -f {key} >> /root/.ssh/authorized_keys")
    host.check_output("systemctl stop sssd")
    try:
        assert ssh("root", "id --user") == (0, "0\n")
    finally:
        host.check_output("systemctl start sssd")


def test_the_password_is_in_one_file_that_others_can_t_read(host: Host) -> None:
    password = (FOLDER / "directory.password").read_text().strip()
    conf = host.file("/etc/sssd/sssd.conf")
    assert conf.mode & 0o007 == 0
    assert password in conf.content_string
    found = host.run(f"grep -rlF '{password}' /etc /var/log /run 2>/dev/null")
    assert found.stdout.split() == ["/etc/sssd/sssd.conf"]


def test_a_certificate_without_a_trusted_key_or_checksum_is_refused_before_anything_changes(
    host: Host, converge: Play
) -> None:
    before = host.file("/etc/sssd/gcluster-ca.pem").sha256sum
    refused = converge(authority="other")
    assert refused.returncode != 0
    assert "the certificate of dir01.example.edu is not trusted" in refused.printed
    assert host.file("/etc/sssd/gcluster-ca.pem").sha256sum == before
    assert converge(phases=["verify"]).returncode == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"named": "other.example.edu"},
            "the certificate of other.example.edu is for another name",
        ),
        ({"named": "dir01.example.edu:9"}, "can't be reached"),
    ],
)
def test_a_directory_that_is_not_the_one_is_named(
    converge: Play, changed: dict[str, str], message: str
) -> None:
    assert message in converge(phases=["preflight"], **changed).printed


def test_a_wrong_password_and_an_unknown_probe_are_reported(converge: Play) -> None:
    unknown = converge(phases=["verify"], probe="nobody-here", patience=1)
    assert "SSSD knows no user nobody-here" in unknown.printed
    refused = converge(phases=["configure", "verify"], bind="wrong")
    assert "name or password are wrong (LDAP 49)" in refused.printed
    assert converge().returncode == 0, "the node can be repaired"
