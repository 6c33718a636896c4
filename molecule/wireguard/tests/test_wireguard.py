"""Two sites that nothing joins but the tunnel: packets cross it, of any size, and keys change."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
import testinfra
from conftest import Play
from testinfra.host import Host

INVENTORY = os.environ["MOLECULE_INVENTORY_FILE"]


@pytest.fixture(scope="session")
def node() -> Callable[[str], Host]:
    """Return a function that returns a node by its name."""
    return lambda name: testinfra.get_host(f"ansible://{name}?ansible_inventory={INVENTORY}")


def test_a_host_behind_one_gateway_reaches_the_other_site_through_the_tunnel(
    node: Callable[[str], Host],
) -> None:
    assert node("node02").check_output("ping -n -q -c 2 -W 5 -I 10.20.1.1 10.40.0.1")
    assert node("node03").check_output("ping -n -q -c 2 -W 5 10.20.1.1")
    route = json.loads(node("node03").check_output("ip -json route get 10.20.1.1"))[0]
    assert (route["dev"], route["prefsrc"]) == ("gcluster", "10.40.0.1")
    dump = node("node01").check_output("wg show gcluster dump").splitlines()[1].split("\t")
    assert int(dump[5]) > 0, "bytes came through the tunnel"


def test_a_large_transfer_crosses_the_smaller_mtu(node: Callable[[str], Host]) -> None:
    wide = json.loads(node("node02").check_output("ip -json link show eth0"))[0]["mtu"]
    narrow = json.loads(node("node01").check_output("ip -json link show gcluster"))[0]["mtu"]
    assert narrow < wide
    node("node03").check_output(
        "systemctl is-active -q sink || systemd-run -q --unit=sink python3 -m http.server 8000 "
        "--bind 10.40.0.1 --directory /usr/bin"
    )
    get = (
        "import urllib.request as u; print(len(u.urlopen('http://10.40.0.1:8000/python3').read()))"
    )
    got = node("node02").check_output("timeout 30 python3 -c %s", get)
    assert int(got) == node("node03").file("/usr/bin/python3.13").size


def test_only_the_sites_own_networks_pass(node: Callable[[str], Host]) -> None:
    node("node02").check_output("ip address replace 10.99.0.1/32 dev lo")
    stranger = node("node02").run("ping -n -q -c 1 -W 2 -I 10.99.0.1 10.40.0.1")
    assert stranger.rc != 0
    assert "10.20.0.0/16" in node("node01").check_output("nft list table inet gcluster_tunnel")


def test_the_private_key_is_roots_alone_and_in_no_other_file(node: Callable[[str], Host]) -> None:
    key = node("node01").file("/etc/wireguard/gcluster.key")
    assert (key.user, key.mode) == ("root", 0o600)
    found = node("node01").run("grep -rlFf /etc/wireguard/gcluster.key /etc /run /var/log")
    assert found.stdout.strip() == "/etc/wireguard/gcluster.key"


def test_it_comes_back_with_its_unit(node: Callable[[str], Host], converge: Play) -> None:
    node("node01").check_output("systemctl stop gcluster-tunnel.service")
    assert node("node01").run("ip link show gcluster").rc != 0
    run = converge(phases=["verify"])
    assert run.returncode != 0
    assert "no tunnel is up" in run.printed
    node("node01").check_output("systemctl start gcluster-tunnel.service")
    assert converge(phases=["verify"]).returncode == 0


def test_a_key_of_another_cluster_makes_no_session_and_a_rotation_makes_one(
    node: Callable[[str], Host], converge: Play
) -> None:
    alone = converge("--limit", "node01,localhost", phases=["configure", "join"], head_key="next")
    assert alone.returncode == 0, alone.printed
    failed = converge("--limit", "node01", phases=["verify"])
    assert failed.returncode != 0
    assert "no session with gate of east" in failed.printed
    both = converge(phases=["configure", "join", "verify"], head_key="next", peers="rotated")
    assert both.returncode == 0, both.printed
    assert node("node02").check_output("ping -n -q -c 1 -W 5 10.40.0.1")
    assert converge().returncode == 0


def test_two_ends_that_wait_for_each_other_are_reported_before_anything_is_done(
    converge: Play,
) -> None:
    gate = {"name": "gate", "site": "east", "networks": ["10.40.0.0/16"]}
    unknown = {**gate, "endpoint": "", "keepalive": 25}
    run = converge("--limit", "node01", phases=["preflight"], gate=unknown)
    assert run.returncode != 0
    assert "neither node01 nor gate has an address that the other site reaches" in run.printed


def test_nothing_stays_of_tunnels_and_routes_that_a_spec_drops(
    node: Callable[[str], Host], converge: Play
) -> None:
    ended = converge(phases=["remove"], way_phases=["remove"])
    assert ended.returncode == 0, ended.printed
    for gateway in ("node01", "node03"):
        assert node(gateway).run("ip link show gcluster").rc != 0
        assert node(gateway).run("nft list table inet gcluster_tunnel").rc != 0
        assert not node(gateway).file("/etc/wireguard/gcluster.key").exists
    assert "10.40.0.0/16" not in node("node02").check_output("ip -4 route show")
    again = converge(phases=["remove"], way_phases=["remove"])
    assert again.printed.count("changed=0") == again.printed.count("ok=")
    assert converge().returncode == 0
    assert node("node02").check_output("ping -n -q -c 1 -W 5 10.40.0.1")
