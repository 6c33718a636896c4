"""Identities may do little, what exists is used, and spending is watched."""

from __future__ import annotations

from gcp_cases import MACHINE, graph_of, items, part, template


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


def test_the_month_s_spending_is_watched_on_the_account_that_pays() -> None:
    budget = graph_of("a3-ultragpu-8g").only("Budget").inputs
    amount = budget["amount"]
    assert amount == {"specifiedAmount": {"currencyCode": "USD", "units": "600000"}}
    assert part(graph_of("a3-ultragpu-8g").only("Budget"), "budgetFilter")["labels"] == {
        "gcluster-cluster": "gib"
    }
    assert graph_of("a3-highgpu-8g").of_type("Budget") == ()
