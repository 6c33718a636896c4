"""What is asked of Google Cloud for each machine type, and what must never be in it."""

from __future__ import annotations

import msgspec
import pytest
from gcp_cases import CASES, machines, recorded, spec_from, spec_of

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import Pool
from gcluster.stacks.pulumi.agreement import agrees
from gcluster.stacks.pulumi.diff import diff
from gcluster.stacks.pulumi.graph import Graph, orphans, unregistered, untagged
from gcluster.stacks.pulumi.recorded import RecordedGraph, RecordedResource, Value

TEMPLATE = "InstanceTemplate"
MACHINE = "InstanceFromTemplate"
every_machine = pytest.mark.parametrize("machine", machines())


def graph_of(machine: str) -> Graph:
    return Graph(recorded(spec_of(machine)))


def items(value: Value) -> list[dict[str, Value]]:
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]


def part(resource: RecordedResource, key: str) -> dict[str, Value]:
    value = resource.inputs[key]
    assert isinstance(value, dict)
    return value


def template(graph: Graph, pool: str) -> RecordedResource:
    found = [t for t in graph.of_type(TEMPLATE) if graph.tags(t)["gcluster-pool"] == pool]
    return found[0]


def text(graph: RecordedGraph) -> str:
    return graph.to_json().decode()


def test_every_machine_type_with_gpus_of_the_catalog_has_an_example() -> None:
    types = load_catalog().machines.values()
    assert machines() == sorted(m.name for m in types if "gcp" in m.sites and m.gpu)


@every_machine
def test_the_graph_is_the_one_that_was_reviewed(machine: str) -> None:
    kept = (CASES / machine / "graph.json").read_bytes()
    assert recorded(spec_of(machine)).to_json() == kept, "run python tests/stacks/gcp/gcp_cases.py"


@every_machine
def test_a_preview_agrees_with_what_is_made(machine: str) -> None:
    spec = spec_of(machine)
    assert agrees(recorded(spec), recorded(spec, preview=True)).differences == ()


@every_machine
def test_every_resource_is_labelled_and_sits_in_a_component(machine: str) -> None:
    graph = recorded(spec_of(machine))
    spec = spec_of(machine)
    site = next(iter(spec.sites))
    assert untagged(graph, {"gcluster-cluster": spec.name, "gcluster-site": site}) == ()
    assert all("gcluster-spec" in Graph(graph).tags(r) for r in graph.resources if r.takes_tags)
    assert orphans(graph) == ()
    assert unregistered(graph) == ()


@every_machine
def test_no_machine_is_open_to_the_world(machine: str) -> None:
    graph = graph_of(machine)
    for rule in graph.of_type("Firewall"):
        assert "0.0.0.0/0" not in str(rule.inputs), rule.name
        assert rule.inputs["direction"] == "INGRESS"
    for made in graph.of_type(TEMPLATE):
        if made.inputs.get("tags") is None:
            nics = items(made.inputs["networkInterfaces"])
            assert all("accessConfigs" not in nic for nic in nics), made.name
    assert "/0" not in [str(r.inputs.get("sourceRanges")) for r in graph.of_type("Firewall")]


@every_machine
def test_no_private_key_and_no_world_readable_secret_is_anywhere(machine: str) -> None:
    said = text(recorded(spec_of(machine)))
    assert "PRIVATE KEY" not in said
    for made in Graph(recorded(spec_of(machine))).of_type(TEMPLATE):
        metadata = part(made, "metadata")
        assert metadata["enable-guest-attributes"] == "TRUE"
        assert metadata["block-project-ssh-keys"] == "TRUE"
        assert metadata["serial-port-enable"] == "FALSE"


@every_machine
def test_machines_with_gpus_are_terminated_for_maintenance(machine: str) -> None:
    made = template(graph_of(machine), "train")
    assert part(made, "scheduling")["onHostMaintenance"] == "TERMINATE"
    assert made.inputs["machineType"] == machine


