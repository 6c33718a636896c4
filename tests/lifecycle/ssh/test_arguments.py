"""The ssh command line: keys are always checked, and nothing in a spec becomes an option."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.nodes.ssh.arguments import (
    as_arguments,
    bastion_marker,
    destination,
    identity,
    to_bastion,
)

KNOWN = Path("/var/with blank/known_hosts")
PINNED = SshTarget(user="root", host_keys=("ssh-ed25519 AAAA",), key_file="/keys/id")


def host(ssh: SshTarget) -> Host:
    return Host(
        name="n1",
        site="here",
        pool="gpu",
        role="compute",
        machine=None,
        address="10.0.0.1",
        ssh=ssh,
    )


@given(
    st.builds(
        SshTarget,
        user=st.just("ops"),
        key_file=st.none() | st.just("/k"),
        bastion=st.none() | st.sampled_from(["jump", "me@jump:2222"]),
        bastion_host_keys=st.sampled_from([(), ("ssh-ed25519 BBBB",)]),
        host_keys=st.sampled_from([(), ("ssh-ed25519 AAAA",)]),
        known_hosts_file=st.none() | st.just("/known"),
    )
)
def test_an_unknown_host_key_is_never_accepted(ssh: SshTarget) -> None:
    options = identity(host(ssh), KNOWN)
    text = " ".join(options)
    assert "StrictHostKeyChecking=yes" in options
    assert "accept-new" not in text
    assert text.count("StrictHostKeyChecking=yes") == text.count("StrictHostKeyChecking")
    assert text.count("StrictHostKeyChecking=yes") == (2 if ssh.bastion else 1)


def test_a_pinned_key_is_the_only_one_that_vouches() -> None:
    options = identity(host(PINNED), KNOWN)
    assert 'UserKnownHostsFile="/var/with blank/known_hosts"' in options
    assert "GlobalKnownHostsFile=/dev/null" in options
    assert "HostKeyAlias=n1.here" in options


def test_without_a_pinned_key_the_named_file_or_the_users_own_vouches() -> None:
    own = identity(host(SshTarget(user="ops")), KNOWN)
    assert not [option for option in own if "KnownHostsFile" in option]
    named = SshTarget(user="ops", known_hosts_file="/etc/kh")
    assert 'UserKnownHostsFile="/etc/kh"' in identity(host(named), KNOWN)


@pytest.mark.parametrize(
    ("bastion", "end"),
    [
        ("jump", ["--", "jump"]),
        ("me@jump:2222", ["-l", "me", "-p", "2222", "--", "jump"]),
        ("[fe80::1]:22", ["-p", "22", "--", "fe80::1"]),
        ("fe80::1", ["--", "fe80::1"]),
    ],
)
def test_a_bastion_is_reached_by_user_and_port(bastion: str, end: list[str]) -> None:
    assert to_bastion(SshTarget(user="ops", bastion=bastion), KNOWN)[-len(end) :] == end


def test_a_bastion_is_queried_with_the_hosts_key_and_by_name() -> None:
    ssh = msgspec.structs.replace(PINNED, bastion="me@jump", key_file="/my keys/100%")
    (proxy,) = [o for o in identity(host(ssh), KNOWN) if o.startswith("ProxyCommand=")]
    words = shlex.split(proxy.removeprefix("ProxyCommand="))
    assert words[words.index("-i") + 1] == "/my keys/100%%"
    assert words[words.index("-W") + 1] == "[%h]:%p"
    assert words[-2:] == ["--", "jump"]


def test_a_pinned_key_of_a_bastion_is_the_only_one_that_vouches_for_it() -> None:
    ssh = msgspec.structs.replace(
        PINNED, bastion="me@[fe80::1]:2222", bastion_host_keys=("ssh-ed25519 BBBB",)
    )
    words = to_bastion(ssh, KNOWN)
    assert 'UserKnownHostsFile="/var/with blank/known_hosts"' in words
    assert "GlobalKnownHostsFile=/dev/null" in words
    assert "HostKeyAlias=bastion-fe80--1-2222" in words
    without = to_bastion(msgspec.structs.replace(ssh, bastion_host_keys=()), KNOWN)
    assert not [word for word in without if "KnownHosts" in word or "HostKeyAlias" in word]


def test_a_bastion_may_have_a_key_of_its_own() -> None:
    ssh = msgspec.structs.replace(PINNED, bastion="jump", bastion_key_file="/keys/jump")
    words = to_bastion(ssh, KNOWN)
    assert words[words.index("-i") + 1] == "/keys/jump"
    assert 'IdentityFile="/keys/id"' in identity(host(ssh), KNOWN)


def test_two_bastions_are_pinned_apart() -> None:
    places = ["jump", "jump:2222", "me@other", "[fe80::1]:22"]
    markers = [bastion_marker(SshTarget(user="ops", bastion=place)) for place in places]
    assert len(set(markers)) == len(places)
    assert bastion_marker(SshTarget(user="ops", bastion="me@jump:22")) == markers[0]


def test_an_address_that_resembles_an_option_is_still_an_address() -> None:
    odd = msgspec.structs.replace(host(PINNED), address="-oProxyCommand=true")
    assert destination(odd)[-2:] == ["--", "-oProxyCommand=true"]


def test_every_option_has_its_flag() -> None:
    assert as_arguments(["A=1", "B=2"]) == ["-o", "A=1", "-o", "B=2"]
