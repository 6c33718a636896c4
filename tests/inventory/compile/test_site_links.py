"""Links between sites: gateways with each other's keys, and nodes that find them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.compile.steps import Step
from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

sys.path.insert(0, str(Path(__file__).parent))
import golden

sys.path.pop(0)

PUBLIC = "198.51.100.7"


def spec(*links: dict[str, Any], **more: Any) -> ClusterSpec:
    """Return a hall with controllers, a room and a cloud, and a fourth pool that jobs spill to."""
    document: dict[str, Any] = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {
            "hall": {
                "provider": "bare-metal",
                "ssh": {"user": "ops"},
                "network": {"cidr": "10.20.0.0/16"},
            },
            "room": {
                "provider": "bare-metal",
                "ssh": {"user": "ops", "port": 2222},
                "network": {"cidr": "10.30.0.0/16"},
            },
            "east": {
                "provider": "aws",
                "region": "us-east-1",
                "zone_id": "use1-az4",
                "network": {"admin_cidrs": ["192.0.2.0/24"]},
            },
        },
        "links": list(links) or [{"between": ["hall", "east"]}],
        "pools": {
            "head": {
                "site": "hall",
                "role": "controller",
                "hosts": [{"name": "head01", "address": "10.20.0.1"}],
            },
            "train": {
                "site": "hall",
                "machine": "dgx-h100",
                "hosts": [{"name": "gpu[1-2]", "address": "10.20.1.[1-2]"}],
            },
            "door": {
                "site": "room",
                "role": "login",
                "hosts": [{"name": "door01", "address": "10.30.0.1"}],
            },
            "gate": {"site": "east", "role": "login", "machine": "m7i.xlarge"},
            "burst": {"site": "east", "machine": "p5.48xlarge", "count": {"max": 4}},
        },
        "scheduler": {
            "type": "slurm",
            "partitions": {"a": {"pools": ["train"], "default": True}, "b": {"pools": ["burst"]}},
        },
        **more,
    }
    loaded = load_text(yaml.safe_dump(document))
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    return loaded.spec


def hosts(of: ClusterSpec) -> ClusterInventory:
    """Return its hosts; the cloud's gateway has the addresses that a cloud gives."""

    def placed(host: Host) -> Host:
        if host.site != "east":
            return host
        return msgspec.structs.replace(host, address="10.40.0.4", public_address=PUBLIC)

    inventory = golden.inventory_of(of)
    return msgspec.structs.replace(inventory, hosts=tuple(map(placed, inventory.hosts)))


def steps(pool: str, of: ClusterSpec) -> dict[str, Step]:
    """Return key -> step of a pool."""
    groups = {g.name: g for g in compile_cluster(of, hosts(of), load_catalog()).groups}
    return {step.key: step for step in groups[pool].steps}


def peers(pool: str, of: ClusterSpec) -> dict[str, dict[str, Any]]:
    found = steps(pool, of)["wireguard.configure"].variables["wireguard_peers"]
    return {peer["name"]: peer for peer in found}


def test_who_has_no_public_address_dials_and_keeps_the_way_back_open() -> None:
    of = spec()
    assert peers("head", of)["gate"] == {
        "name": "gate",
        "site": "east",
        "address": "10.40.0.4",
        "endpoint": f"{PUBLIC}:51820",
        "networks": ["10.40.0.0/16"],
        "keepalive": 25,
    }
    assert peers("gate", of)["head"] == {
        "name": "head",
        "site": "hall",
        "address": "10.20.0.1",
        "endpoint": "",
        "networks": ["10.20.0.0/16"],
        "keepalive": 0,
    }


def test_a_router_that_forwards_the_port_is_dialled_at_its_own_address() -> None:
    for answer, dialled in (
        ("192.0.2.1", "192.0.2.1:51820"),
        ("vpn.example.edu:7000", "vpn.example.edu:7000"),
        ("[2001:db8::1]", "[2001:db8::1]:51820"),
        ("[2001:db8::1]:7000", "[2001:db8::1]:7000"),
    ):
        of = spec({"between": ["hall", "east"], "endpoints": {"hall": answer}})
        assert peers("gate", of)["head"]["endpoint"] == dialled
        assert peers("head", of)["gate"]["keepalive"] == 0


def test_each_gateway_gets_its_own_private_key_and_the_others_public_ones_alone() -> None:
    of = spec({"between": ["hall", "east"]}, {"between": ["hall", "room"]})
    assert steps("head", of)["wireguard.configure"].secrets == {
        "wireguard_key_file": "wireguard-key-head",
        "wireguard_peer_keys_file": "wireguard-peers-door.gate",
    }
    assert steps("gate", of)["wireguard.configure"].secrets == {
        "wireguard_key_file": "wireguard-key-gate",
        "wireguard_peer_keys_file": "wireguard-peers-head",
    }
    assert "wireguard.configure" not in steps("train", of)
    assert "wireguard.configure" not in steps("burst", of)


