"""The node has its people, its names, its limits and a closed SSH server."""

from __future__ import annotations

import pytest
from conftest import SshOptions
from testinfra.host import Host


def test_a_user_has_the_ids_groups_and_shell_requested(host: Host) -> None:
    grace = host.user("grace")
    assert (grace.uid, grace.gid, grace.group, grace.shell) == (2002, 2100, "grace", "/bin/sh")
    assert "users" in grace.groups


def test_a_user_without_a_gid_gets_the_uid(host: Host) -> None:
    ada = host.user("ada")
    assert (ada.uid, ada.gid) == (2001, 2001)


def test_the_ssh_server_reads_a_users_keys_from_outside_the_home(host: Host) -> None:
    settings = host.check_output("sshd -T -C user=ada")
    assert "authorizedkeysfile .ssh/authorized_keys /etc/ssh/authorized_keys.d/%u" in settings
    assert host.file("/etc/ssh/authorized_keys.d/ada").contains("^ssh-ed25519 AAAA.* ada$")


def test_the_ssh_server_denies_who_may_not_log_in_and_takes_certificates(host: Host) -> None:
    settings = host.check_output("sshd -T -C user=ada").splitlines()
    assert "denyusers grace" in settings
    assert "trustedusercakeys /etc/ssh/gcluster-authorities.pub" in settings
    assert host.file("/etc/ssh/gcluster-authorities.pub").contains("^ssh-ed25519 AAAA.* authority$")


def test_the_running_ssh_server_offers_no_passwords(host: Host, ssh_options: SshOptions) -> None:
    refused = host.run(f"ssh {ssh_options('localhost')} ada@localhost true || exit 1")
    assert refused.rc == 1
    assert "Permission denied (publickey)." in refused.stderr


@pytest.mark.parametrize(("user", "status"), [("ada", 0), ("grace", 1)])
def test_only_who_may_becomes_root(host: Host, user: str, status: int) -> None:
    assert host.run(f"runuser -u {user} -- sudo --non-interactive true").rc == status


def test_a_login_session_opens_under_the_limits(host: Host) -> None:
    assert host.check_output("su - ada -c 'id -un'") == "ada"
    assert host.file("/etc/security/limits.d/50-gcluster.conf").contains("may not raise limits")


def test_the_controller_resolves_by_name(host: Host) -> None:
    assert host.check_output("getent hosts head").split() == ["192.0.2.10", "head"]


def test_the_node_resolves_its_own_name_to_an_address_others_reach(host: Host) -> None:
    address = host.check_output("getent hosts node01").split()[0]
    assert address in host.check_output("hostname --all-ip-addresses").split()
