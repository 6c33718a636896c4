"""Nodes read back: names given, host keys off the console, addresses, and the way in."""

from __future__ import annotations

from oci_cases import plan_of
from oci_double import Oracle
from tests.oci_double.server import HOST_KEY

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.io.ssh import host_keys
from gcluster.stacks.oci.hosts import addresses, instances, read_console, seen
from gcluster.stacks.oci.leftovers import await_made, leftovers
from gcluster.stacks.oci.naming import await_groups, give_back, name_nodes
from gcluster.stacks.pulumi.engine.checkpoint import StackResource
from gcluster.stacks.pulumi.hosts import to_hosts

MACHINE = "BM.GPU.H100.8"
POOL = {"gcluster-pool": "train", "gcluster-offer": "on-demand-ad2"}


def test_nodes_of_a_cluster_network_get_the_free_names_and_keep_them(oracle: Oracle) -> None:
    plan = plan_of(MACHINE)
    first, second = oracle.add(POOL), oracle.add({**POOL, "gcluster-host": "train001"})
    name_nodes(oracle.api(), plan)
    name_nodes(oracle.api(), plan)
    named = {m["id"]: m["freeformTags"]["gcluster-host"] for m in oracle.existing()}
    assert named == {first: "train002", second: "train001"}
    renamed = [body for method, _, body in oracle.calls if method == "PUT"]
    assert [body["freeformTags"]["gcluster-pool"] for body in renamed] == ["train"]


def test_a_smaller_pool_ends_its_last_nodes_and_not_those_that_oci_would_choose(
    oracle: Oracle,
) -> None:
    plan = plan_of(MACHINE, count=1)
    kept = oracle.add({**POOL, "gcluster-host": "train001"})
    oracle.add({**POOL, "gcluster-host": "train002"})
    tags = {"gcluster-cluster": "lab", "gcluster-site": "here", "gcluster-pool": "train"}
    oracle.networks = [
        {
            "id": "network",
            "lifecycleState": "RUNNING",
            "freeformTags": tags,
            "instancePools": [{"id": "pool"}],
        }
    ]
    give_back(oracle.api(), plan)
    assert [machine["id"] for machine in oracle.existing()] == [kept]


def test_a_group_that_oci_still_makes_is_waited_for(oracle: Oracle) -> None:
    tags = {"gcluster-cluster": "lab", "gcluster-site": "here", "gcluster-pool": "train"}
    group = {"id": "n", "displayName": "lab-here-train", "freeformTags": tags}
    oracle.networks = [{**group, "lifecycleState": "PROVISIONING"}]
    answer: list[str] = []

    def on_event(what: str) -> None:
        answer.append(what)
        oracle.networks[0]["lifecycleState"] = "RUNNING"

    await_groups(oracle.api(), plan_of(MACHINE), on_event, pause_s=0)
    assert answer == ["OCI still makes lab-here-train"]


def test_what_was_taken_up_is_waited_for_while_oci_still_makes_it(oracle: Oracle) -> None:
    """Of a file system that is still made the address isn't known."""
    tags = {"gcluster-cluster": "lab", "gcluster-site": "here"}
    system = {"id": "f", "displayName": "lab-here-data", "freeformTags": tags}
    answer = {"items": [system | {"lifecycleState": "CREATING"}]}
    oracle.fixed["GET lustre/lustreFileSystems"] = answer
    kind = "oci:Lustre/fileStorageLustreFileSystem:FileStorageLustreFileSystem"
    one = StackResource(
        urn="a::b::lab-here-data", type=kind, inputs={"displayName": "lab-here-data"}
    )
    reported: list[str] = []

    def on_event(what: str) -> None:
        reported.append(what)
        answer["items"][0]["lifecycleState"] = "ACTIVE"

    await_made(oracle.api(), plan_of(MACHINE), (one,), on_event, pause_s=0)
    assert reported == ["OCI still makes lab-here-data"]


def test_the_host_key_is_read_off_the_console_and_the_capture_is_removed(oracle: Oracle) -> None:
    machine = oracle.add(POOL)
    assert host_keys(read_console(oracle.api(), machine)) == (HOST_KEY,)
    removed = [path for method, path, _ in oracle.calls if method == "DELETE"]
    assert removed == [f"compute/instanceConsoleHistories/history-{machine}"]


def test_nodes_are_reached_through_the_login_node_at_its_public_address(oracle: Oracle) -> None:
    plan = plan_of(MACHINE)
    oracle.add({"gcluster-pool": "login", "gcluster-host": "login"})
    oracle.add({**POOL, "gcluster-host": "train001"})
    machines = instances(oracle.api(), plan)
    keys = {machine.id: (f"ssh-ed25519 {machine.host}",) for machine in machines}
    where = addresses(oracle.api(), plan, machines)
    there = [seen(plan, machine, where[machine.id]) for machine in machines]
    found = to_hosts(plan, there, keys, key_file=None, via=None)
    hosts = {host.name: host for host in found}
    assert hosts["login"].public_address == "192.0.2.7"
    assert hosts["train001"].address == "10.60.0.3"
    assert hosts["train001"].ssh.bastion == "ubuntu@192.0.2.7"
    assert hosts["train001"].image == "ocid1.image.oc1.iad.booted"
    assert hosts["login"].ssh.bastion == "ubuntu@192.0.2.7"
    assert {host.ssh.bastion_host_keys for host in hosts.values()} == {("ssh-ed25519 login",)}


def test_machines_of_others_and_those_that_ended_are_not_ours(oracle: Oracle) -> None:
    oracle.add({**POOL, "gcluster-cluster": "other"})
    oracle.add(POOL, state="TERMINATED")
    assert instances(oracle.api(), plan_of(MACHINE)) == ()


def test_what_is_left_is_reported_with_data_marked_and_what_is_gone_left_out(
    oracle: Oracle,
) -> None:
    oracle.add({**POOL, "gcluster-host": "train001"})
    found = leftovers(oracle.api(), plan_of(MACHINE), load_catalog())
    answer = [(item.kind, item.name, item.kept_data) for item in found]
    assert answer == [
        ("bucket", "acme-checkpoints", True),
        ("network", "lab-here-vcn", False),
        ("node", "train001", False),
    ]
    assert found[2].usd_per_hour == 80  # the catalog's price