def test_ssh_is_let_in_from_the_admins_only_and_only_to_logins_and_controllers() -> None:
    graph = graph_of("a3-highgpu-8g")
    rule = graph.named("tcpx-east-nodes-ssh")
    assert rule.inputs["sourceRanges"] == ["192.0.2.0/24"]
    assert rule.inputs["targetTags"] == ["tcpx-east-ssh"]
    tagged = {graph.tags(t)["gcluster-pool"] for t in graph.of_type(TEMPLATE) if "tags" in t.inputs}
    assert tagged == {"head", "login"}


def test_only_the_login_has_a_public_address() -> None:
    graph = graph_of("a3-highgpu-8g")
    public = [
        graph.tags(made)["gcluster-pool"]
        for made in graph.of_type(TEMPLATE)
        if any("accessConfigs" in nic for nic in items(made.inputs["networkInterfaces"]))
    ]
    assert public == ["login"]


@pytest.mark.parametrize(
    ("machine", "networks", "subnets", "mtu"),
    [
        ("a3-highgpu-8g", 5, 5, 8244),
        ("a3-megagpu-8g", 9, 9, 8244),
        ("a3-ultragpu-8g", 3, 10, 8896),
        ("a4-highgpu-8g", 3, 10, 8896),
        ("a4x-highgpu-4g", 3, 6, 8896),
        ("a3-highgpu-1g", 1, 1, None),
    ],
)
def test_a_machine_type_gets_the_networks_of_its_fabric(
    machine: str, networks: int, subnets: int, mtu: int | None
) -> None:
    graph = graph_of(machine)
    assert len(graph.of_type("gcp:compute/network:Network")) == networks
    assert len(graph.of_type("Subnetwork")) == subnets
    assert {n.inputs.get("mtu") for n in graph.of_type("gcp:compute/network:Network")} == {mtu}


@pytest.mark.parametrize(
    ("machine", "kinds"),
    [
        ("a3-highgpu-8g", ["GVNIC"] * 5),
        ("a3-megagpu-8g", ["GVNIC"] * 9),
        ("a3-ultragpu-8g", ["GVNIC"] * 2 + ["MRDMA"] * 8),
        ("a4-highgpu-8g", ["GVNIC"] * 2 + ["MRDMA"] * 8),
        ("a4x-highgpu-4g", ["GVNIC"] * 2 + ["MRDMA"] * 4),
        ("a3-highgpu-4g", ["GVNIC"]),
        ("a2-ultragpu-8g", ["GVNIC"]),
    ],
)
def test_a_machine_has_its_nics_in_order_and_each_in_a_subnet_of_its_own(
    machine: str, kinds: list[str]
) -> None:
    graph = graph_of(machine)
    nics = items(template(graph, "train").inputs["networkInterfaces"])
    assert [nic["nicType"] for nic in nics] == kinds
    assert len({str(nic["subnetwork"]) for nic in nics}) == len(kinds)
    cidrs = [str(s.inputs["ipCidrRange"]) for s in graph.of_type("Subnetwork")]
    assert len(set(cidrs)) == len(cidrs), "addresses of one machine's NICs may not overlap"


def test_the_rdma_network_has_the_roce_profile_of_its_zone_and_no_firewall_rules() -> None:
    graph = graph_of("a3-ultragpu-8g")
    rdma = graph.named("gib-west-gib-rdma-us-central1-b", "gcp:compute/network:Network")
    profile = "projects/acme-ml/global/networkProfiles/us-central1-b-vpc-roce"
    assert rdma.inputs["networkProfile"] == profile
    assert "Firewall" not in {r.type.rpartition(":")[2] for r in graph.needed_by(rdma)}


@pytest.mark.parametrize(
    ("machine", "disk"),
    [
        ("a3-highgpu-8g", "pd-balanced"),
        ("a3-megagpu-8g", "pd-balanced"),
        ("a3-ultragpu-8g", "hyperdisk-balanced"),
        ("a4-highgpu-8g", "hyperdisk-balanced"),
        ("a4x-highgpu-4g", "hyperdisk-balanced"),
    ],
)
def test_the_boot_disk_is_of_a_type_that_the_machine_takes(machine: str, disk: str) -> None:
    [boot] = items(template(graph_of(machine), "train").inputs["disks"])
    assert boot["diskType"] == disk
    assert boot["autoDelete"] is True


