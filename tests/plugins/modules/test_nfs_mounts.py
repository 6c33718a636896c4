"""An NFS mount takes the newest version that its server has, unless the spec sets one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from recorded_machine import Machine
from running import module

OPTIONS = ["vers=4.2", "proto=tcp", "hard"]
MOUNT = {"path": "/home", "server": "10.0.0.9", "export": "/vol/home"}
UNSPOKEN = "mount.nfs: Protocol not supported for 10.0.0.9:/vol/home on /home"


@pytest.fixture
def node(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a node whose server has the versions in its file `versions`."""
    root = machine.root
    (root / "units").mkdir()
    machine.file("speaks", "4.1 4.2")
    machine.file("said", UNSPOKEN)
    monkeypatch.setattr(module("nfs_mounts"), "UNITS", root / "units")
    monkeypatch.setattr(module("nfs_mounts"), "silence", lambda _: "")
    machine.tool("systemd-escape", "echo home.mount")
    machine.tool("journalctl", f"cat {root}/said")
    machine.tool("stat", "exit 0")
    machine.tool(
        "systemctl",
        f"cd {root}\ncase $1 in is-active) [ -e mounted ] ;; stop) rm mounted ;;\n"
        "start) vers=$(sed -n 's/.*vers=\\([0-9.]*\\).*/\\1/p' units/home.mount)\n"
        "  echo $vers >>tried; grep -qw $vers speaks && echo $vers >mounted ;;\nesac",
    )
    machine.tool(
        "findmnt",
        f"v=$(cat {root}/mounted) || exit 1\n"
        'echo \'{"filesystems":[{"source":"x","fstype":"nfs4","options":'
        '"rw,vers=\'"$v"\',proto=tcp,hard,nconnect=8"}]}\'',
    )
    return machine


def params(**mount: Any) -> dict[str, Any]:
    return {"host": "gpu01", "mounts": [{**MOUNT, **mount}], "options": OPTIONS}


def test_a_server_of_4_1_is_mounted_with_it_once_and_passes(node: Machine) -> None:
    node.file("speaks", "4.1")
    first = node.call("nfs_mounts", params())
    assert first["changes"] == ["mounted: /home", "/home: its server supports NFS 4.1 and not 4.2"]
    assert node.call("nfs_mounts", params())["changed"] is False
    assert (node.root / "tried").read_text().split() == ["4.2", "4.1"]
    assert node.call("nfs_mounts", params() | {"state": "verified"})["failed"] is False


def test_a_server_of_4_2_gets_no_other_options(node: Machine) -> None:
    assert node.call("nfs_mounts", params())["changes"] == ["mounted: /home"]
    node.file("mounted", "4.1")
    wrong = node.call("nfs_mounts", params() | {"state": "verified"})
    assert wrong["differences"] == ["/home was requested with vers=4.2 and is vers=4.1"]


@pytest.mark.parametrize(
    ("options", "message"), [(["vers=4.2"], UNSPOKEN), ([], "mount.nfs: access denied by server")]
)
def test_another_version_is_tried_only_where_none_is_given_and_it_would_help(
    node: Machine, options: list[str], message: str
) -> None:
    node.file("speaks", "4.1")
    node.file("said", message)
    refused = node.call("nfs_mounts", params(options=options))
    assert refused["msg"] == f"/home can't be mounted: {message}"
    assert (node.root / "tried").read_text().split() == ["4.2"]


TLS = {"tls": "home", "tls_port": 20060}


@pytest.fixture
def tunnels(node: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of stunnel's configurations on a node."""
    found = node.root / "stunnel"
    found.mkdir()
    shared = sys.modules[module("nfs_mounts").open_tunnels.__module__]
    monkeypatch.setattr(shared, "CONFIGURATIONS", found)
    monkeypatch.setattr(shared, "UNITS", node.root / "units")
    monkeypatch.setattr(shared, "AUTHORITIES", (node.root / "other.crt", node.root / "ca.crt"))
    node.file("ca.crt", "trusted")
    return found


def test_with_tls_the_node_mounts_its_own_end_of_a_tunnel(node: Machine, tunnels: Path) -> None:
    given = params(**TLS)
    assert node.call("nfs_mounts", given)["changes"] == [
        "TLS to 10.0.0.9, for /home",
        "mounted: /home",
    ]
    unit = (node.root / "units/home.mount").read_text()
    assert "What=127.0.0.1:/vol/home\n" in unit
    assert ",port=20060\n" in unit
    assert "After=gcluster-nfs-tls@home.service\n" in unit
    written = (tunnels / "gcluster-nfs-home.conf").read_text()
    for line in (
        "accept = 127.0.0.1:20060",
        "connect = 10.0.0.9:2049",
        f"CAfile = {node.root}/ca.crt",
        "verifyChain = yes",
        "checkHost = 10.0.0.9",
    ):
        assert f"{line}\n" in written
    assert node.call("nfs_mounts", given)["changed"] is False

    plain = node.call("nfs_mounts", params())
    assert plain["changes"] == ["mounted again: /home", "no TLS tunnel any more: home"]
    assert list(tunnels.iterdir()) == []


def test_a_mount_past_its_tunnel_is_named(node: Machine, tunnels: Path) -> None:
    given = params(**TLS)
    node.call("nfs_mounts", given)
    (tunnels / "gcluster-nfs-home.conf").write_text("verifyChain = no\n")
    wrong = node.call("nfs_mounts", given | {"state": "verified"})["differences"]
    assert f"{tunnels}/gcluster-nfs-home.conf is not as written" in wrong
    assert "/home was requested with port=20060 and is not so" in wrong
