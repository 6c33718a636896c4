"""The first start of a node, and its host keys read off a console."""

from __future__ import annotations

import json

from gcluster.stacks.aws.cloud_init import host_keys, user_data

from .conftest import CASES

CONSOLE = (CASES / "recorded/console.txt").read_text(encoding="utf-8")


def test_keys_are_read_off_a_console_of_ubuntu() -> None:
    assert host_keys(CONSOLE) == (
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHostKeyEcdsa=",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHostKeyEd25519",
    )


def test_a_console_without_keys_or_with_half_of_them_has_none() -> None:
    assert host_keys("") == ()
    assert host_keys(CONSOLE.partition("-----END SSH HOST KEY KEYS")[0]) == ()


def test_the_keys_of_the_last_start_count() -> None:
    later = CONSOLE.replace("HostKeyEd25519", "HostKeyOfTheSecondStart")
    assert "HostKeyOfTheSecondStart" in " ".join(host_keys(CONSOLE + later))
    assert "HostKeyEd25519" not in " ".join(host_keys(CONSOLE + later))


def test_what_else_the_console_has_is_no_key() -> None:
    text = CONSOLE.replace("ssh-ed25519 AAAA", "noise ssh-rsa\nssh-ed25519 AAAA")
    assert host_keys(text) == host_keys(CONSOLE)


def test_user_data_lets_one_key_in_and_no_password() -> None:
    header, _, body = user_data(user="ubuntu", authorized_key='ssh-ed25519 AAAA "x"').partition(
        "\n"
    )
    assert header == "#cloud-config"
    config = json.loads(body)  # JSON is YAML
    [user] = config["users"]
    assert user["ssh_authorized_keys"] == ['ssh-ed25519 AAAA "x"']
    assert config["ssh_pwauth"] is False
    assert config["ssh_deletekeys"] is True
    assert config["ssh"] == {"emit_keys_to_console": True}