def test_every_disk_and_file_system_is_encrypted_with_the_owners_key() -> None:
    graph, key = graph_of("a3-megagpu-8g"), "projects/acme-ml/locations/us-central1/keyRings/r/"
    for made in graph.of_type(TEMPLATE):
        for disk in items(made.inputs["disks"]):
            assert str(disk["diskEncryptionKey"]).find(key) > 0, made.name
    assert str(graph.only("gcp:lustre/instance:Instance").inputs["kmsKey"]).startswith(key)


def test_data_is_protected_and_goes_last() -> None:
    for machine, kinds in (
        ("a3-megagpu-8g", ["gcp:lustre/instance:Instance"]),
        ("a3-ultragpu-8g", ["gcp:storage/bucket:Bucket"]),
    ):
        graph = graph_of(machine)
        for resource in graph.recorded.resources:
            data = resource.type in kinds
            assert resource.options.protect is data, resource.name
            assert resource.options.retain_on_delete is data, resource.name


def test_the_file_system_needs_private_services_access_and_is_gone_before_it() -> None:
    graph = graph_of("a3-megagpu-8g")
    order = [resource.type for resource in graph.creation_order()]
    lustre = graph.only("gcp:lustre/instance:Instance")
    assert graph.only("Connection") in graph.needs(lustre)
    assert order.index("gcp:servicenetworking/connection:Connection") < order.index(lustre.type)
    assert lustre.inputs["capacityGib"] == "36000"
    assert lustre.inputs["perUnitStorageThroughput"] == "500"


def test_a_bucket_is_private_versioned_and_only_the_made_one_is_made() -> None:
    graph = graph_of("a3-ultragpu-8g")
    bucket = graph.only("gcp:storage/bucket:Bucket")
    assert bucket.inputs["name"] == "acme-runs"
    assert bucket.inputs["publicAccessPrevention"] == "enforced"
    assert bucket.inputs["uniformBucketLevelAccess"] is True
    assert bucket.inputs["versioning"] == {"enabled": True}
    assert bucket.inputs["forceDestroy"] is False
    roles = {m.inputs["bucket"]: m.inputs["role"] for m in graph.of_type("BucketIAMMember")}
    assert roles == {
        "acme-datasets": "roles/storage.objectViewer",
        "acme-runs": "roles/storage.objectUser",
    }


def test_the_nodes_identity_may_only_write_logs_and_metrics() -> None:
    graph = graph_of("a3-highgpu-8g")
    roles = [m.inputs["role"] for m in graph.of_type("gcp:projects/iAMMember:IAMMember")]
    assert sorted(map(str, roles)) == ["roles/logging.logWriter", "roles/monitoring.metricWriter"]
    assert graph.of_type("gcp:serviceaccount/key:Key") == ()


def test_the_burst_agent_exists_for_elastic_pools_only_and_has_no_broad_role() -> None:
    assert graph_of("a3-highgpu-8g").of_type("BurstIdentity") == ()
    graph = graph_of("a3-ultragpu-8g")
    given = graph.only("IAMCustomRole").inputs["permissions"]
    assert isinstance(given, list)
    assert not [p for p in given if "setIamPolicy" in str(p) or "*" in str(p)]
    assert graph.named("gib-west-burst-as-node").inputs["role"] == "roles/iam.serviceAccountUser"