def test_sites_behind_a_site_are_reached_through_its_gateway_both_ways() -> None:
    of = spec({"between": ["hall", "east"]}, {"between": ["hall", "room"]})
    assert peers("gate", of)["head"]["networks"] == ["10.20.0.0/16", "10.30.0.0/16"]
    assert peers("door", of)["head"]["networks"] == ["10.20.0.0/16", "10.40.0.0/16"]
    assert peers("head", of)["door"]["networks"] == ["10.30.0.0/16"]


def test_hosts_of_a_room_are_reported_its_gateway_and_those_of_a_cloud_have_its_network() -> None:
    of = spec()
    route = {"host": "head01", "gateway": "10.20.0.1", "networks": ["10.40.0.0/16"]}
    assert steps("train", of)["site_routes.configure"].variables == {"site_routes_ways": [route]}
    assert "site_routes.configure" not in steps("burst", of)
    [requested] = steps("burst", of)["site_routes.verify"].variables["site_routes_answers"]
    assert (requested["name"], requested["address"]) == ("head01", "10.20.0.1")


def test_no_node_is_given_the_compute_nodes() -> None:
    of = spec()
    requested = steps("gate", of)["site_routes.verify"].variables["site_routes_answers"]
    assert [host["name"] for host in requested] == ["head01"]


def test_a_link_that_exists_is_queried_first_and_nothing_is_built() -> None:
    of = spec({"between": ["hall", "east"], "via": "vpn"})
    found = steps("train", of)
    [requested] = found["site_routes.preflight"].variables["site_routes_given"]
    assert (requested["name"], requested["via"]) == ("gate", "vpn")
    assert "site_routes.configure" not in found
    assert not [key for key in steps("head", of) if key.startswith("wireguard")]


def test_a_site_that_no_link_joins_is_left_alone() -> None:
    assert not [k for k in steps("door", spec()) if k.startswith(("site_routes", "wireguard"))]


def test_tunnels_come_before_all_that_crosses_them() -> None:
    order = list(steps("gate", spec()))
    assert order.index("base.verify") < order.index("wireguard.preflight")
    assert order.index("wireguard.verify") < order.index("site_routes.verify")
    assert order.index("site_routes.verify") < order.index("munge.install")


def test_a_tunnel_is_as_wide_as_the_narrower_way_out() -> None:
    mtu = steps("head", spec())["wireguard.configure"].variables["wireguard_mtu"]
    assert mtu == 1420
    google = {
        "hall": {
            "provider": "bare-metal",
            "ssh": {"user": "ops"},
            "network": {"cidr": "10.20.0.0/16"},
        },
        "east": {
            "provider": "gcp",
            "project": "acme-ml",
            "region": "us-central1",
            "zone": "us-central1-a",
            "network": {"admin_cidrs": ["192.0.2.0/24"]},
        },
    }
    pools = {
        "head": {"site": "hall", "role": "controller", "hosts": "head01"},
        "train": {"site": "hall", "machine": "dgx-h100", "hosts": "gpu[1-2]"},
        "gate": {"site": "east", "role": "login", "machine": "n2-standard-8"},
    }
    of = spec(sites=google, pools=pools, scheduler={"type": "slurm"})
    assert steps("head", of)["wireguard.configure"].variables["wireguard_mtu"] == 1380


def test_a_firewall_lets_tunnels_in_at_gateways_and_the_other_sites_nodes_everywhere() -> None:
    of = spec(hardening={"management": ["192.0.2.0/24"]})

    def planes(pool: str) -> dict[str, dict[str, Any]]:
        found = steps(pool, of)["hardening.configure"].variables["hardening_planes"]
        return {plane["name"]: plane for plane in found}

    assert planes("gate")["tunnel"]["udp"] == ["51820"]
    assert planes("gate")["tunnel"]["tcp"] == []
    assert "tunnel" not in planes("train")
    assert "10.40.0.0/16" in planes("train")["nodes"]["networks"], "the cloud's default"


def test_burst_nodes_find_controllers_and_logins_of_every_site_by_name() -> None:
    answer = steps("burst", spec())["base.configure"].variables["base_hosts"]
    assert {host["name"]: host["address"] for host in answer} == {
        "head01": "10.20.0.1",
        "door01": "10.30.0.1",
        "gate": "10.40.0.4",
    }
    assert steps("burst", spec())["munge.configure"].secrets == {"munge_key_file": "munge"}
