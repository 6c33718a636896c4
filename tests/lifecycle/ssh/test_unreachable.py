"""What OpenSSH 9 and 10 write to stderr, as a person reads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.nodes.ssh.unreachable import describe_reason, fingerprint, sudo_refused

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEzDgpqeblvjIQ5DGaKitwKFZ/kyu1DspKcZDpE2LI5N"
HOST = Host(
    name="n1",
    site="here",
    pool="gpu",
    role="compute",
    machine=None,
    address="10.0.0.1",
    ssh=SshTarget(user="ops", key_file="/keys/id", host_keys=(KEY,)),
)
CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
The fingerprint for the ED25519 key sent by the remote host is
SHA256:4cwCc2mnuI2V7+imkXiLOuo2J57WfjJXz3t9OqM74rs.
Host key verification failed.
"""
NO_KEY = """\
no such identity: /keys/id: No such file or directory
ops@10.0.0.1: Permission denied (publickey).
"""


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("ssh: connect to host 10.0.0.1 port 22: Connection refused", "connection refused"),
        ("ssh: connect to host 10.0.0.1 port 22: Connection timed out", "no answer"),
        ("ssh: connect to host 10.0.0.1 port 22: No route to host", "no route to host"),
        ("ssh: Could not resolve hostname n1.x: Name or service not known", "n1.x doesn't resolve"),
        (CHANGED, f"expected {fingerprint(KEY)}, 10.0.0.1 port 22 offers SHA256:4cwCc2mnuI2V7"),
        ("No ED25519 host key is known for n1.here and you have requested", "no known_hosts line"),
        ("ops@10.0.0.1: Permission denied (publickey).", "refused for user ops with /keys/id"),
        (NO_KEY, "/keys/id (No such file or directory)"),
        ("sudo: a password is required", "user ops may not become root there"),
        ("Connection closed by 10.0.0.1 port 22", "closed before the login"),
        ("something new\n", "something new"),
        ("", "port 22: the connection was lost (ssh ended with 255 and without a word)"),
    ],
)
def test_a_reason_is_one_line_as_text(stderr: str, words: str) -> None:
    reason = describe_reason(stderr, HOST)
    assert words in reason
    assert "\n" not in reason


def test_a_command_that_merely_mentions_sudo_is_not_a_refusal() -> None:
    assert sudo_refused("see sudo(8)", HOST) == ""


def test_a_fingerprint_is_that_of_ssh_keygen(tmp_path: Path) -> None:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    public = path.with_suffix(".pub")
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(public)], check=True, capture_output=True, text=True
    ).stdout
    assert fingerprint(public.read_text()) in shown