def test_machines_of_a_fabric_stand_together_unless_their_capacity_does_already() -> None:
    graph = graph_of("a3-highgpu-8g")
    policy = graph.only("ResourcePolicy")
    assert policy.inputs["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    placed = {m.name for m in graph.of_type(MACHINE) if "resourcePolicies" in m.inputs}
    assert placed == {"tcpx-east-train001", "tcpx-east-train002"}
    assert graph_of("a3-megagpu-8g").of_type("ResourcePolicy") == (), "a reservation is dense"
    assert graph_of("a4-highgpu-8g").of_type("ResourcePolicy") == (), "so is flex-start"


def test_each_nvlink_domain_that_spans_machines_has_a_policy_also_when_reserved() -> None:
    policies = graph_of("a4x-highgpu-4g").of_type("ResourcePolicy")
    assert [p.name for p in policies] == [f"nvl72-central-train-placement-{n}" for n in (1, 2)]
    for policy in policies:
        assert policy.inputs["groupPlacementPolicy"] == {
            "collocation": "COLLOCATED",
            "gpuTopology": "1x72",
        }


@pytest.mark.parametrize(
    ("machine", "model", "affinity", "ends"),
    [
        ("a3-highgpu-8g", "STANDARD", "ANY_RESERVATION", None),
        ("a3-megagpu-8g", "STANDARD", "SPECIFIC_RESERVATION", None),
        ("a3-highgpu-1g", "SPOT", "NO_RESERVATION", "DELETE"),
        ("a4-highgpu-8g", "FLEX_START", "NO_RESERVATION", "DELETE"),
    ],
)
def test_machines_are_bought_as_the_first_rung_says(
    machine: str, model: str, affinity: str, ends: str | None
) -> None:
    made = template(graph_of(machine), "train")
    scheduling = part(made, "scheduling")
    assert scheduling["provisioningModel"] == model
    assert scheduling.get("instanceTerminationAction") == ends
    assert scheduling["automaticRestart"] is (ends is None)
    assert part(made, "reservationAffinity")["type"] == affinity


def test_a_reservation_of_the_own_project_is_called_by_its_name() -> None:
    affinity = part(template(graph_of("a3-megagpu-8g"), "train"), "reservationAffinity")
    assert affinity["specificReservation"] == {
        "key": "compute.googleapis.com/reservation-name",
        "values": ["a3-mega"],
    }


def test_queued_machines_are_asked_for_at_once_for_as_long_as_the_spec_says() -> None:
    graph = graph_of("a4-highgpu-8g")
    assert graph.only("ResizeRequest").inputs["resizeBy"] == 4
    group = graph.only("InstanceGroupManager")
    assert group.inputs["targetSize"] == 0
    assert group.options.ignore_changes == ("targetSize",)
    run = part(template(graph, "train"), "scheduling")["maxRunDuration"]
    assert run == {"seconds": 2 * 24 * 3600}
    assert [m.name for m in graph.of_type(MACHINE)] == ["queued-south-head"]


def test_the_next_rung_gives_another_template_and_the_networks_stay() -> None:
    spec = spec_of("a3-megagpu-8g")
    change = diff(recorded(spec), recorded(spec, taken={"train": 1}))
    assert {r.name for r in change.removed} == {"tcpxo-central-train-reservation-us-central1-a"}
    assert "tcpxo-central-train-spot-us-central1-a" in {r.name for r in change.added}
    assert not [c for c in change.changed if "etwork" in c.urn.rpartition("::")[0]]


def test_an_elastic_pool_has_a_template_for_every_rung() -> None:
    graph = graph_of("a3-ultragpu-8g")
    names = [t.name for t in graph.of_type(TEMPLATE) if graph.tags(t)["gcluster-pool"] == "train"]
    assert names == [
        "gib-west-train-on-demand-us-central1-b",
        "gib-west-train-spot-us-central1-b",
    ]
    assert len(graph.of_type(MACHINE)) == 2, "only what is always there is in the stack"


def test_what_exists_is_used_and_not_made() -> None:
    graph = graph_of("a2-ultragpu-8g")
    assert set(graph.counts()) == {
        "gcp:compute/instanceFromTemplate:InstanceFromTemplate",
        "gcp:compute/instanceTemplate:InstanceTemplate",
        "gcp:dns/recordSet:RecordSet",
    }
    made = template(graph, "train")
    [nic] = items(made.inputs["networkInterfaces"])
    assert nic["subnetwork"] == "projects/acme-net/regions/us-central1/subnetworks/gpu"
    assert part(made, "serviceAccount")["email"] == "nodes@acme-ml.iam.gserviceaccount.com"
    assert str(part(made, "metadata")["ssh-keys"]).startswith("ops:ssh-ed25519 ")
    record = graph.only("RecordSet").inputs
    assert record["name"] == "head.gpu.example.edu."
    assert (record["project"], record["managedZone"]) == ("acme-net", "gpu")
    machines_ = [m for m in graph.of_type(MACHINE) if m.inputs.get("resourcePolicies")]
    assert {m.inputs["resourcePolicies"] for m in machines_} == {"pg-research"}


def test_networks_of_a_fabric_that_exist_are_used_in_the_order_of_the_nics() -> None:
    spec = spec_of("a3-ultragpu-8g")
    site = spec.sites["west"]
    existing = {
        "vpc": "projects/acme-net/global/networks/shared",
        "subnet": "projects/acme-net/regions/us-central1/subnetworks/gpu",
        "fabric_networks": [f"projects/acme-net/global/networks/{n}" for n in ("second", "rdma")],
    }
    network = msgspec.convert(existing, type(site.network))  # type: ignore[union-attr]
    changed = {"west": msgspec.structs.replace(site, network=network)}
    graph = Graph(recorded(msgspec.structs.replace(spec, sites=changed)))
    assert graph.of_type("gcp:compute/network:Network") == ()
    nics = items(template(graph, "train").inputs["networkInterfaces"])
    used = [str(nic["subnetwork"]) for nic in nics]
    assert used[0].endswith("subnetworks/gpu")
    assert "second.subnet-00" in used[1]
    assert ["rdma.subnet" in subnet for subnet in used[2:]] == [True] * 8
    assert len(set(used)) == 10


def test_the_month_s_money_is_watched_on_the_account_that_pays() -> None:
    budget = graph_of("a3-ultragpu-8g").only("Budget").inputs
    amount = budget["amount"]
    assert amount == {"specifiedAmount": {"currencyCode": "USD", "units": "600000"}}
    assert part(graph_of("a3-ultragpu-8g").only("Budget"), "budgetFilter")["labels"] == {
        "gcluster-cluster": "gib"
    }
    assert graph_of("a3-highgpu-8g").of_type("Budget") == ()


def test_another_pool_changes_nothing_but_labels_and_names_no_template_anew() -> None:
    spec = spec_of("a3-megagpu-8g")
    more = dict(spec.pools) | {"cpu": Pool(site="central", machine="n2-standard-8", count=3)}
    change = diff(recorded(spec), recorded(msgspec.structs.replace(spec, pools=more)))
    assert change.removed == ()
    assert {path for c in change.changed for path in c.inputs} == {"labels.gcluster-spec"}
    assert all(not c.options for c in change.changed)


def test_a_template_is_not_replaced_when_only_its_labels_change() -> None:
    for made in graph_of("a3-megagpu-8g").of_type(TEMPLATE):
        assert made.options.ignore_changes == ("labels",)


def test_tags_of_a_pool_are_on_its_machines_and_on_no_others() -> None:
    graph = graph_of("a3-highgpu-8g")
    team = {m.name: graph.tags(m).get("team") for m in graph.of_type(MACHINE)}
    assert team["tcpx-east-train001"] == "nlp"
    assert team["tcpx-east-head"] is None
    assert all(graph.tags(m)["cost-centre"] == "4711" for m in graph.of_type(MACHINE))


def test_without_admins_only_googles_own_proxy_reaches_ssh() -> None:
    spec = spec_from(
        """
apiVersion: gcluster/v1
name: quiet
sites: {a: {provider: gcp, project: p, region: us-central1, zone: us-central1-a}}
pools: {head: {site: a, role: controller, machine: n2-standard-8}}
scheduler: {type: slurm}
"""
    )
    rule = Graph(recorded(spec)).named("quiet-a-nodes-ssh")
    assert rule.inputs["sourceRanges"] == ["35.235.240.0/20"]


def test_behind_a_proxy_there_is_no_way_out_of_the_network() -> None:
    spec = spec_from(
        """
apiVersion: gcluster/v1
name: quiet
sites:
  a:
    provider: gcp
    project: p
    region: us-central1
    zone: us-central1-a
    proxy: {https: "http://10.0.0.3:3128"}
pools: {head: {site: a, role: controller, machine: n2-standard-8}}
scheduler: {type: slurm}
"""
    )
    assert Graph(recorded(spec)).of_type("RouterNat") == ()
    assert len(graph_of("a3-highgpu-8g").of_type("RouterNat")) == 1
