"""The way in through a bastion, with real sshds: both keys are pinned, a changed one is refused.

The node's sshd listens inside the bastion's network alone, so that there is no other way to it.
"""

from __future__ import annotations

import secrets
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.e2e.room import podman

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.cluster import places
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession, Unreachable
from gcluster.lifecycle.nodes.ssh.arguments import destination
from gcluster.lifecycle.nodes.ssh.unreachable import fingerprint
from gcluster.stacks.local.engine import find_engine
from gcluster.stacks.local.image.base_image import ensure_base

pytestmark = pytest.mark.local

NODE_PORT, CROWD_PORT, BASTION_PORT = 2222, 2223, 2200
SSHD = (
    "mkdir -p /run/sshd; ssh-keygen -A; "
    "exec /usr/sbin/sshd -D -o Port={port} -o ListenAddress={at} {limits}"
)
STOCK = "-o MaxStartups=10:30:100 -o MaxSessions=10"
"""sshd_config(5): what an unprepared bastion has."""
ROOMY = "-o MaxStartups=1000"
"""One sshd serves as all nodes here; each real one has its own."""
MANY = 64
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=8192:8192")
LOGINS = (
    r"cat /proc/[0-9]*/cmdline 2>&- | tr '\0' ' ' | grep -ao 'sshd[a-z-]*: ops \[priv\]' | wc -l"
)
"""Shell that counts the logins which a bastion has open."""
LET_IN = """\
id {user} >/dev/null 2>&1 || useradd --create-home {user}
home=$(getent passwd {user} | cut -d: -f6)
usermod -p '*' {user}
install -d -m 700 -o {user} $home/.ssh
cat > $home/.ssh/authorized_keys && chown -R {user} $home/.ssh
for i in $(seq 100); do [ -s /etc/ssh/ssh_host_ed25519_key.pub ] && break; sleep 0.1; done
cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub
"""


def addresses() -> list[str]:
    """Return an address for each of many nodes."""
    return [f"127.0.1.{number}" for number in range(1, MANY + 1)]


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


class Gate:
    """A bastion, and a node that only it reaches."""

    def __init__(self, folder: Path) -> None:
        """Make the login keys; start nothing."""
        self.name = f"gate-{secrets.token_hex(3)}"
        self.bastion, self.node = f"{self.name}-bastion", f"{self.name}-node"
        self.node_key, self.bastion_key = make_key(folder / "node"), make_key(folder / "jump")
        self.address = ""

    def start(self) -> None:
        """Start both machines; they make their host keys themselves."""
        engine = find_engine()
        image = ensure_base(engine, places.private_directory(places.cache_home()))
        run = ("run", "--detach", "--label", f"gcluster.test={self.name}", *LIMITS)
        if "runc" in podman("info", "--format", "{{.Host.OCIRuntime.Name}}"):
            run = (*run, "--runtime", "runc")
        podman("network", "create", "--label", f"gcluster.test={self.name}", self.name)
        outside = SSHD.format(port=BASTION_PORT, at="0.0.0.0", limits=STOCK)  # noqa: S104  # of the container
        crowd = f"/usr/sbin/sshd -o Port={CROWD_PORT} {ROOMY}"
        inside = SSHD.format(port=NODE_PORT, at="127.0.0.2", limits="")
        inside = inside.replace("exec ", f"{crowd}; exec ")
        podman(*run, "--name", self.bastion, "--network", self.name, image, "sh", "-c", outside)
        podman(
            *run, "--name", self.node, "--network", f"container:{self.bastion}", image,
            "sh", "-c", inside,
        )  # fmt: skip
        found = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        self.address = podman("inspect", "--format", found, self.bastion)

    def allowed_networks(self, container: str, user: str, key: Path) -> str:
        """Let a key in and return the machine's own public host key."""
        public = key.with_suffix(".pub").read_text(encoding="utf-8")
        line = LET_IN.format(user=user)
        return podman("exec", "--interactive", container, "sh", "-c", line, stdin=public)

    def renew_bastion_key(self) -> None:
        """Do what a reinstalled bastion, or an impostor, does."""
        line = "rm /etc/ssh/ssh_host_*; ssh-keygen -q -A; kill -HUP 1"
        podman("exec", self.bastion, "sh", "-c", line)
        listening = f"until exec 3<>/dev/tcp/127.0.0.1/{BASTION_PORT}; do sleep 0.2; done"
        podman("exec", self.bastion, "timeout", "60", "bash", "-c", listening)

    def stop(self) -> None:
        """Remove both and their network, whatever state they are in."""
        for name in (self.node, self.bastion):
            subprocess.run(
                ["podman", "rm", "-f", "-v", "-t", "0", name], capture_output=True, check=False
            )
        subprocess.run(["podman", "network", "rm", self.name], capture_output=True, check=False)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def host(gate: Gate) -> Host:
    """The node as an inventory has it, with the keys both machines made themselves."""
    bastion_key = gate.allowed_networks(gate.bastion, "ops", gate.bastion_key)
    return Host(
        name="gpu001",
        site="cloud",
        pool="gpu",
        role="compute",
        machine=None,
        address="127.0.0.2",
        ssh=SshTarget(
            user="root",
            port=NODE_PORT,
            key_file=str(gate.node_key),
            host_keys=(gate.allowed_networks(gate.node, "root", gate.node_key),),
            bastion=f"ops@{gate.address}:{BASTION_PORT}",
            bastion_key_file=str(gate.bastion_key),
            bastion_host_keys=(bastion_key,),
        ),
    )


