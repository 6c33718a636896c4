"""Machines are read back with the keys that they published, and their topology."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from gcp_cases import site_of, spec_of
from google_double import Google

from gcluster.inventory.hosts import Placement
from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.gcp import cloud_init
from gcluster.stacks.gcp.elastic import name_queued
from gcluster.stacks.gcp.hosts import guest_keys, instances, placement, seen
from gcluster.stacks.gcp.plan.layout import SitePlan, site_plan
from gcluster.stacks.pulumi.hosts import to_hosts
from gcluster.stacks.pulumi.names import HOST, POOL, TOKEN

KEY = [{"namespace": "hostkeys", "key": "ssh-ed25519", "value": "AAAAC3Nza"}]


def plan_of(machine: str) -> SitePlan:
    spec = spec_of(machine)
    return site_plan(spec, site_of(spec), load_catalog())


def labels(plan: SitePlan, pool: str, host: str = "", **more: str) -> dict[str, str]:
    own = {"gcluster-cluster": plan.cluster, "gcluster-site": plan.site, POOL: pool}
    return own | ({HOST: host} if host else {}) | more


@pytest.fixture
def google() -> Iterator[Google]:
    double = Google()
    yield double
    double.close()


def test_only_the_sites_machines_are_read_from_all_zones(google: Google) -> None:
    plan = plan_of("a3-highgpu-8g")
    google.add("tcpx-east-head", "us-east4-a", labels(plan, "head", "head"))
    google.add("tcpx-east-train001", "us-east4-b", labels(plan, "train", "train001"))
    google.add("somebody-else", "us-east4-a", {"gcluster-cluster": "tcpx"})
    found = instances(google.api(), plan)
    assert [(m.name, m.zone_name) for m in found] == [
        ("tcpx-east-head", "us-east4-a"),
        ("tcpx-east-train001", "us-east4-b"),
    ]


def test_hosts_come_in_spec_order_and_are_reached_through_the_login(google: Google) -> None:
    plan = plan_of("a3-highgpu-8g")
    public = [{"networkIP": "10.60.0.9", "accessConfigs": [{"natIP": "198.51.100.7"}]}]
    google.add("tcpx-east-train002", "us-east4-a", labels(plan, "train", "train002"))
    google.add("tcpx-east-train001", "us-east4-a", labels(plan, "train", "train001"))
    google.add("tcpx-east-login", "us-east4-a", labels(plan, "login", "login"),
               networkInterfaces=public)  # fmt: skip
    google.add("tcpx-east-head", "us-east4-a", labels(plan, "head", "head"))
    machines = instances(google.api(), plan)
    keys = {machine.id: (f"ssh-ed25519 {machine.name}",) for machine in machines}
    hosts = to_hosts(plan, [seen(plan, m) for m in machines], keys, key_file="/k", via=None)
    assert [host.name for host in hosts] == ["head", "login", "train001", "train002"]
    assert {host.ssh.bastion_host_keys for host in hosts} == {("ssh-ed25519 tcpx-east-login",)}
    assert {host.ssh.bastion for host in hosts} == {"gcluster@198.51.100.7"}
    assert [host.address for host in hosts][1] == "10.60.0.9", "nodes use private addresses"
    assert {host.ssh.user for host in hosts} == {"gcluster"}


def test_elastic_machines_are_called_by_their_own_names(google: Google) -> None:
    plan = plan_of("a3-ultragpu-8g")
    google.add("gib-west-train007", "us-central1-b", labels(plan, "train", **{TOKEN: "t"}))
    there = [seen(plan, machine) for machine in instances(google.api(), plan)]
    [host] = to_hosts(plan, there, {}, key_file=None, via=None)
    assert (host.name, host.pool) == ("train007", "train")


def test_a_machine_shows_its_keys(google: Google) -> None:
    plan = plan_of("a3-highgpu-8g")
    google.add("tcpx-east-head", "us-east4-a", labels(plan, "head", "head"))
    machines = instances(google.api(), plan)
    assert guest_keys(google.api(), machines[0]) == (), "it told none yet"
    google.keys["tcpx-east-head"] = KEY
    assert guest_keys(google.api(), machines[0]) == ("ssh-ed25519 AAAAC3Nza",)


@pytest.mark.parametrize(
    ("status", "one_domain", "stands"),
    [
        ({"physicalHostTopology": {"block": "b1", "subblock": "s3"}}, False, ("b1", "s3")),
        ({"physicalHostTopology": {"block": "b1", "subblock": "s3"}}, True, ("s3", "s3")),
        ({"physicalHost": "/b1/s3/h9"}, False, ("b1", "s3")),
        ({}, False, (None, None)),
    ],
)
def test_where_a_machine_is_is_reported_by_google(
    google: Google, status: object, one_domain: bool, stands: tuple[str | None, str | None]
) -> None:
    plan = plan_of("a3-highgpu-8g")
    google.add("x", "us-east4-a", labels(plan, "train"), resourceStatus=status)
    [machine] = instances(google.api(), plan)
    block, leaf = stands
    assert placement(machine, one_domain=one_domain) == Placement(block=block, leaf=leaf)


def test_queued_machines_get_the_pools_names_once_and_keep_them(google: Google) -> None:
    plan = plan_of("a4-highgpu-8g")
    for end in ("zz01", "aa02", "mm03"):
        google.add(f"queued-south-train-{end}", "us-south1-b", labels(plan, "train"))
    api = google.api()
    assert name_queued(api, plan, instances(api, plan)) == 3
    first = {name: m["labels"][HOST] for name, m in google.machines.items()}
    assert sorted(first.values()) == ["train001", "train002", "train003"]
    del google.machines["queued-south-train-mm03"]
    google.add("queued-south-train-bb04", "us-south1-b", labels(plan, "train"))
    assert name_queued(api, plan, instances(api, plan)) == 1
    now = {name: m["labels"][HOST] for name, m in google.machines.items()}
    assert now.items() >= {n: h for n, h in first.items() if not n.endswith("mm03")}.items()
    assert sorted(now.values()) == ["train001", "train002", "train003"]
    assert name_queued(api, plan, instances(api, plan)) == 0


def test_the_start_script_goes_as_far_as_ssh_and_is_the_same_for_all() -> None:
    answer = cloud_init.metadata("ops", "ssh-ed25519 AAAA somebody@laptop")
    assert answer["ssh-keys"] == "ops:ssh-ed25519 AAAA ops", "no name of a person or machine"
    script = answer["startup-script"]
    for setting in ("PasswordAuthentication no", "PermitRootLogin no", "sshd -t"):
        assert setting in script
    for word in ("apt", "dnf", "pip", "docker", "useradd"):
        assert f"{word} " not in script, "everything else is the roles' job"
    assert json.dumps(answer) == json.dumps(cloud_init.metadata("ops", "ssh-ed25519 AAAA other"))


@pytest.mark.parametrize(
    "key",
    ["", "ssh-ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----", "ssh-ed25519 AAAA\nssh-rsa BBBB"],
)
def test_what_is_not_one_public_key_never_becomes_metadata(key: str) -> None:
    with pytest.raises(ValueError, match="not a public key"):
        cloud_init.metadata("ops", key)


def test_a_tunnel_leads_to_the_login_and_through_it_to_all_others(google: Google) -> None:
    plan = plan_of("a3-highgpu-8g")
    for name in ("train001", "login"):
        google.add(f"tcpx-east-{name}", "us-east4-a", labels(plan, name.rstrip("01"), name))
    machines = instances(google.api(), plan)
    keys = {machine.id: (f"ssh-ed25519 {machine.name}",) for machine in machines}
    there = [seen(plan, machine, tunnel=True) for machine in machines]
    hosts = to_hosts(plan, there, keys, key_file="/k", via=None)
    for host in hosts:
        assert host.ssh.bastion_proxy[2:5] == ("start-iap-tunnel", "tcpx-east-login", "%p")
        assert host.ssh.bastion_host_keys == ("ssh-ed25519 tcpx-east-login",)
