"""What goes wrong with real nodes, as a table: add a row, and `make torture-nodes` draws it.

A fault is done to the containers of a local cluster, or to the disk that its state is on, and taken
back; what it breaks is left to gcluster. `is_felt` says whether the cluster is then not well.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..e2e.conftest import LiveCluster


class NodeFault(NamedTuple):
    """One row of the table."""

    name: str
    node: str
    do: Callable[[LiveCluster, str], None]
    take_back: Callable[[LiveCluster, str], None]
    is_felt: bool = True


def _call(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def _container(live: LiveCluster, node: str) -> str:
    return f"gcluster-{live.name}-{node}"


def _podman(*words: str) -> Callable[[LiveCluster, str], None]:
    return lambda live, node: (
        None if not words else (_call("podman", *words, _container(live, node)), None)[1]
    )


def _inside(command: str) -> Callable[[LiveCluster, str], None]:
    """Run a command on a node as root, past gcluster."""

    def act(live: LiveCluster, node: str) -> None:
        _call("podman", "exec", _container(live, node), "sh", "-c", command)

    return act


def _on_network(command: str) -> Callable[[LiveCluster, str], None]:
    """Run a command of this machine in a node's network namespace."""

    def act(live: LiveCluster, node: str) -> None:
        pid = _call("podman", "inspect", "--format", "{{.State.Pid}}", _container(live, node))
        _call("nsenter", "-t", pid, "-n", "sh", "-c", command)

    return act


_SLOWED: dict[str, subprocess.Popen[str]] = {}
"""Container -> what delays its packets."""


def _slow(live: LiveCluster, node: str) -> None:
    """Delay what a node sends by 200 ms and lose 5 % of it."""
    pid = _call("podman", "inspect", "--format", "{{.State.Pid}}", _container(live, node))
    program = [sys.executable, str(Path(__file__).with_name("slow_network.py")), "200", "5"]
    slowed = subprocess.Popen(
        ["nsenter", "-t", pid, "-n", *program], stdout=subprocess.PIPE, text=True
    )
    assert slowed.stdout is not None
    assert slowed.stdout.readline() == "slow\n"
    _SLOWED[node] = slowed


def _fast_again(live: LiveCluster, node: str) -> None:
    _SLOWED[node].kill()
    _SLOWED.pop(node).wait()
    _CALM(live, node)


def _nothing(_: LiveCluster, __: str) -> None:
    """Leave it to gcluster."""


def _small_disk(options: str) -> Callable[[LiveCluster, str], None]:
    """Put the state on a disk of its own that is full, or can't be written."""

    def act(live: LiveCluster, _: str) -> None:
        state = live.spec.parent / ".gcluster" / live.name
        aside = state.with_name(f"{live.name}.aside")
        shutil.copytree(state, aside)
        _call("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(state))
        shutil.copytree(aside, state, dirs_exist_ok=True)
        if options == "full":
            used = int(_call("df", "--output=used", "-k", str(state)).split()[-1])
            _call("mount", "-o", f"remount,size={used}k", str(state))
        else:
            _call("mount", "-o", "remount,ro", str(state))

    return act


def _own_disk_again(live: LiveCluster, _: str) -> None:
    state = live.spec.parent / ".gcluster" / live.name
    written = state.with_name(f"{live.name}.written")
    shutil.copytree(state, written)
    _call("umount", str(state))
    shutil.rmtree(state)
    written.rename(state)
    shutil.rmtree(state.with_name(f"{live.name}.aside"))


_CALM = _on_network("iptables --flush")
_DROP = "-m statistic --mode random --probability"

NODE_FAULTS: tuple[NodeFault, ...] = (
    NodeFault("container killed", "gpu001", _podman("kill"), _nothing),
    NodeFault("container removed", "gpu002", _podman("rm", "--force", "--volumes"), _nothing),
    NodeFault("controller killed", "head", _podman("kill"), _nothing),
    NodeFault("node restarted, not missed", "gpu002", _podman("restart", "--time=0"), _nothing),
    NodeFault("slurmd stopped", "gpu001", _inside("systemctl stop slurmd"), _nothing),
    NodeFault("slurmctld stopped", "head", _inside("systemctl stop slurmctld"), _nothing),
    NodeFault("munge stopped", "gpu002", _inside("systemctl stop munge"), _nothing),
    NodeFault("sshd stopped", "gpu001", _inside("systemctl stop ssh.socket ssh 2>/dev/null; true"),
              _inside("systemctl start ssh"), is_felt=False),
    NodeFault("network slow and lossy", "gpu001", _slow, _fast_again, is_felt=False),
    NodeFault("network lossy", "gpu001", _on_network(f"iptables -A INPUT {_DROP} 0.05 -j DROP"),
              _CALM, is_felt=False),
    NodeFault("network lost", "gpu002",
              _on_network("iptables -A INPUT -j DROP; iptables -A OUTPUT -j DROP"), _CALM),
    NodeFault("names not resolved", "gpu001",
              _inside("cp /etc/resolv.conf /tmp/r; echo nameserver 192.0.2.1 >/etc/resolv.conf"),
              _inside("cat /tmp/r >/etc/resolv.conf"), is_felt=False),
    NodeFault("slurmd hangs", "gpu002", _inside("pkill -STOP slurmd"),
              _inside("pkill -CONT slurmd"), is_felt=False),
    NodeFault("node hangs", "gpu001", _podman("pause"), _nothing),
    NodeFault("state on a full disk", "", _small_disk("full"), _own_disk_again, is_felt=False),
    NodeFault("state on a read-only disk", "", _small_disk("ro"), _own_disk_again, is_felt=False),
)  # fmt: skip
"""What isn't felt at once: Slurm gives a silent slurmd its time (SlurmdTimeout), and connections
that are open outlive their sshd.
"""