def run_once(host: Host, folder: Path) -> SshResult | Unreachable:
    """Run a command over a connection of its own."""
    workdir = folder / secrets.token_hex(4)
    workdir.mkdir(mode=0o700)
    with SshSession(workdir) as session:
        try:
            return session.run(host, "hostname; whoami")
        finally:
            session.close()


def changed(host: Host, **target: object) -> Host:
    return msgspec.structs.replace(host, ssh=msgspec.structs.replace(host.ssh, **target))


def test_a_node_is_reached_through_its_bastion_by_pinned_keys_alone(
    gate: Gate, host: Host, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host.address, NODE_PORT), timeout=2)
    answer = run_once(host, tmp_path)
    assert isinstance(answer, SshResult), answer
    assert answer.stdout.split()[-1] == "root"

    unknown = run_once(changed(host, bastion_host_keys=()), tmp_path)
    assert isinstance(unknown, Unreachable)
    assert unknown.reason.startswith("its bastion: its host key is unknown")

    swapped = run_once(changed(host, bastion_host_keys=host.ssh.host_keys), tmp_path)
    assert isinstance(swapped, Unreachable), "the node's own key doesn't vouch for the bastion"

    refused = run_once(changed(host, bastion_key_file=str(gate.node_key)), tmp_path)
    assert isinstance(refused, Unreachable)
    assert "its bastion: login refused for user ops" in refused.reason


def test_a_bastion_whose_key_changed_is_refused_and_both_keys_are_named(
    gate: Gate, host: Host, tmp_path: Path
) -> None:
    assert isinstance(run_once(host, tmp_path), SshResult)
    gate.renew_bastion_key()
    answer = run_once(host, tmp_path)
    assert isinstance(answer, Unreachable)
    assert "its bastion: its host key changed" in answer.reason
    assert fingerprint(host.ssh.bastion_host_keys[0]) in answer.reason
    assert f"{gate.address} port {BASTION_PORT}" in answer.reason
    again = gate.allowed_networks(gate.bastion, "ops", gate.bastion_key)
    assert isinstance(run_once(changed(host, bastion_host_keys=(again,)), tmp_path), SshResult)


def many(host: Host) -> list[Host]:
    """Return as many nodes behind the same bastion, each with a connection of its own."""
    return [
        msgspec.structs.replace(
            changed(host, port=CROWD_PORT), name=f"gpu{number:03d}", address=address
        )
        for number, address in enumerate(addresses(), start=1)
    ]


def test_a_stock_bastion_loses_none_of_64_nodes_that_are_reached_at_once(
    host: Host, tmp_path: Path
) -> None:
    with SshSession(tmp_path) as session:
        try:
            answers = session.run_many(many(host), "whoami")
        finally:
            session.close()
    lost = {name: a.reason for name, a in answers.items() if isinstance(a, Unreachable)}
    assert lost == {}
    assert len(answers) == MANY


def test_ansible_and_commands_share_one_login_at_the_bastion(
    gate: Gate, host: Host, tmp_path: Path
) -> None:
    with SshSession(tmp_path) as session:
        try:
            session.connect(many(host))
            arguments = shlex.split(str(session.ansible_variables(host)["ansible_ssh_common_args"]))
            starts = [
                subprocess.Popen(["ssh", *arguments, *destination(node), "true"])
                for node in many(host)
            ]
            assert {start.wait() for start in starts} == {0}
            assert isinstance(session.run(host, "true"), SshResult)
            logins = podman("exec", gate.bastion, "sh", "-c", LOGINS)
        finally:
            session.close()
    assert logins == "1"


RELAY = """
import socket, sys, threading, os
to = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while block := os.read(0, 65536):
        to.sendall(block)
    to.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while block := to.recv(65536):
    os.write(1, block)
"""
"""A double of a cloud's own command: carries one connection over its standard streams."""


def test_a_program_of_a_cloud_leads_to_a_bastion_that_no_address_reaches(
    gate: Gate, host: Host, tmp_path: Path
) -> None:
    nowhere = changed(host, bastion=f"ops@192.0.2.9:{BASTION_PORT}")
    proxy = (sys.executable, "-c", RELAY, gate.address, "%p")
    tunnelled = changed(nowhere, bastion_proxy=proxy)
    answer = run_once(tunnelled, tmp_path)
    assert isinstance(answer, SshResult), answer
    words = SshSession(tmp_path).argv(tunnelled, ["true"])  # as `gcluster ssh` logs in
    assert subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode == 0
    missing = run_once(changed(nowhere, bastion_proxy=("no-such-command", "%p")), tmp_path)
    assert isinstance(missing, Unreachable)
    assert missing.reason.startswith("its bastion: ")
