"""Nodes read back from AWS: private addresses, the way in, pinned keys, and their topology."""

from __future__ import annotations

import pytest

from gcluster.inventory.hosts import Host, Placement
from gcluster.schemas.catalog import Catalog, load_catalog
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.cloud_init import host_keys
from gcluster.stacks.aws.hosts import Instance, State, Tag, console, instances, places, seen
from gcluster.stacks.aws.leftovers import leftovers
from gcluster.stacks.aws.plan.layout import site_plan
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.pulumi.hosts import to_hosts

from .conftest import BASE, CASES, SITE, Recorded, spec_of

CONSOLE = (CASES / "recorded/console.txt").read_text(encoding="utf-8")


@pytest.fixture
def plan(catalog: Catalog) -> SitePlan:
    """Give the plan of a head, a login node and two compute nodes."""
    text = BASE.replace("  train:", "  door: {site: east, role: login}\n  train:")
    return site_plan(spec_of(text), SITE, catalog)


def machine(name: str, pool: str, *, number: int, public: str = "") -> Instance:
    tags = {"gcluster-host": name, "gcluster-pool": pool}
    return Instance(
        instance_id=f"i-{number}",
        state=State(name="running"),
        private_ip_address=f"10.40.0.{number}",
        public_ip_address=public,
        tags=tuple(Tag(key=key, value=value) for key, value in tags.items()),
    )


def hosts(plan: SitePlan, *machines: Instance, way_in: str | None = None) -> dict[str, Host]:
    keys = {"i-2": ("ssh-ed25519 AAAA",), "i-4": ("ssh-ed25519 BBBB",)}
    there = [seen(plan, machine) for machine in machines]
    found = to_hosts(plan, there, keys, key_file="id", via=way_in)
    return {host.name: host for host in found}


def start(api: Api, plan: SitePlan, **tags: str) -> str:
    """Start a machine in moto with the site's tags."""
    ec2 = api.client("ec2")
    pairs = [{"Key": k, "Value": v} for k, v in {**plan.labels.tags(), **tags}.items()]
    started = ec2.run_instances(
        ImageId="ami-1e749f67",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}],
    )
    return str(started["Instances"][0]["InstanceId"])


def test_nodes_are_reached_through_the_login_node(plan: SitePlan) -> None:
    found = hosts(
        plan,
        machine("train001", "train", number=2),
        machine("head", "head", number=3),
        machine("door", "door", number=4, public="198.51.100.4"),
    )
    assert list(found) == ["head", "door", "train001"]  # as the spec orders its pools
    assert found["train001"].address == "10.40.0.2"
    assert found["train001"].ssh.bastion == "ubuntu@198.51.100.4"
    assert found["train001"].ssh.host_keys == ("ssh-ed25519 AAAA",)
    assert found["door"].address == "10.40.0.4"  # what the other nodes call it by
    assert found["door"].ssh.bastion == "ubuntu@198.51.100.4"
    assert found["train001"].ssh.bastion_host_keys == found["door"].ssh.host_keys
    assert found["train001"].ssh.bastion_host_keys != found["train001"].ssh.host_keys


def test_without_public_addresses_the_way_in_is_reached_directly(plan: SitePlan) -> None:
    found = hosts(plan, machine("train001", "train", number=2), machine("head", "head", number=3))
    assert found["head"].ssh.bastion is None
    assert found["train001"].ssh.bastion == "ubuntu@10.40.0.3"


def test_the_spec_may_name_the_way_in(plan: SitePlan) -> None:
    found = hosts(
        plan,
        machine("train001", "train", number=2),
        machine("head", "head", number=3),
        machine("door", "door", number=4),
        way_in="head",
    )
    assert found["train001"].ssh.bastion == "ubuntu@10.40.0.3"


def test_machines_without_a_name_or_of_a_pool_that_is_gone_are_no_hosts(plan: SitePlan) -> None:
    gone = (machine("", "train", number=2), machine("old001", "old", number=3))
    assert hosts(plan, *gone) == {}


def test_only_existing_machines_of_this_site_are_read(api: Api, plan: SitePlan) -> None:
    kept = start(api, plan, **{"gcluster-host": "train001"})
    ended = start(api, plan, **{"gcluster-host": "train002"})
    start(api, plan, **{"gcluster-site": "west"})
    api.client("ec2").terminate_instances(InstanceIds=[ended])
    [found] = instances(api, plan)
    assert (found.instance_id, found.host) == (kept, "train001")
    assert found.private_ip_address


def test_keys_are_read_from_the_console(api: Api, plan: SitePlan, aws_api: Recorded) -> None:
    aws_api.console(CONSOLE)
    assert host_keys(console(api, start(api, plan)))[-1].startswith("ssh-ed25519 AAAA")
    assert aws_api.calls == ["GetConsoleOutput"]


def test_a_console_that_shows_nothing_yet_pins_nothing(
    api: Api, plan: SitePlan, aws_api: Recorded
) -> None:
    aws_api.console("[    0.000000] Linux version 6.8.0")
    assert host_keys(console(api, start(api, plan))) == ()


def test_a_node_is_under_the_switch_closest_to_it(
    api: Api, plan: SitePlan, aws_api: Recorded
) -> None:
    instance = start(api, plan)
    text = (CASES / "recorded/topology.xml").read_text(encoding="utf-8")
    aws_api.record("ec2", "DescribeInstanceTopology", text.replace("INSTANCE", instance).encode())
    assert places(api, instances(api, plan)) == {instance: Placement(leaf="nn-3333")}


def test_a_topology_that_may_not_be_read_is_not_known(
    api: Api, plan: SitePlan, aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "DescribeInstanceTopology", "unauthorized.xml", 403)
    start(api, plan)
    assert places(api, instances(api, plan)) == {}


def test_what_carries_the_tags_is_left_over_and_ended_machines_are_not(
    api: Api, plan: SitePlan
) -> None:
    kept, ended = start(api, plan), start(api, plan)
    api.client("ec2").terminate_instances(InstanceIds=[ended])
    s3 = api.client("s3")
    s3.create_bucket(Bucket="acme-models")
    pairs = [{"Key": k, "Value": v} for k, v in plan.labels.tags().items()]
    s3.put_bucket_tagging(Bucket="acme-models", Tagging={"TagSet": pairs})
    s3.create_bucket(Bucket="somebody-elses")
    found = {item.name: item for item in leftovers(api, plan, load_catalog())}
    assert found.keys() == {kept, "acme-models"}
    assert found["acme-models"].kept_data
    assert found["acme-models"].usd_per_hour is None
    assert not found[kept].kept_data


def test_a_private_login_is_not_the_way_in_where_the_controller_is_public(plan: SitePlan) -> None:
    found = hosts(
        plan,
        machine("head", "head", number=3, public="198.51.100.3"),
        machine("door", "door", number=4),
    )
    assert {host.ssh.bastion for host in found.values()} == {"ubuntu@198.51.100.3"}


def test_a_tunnel_leads_to_the_login_and_through_it_to_all_others(plan: SitePlan) -> None:
    machines = [machine("head", "head", number=3), machine("door", "door", number=4)]
    there = [seen(plan, machine, tunnel="ssm") for machine in machines]
    found = to_hosts(plan, there, {"i-4": ("ssh-ed25519 BBBB",)}, key_file="id", via=None)
    for host in found:
        assert host.ssh.bastion_proxy[:3] == ("aws", "ssm", "start-session")
        assert "i-4" in host.ssh.bastion_proxy
        assert host.ssh.bastion_host_keys == ("ssh-ed25519 BBBB",)
