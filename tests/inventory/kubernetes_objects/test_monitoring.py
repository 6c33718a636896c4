"""Monitoring under Kubernetes: rules of what is exported, secrets out of sight, no open door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml

from gcluster.inventory.alerts import alert_rules, exported_metrics, metrics_of
from gcluster.inventory.compile.kubernetes_objects.addons import chosen_addons
from gcluster.inventory.compile.kubernetes_objects.devices.gpus import amd_devices, gpu_pools
from gcluster.inventory.compile.kubernetes_objects.facts import MONITORING, KubernetesFacts
from gcluster.inventory.compile.kubernetes_objects.monitoring.objects import (
    conditions,
    monitoring_objects,
)
from gcluster.inventory.compile.kubernetes_objects.monitoring.secrets import (
    NAMESPACE,
    STACK,
    stack_secrets,
)
from gcluster.inventory.compile.kubernetes_objects.monitoring.stack import stack_values
from gcluster.inventory.waste import node_prices
from gcluster.schemas.load import load_text
from gcluster.schemas.spec.cluster import Alerts, Monitoring, WasteAlert, WebhookAlerts
from gcluster.schemas.spec.units import Duration, Percent

from ..compile.golden import compiled
from .compiled import facts_of, files_of, of_kind, spec_of

CA = "-----BEGIN CERTIFICATE-----\n"
BMCS = """\
apiVersion: gcluster/v1
name: trial
sites: {hall: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.22.0.0/16}}}
pools:
  head: {site: hall, role: controller, hosts: [{name: head, address: 10.22.0.1}]}
  gpu:
    site: hall
    machine: hgx-h100-8
    hosts: [{name: gpu1, address: 10.22.0.2}]
    firmware: {bmc: "https://{host}-bmc.example.edu", credentials: bmc}
scheduler: {type: kubernetes, cni: cilium}
monitoring: {prometheus: true, grafana: true}
"""
MOUNTED = f"/etc/alertmanager/secrets/{STACK}/"


def watched(case: str, **said: Any) -> KubernetesFacts:
    """Return a case's facts with another `monitoring`."""
    spec = msgspec.structs.replace(spec_of(case), monitoring=Monitoring(prometheus=True, **said))
    return facts_of(spec)


def rules_of(facts: KubernetesFacts) -> list[dict[str, Any]]:
    [made] = monitoring_objects(facts)["rules"]
    return [rule for group in made["spec"]["groups"] for rule in group["rules"]]


def walk(value: Any) -> Iterator[Any]:
    """Yield all values of a document."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from walk(one)


@pytest.fixture(scope="module")
def campus() -> KubernetesFacts:
    """A cluster whose spec has all of monitoring."""
    return facts_of(spec_of("campus"))


def test_alerts_are_those_of_nodes_gpus_and_kubernetes_and_none_of_slurm(
    campus: KubernetesFacts,
) -> None:
    rules = rules_of(campus)
    named = {rule["alert"] for rule in rules if "alert" in rule}
    absent = {metric for of in ("slurm", "probe", "lustre") for metric in exported_metrics()[of]}

    assert {rule["expr"] for rule in rules if metrics_of(rule["expr"]) & absent} == set()
    assert named >= {
        "KubeNodeDown", "KubeClientCertificateExpires", "GpuXid", "GpuExporterDown", "DiskFull",
        "ClockSkew", "InfinibandDown", "AllReduceOld", "BudgetBurn", "ClusterEnds", "AlertsNotSent",
    }  # fmt: skip
    assert named.isdisjoint(
        {"NodeDown", "HostDown", "UnitFailed", "LoginUnreachable", "BudgetHour"}
    )


def test_rules_are_left_out_whose_metrics_a_cluster_has_not() -> None:
    google = watched("google")
    named = {rule.get("alert") for rule in rules_of(google)}

    assert "nvidia" in conditions(google), "its driver is in containers: NVIDIA's operator is there"
    assert not {"AllReduceOld", "ClusterEnds", "InfinibandDown"} & named
    amd = {rule.get("alert") for rule in rules_of(watched("amd"))}
    assert not any((name or "").startswith("Gpu") for name in amd), "those are NVIDIA's"
    assert {"AmdGpuUnhealthy", "AmdExporterDown"} <= amd


def test_amd_s_exporter_is_turned_on_and_scraped_by_the_names_that_its_operator_gives() -> None:
    amd = watched("amd")
    (pool,) = gpu_pools(amd, "amd")
    (config,) = amd_devices(amd)
    (monitor,) = monitoring_objects(amd)["scraped"]
    (endpoint,) = monitor["spec"]["endpoints"]
    (walled,) = [
        one for one in monitoring_objects(amd)["walls"]
        if one["metadata"]["namespace"] == "kube-amd-gpu"
    ]  # fmt: skip

    exporter = config["spec"]["metricsExporter"]
    assert exporter["enable"]
    assert exporter["image"].endswith(":v1.5.0")
    # ROCm/gpu-operator, internal/metricsexporter/metricsexporter.go at v1.5.0: labels of the
    # service and of the pods, and the name of the port.
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["kube-amd-gpu"]}
    assert monitor["spec"]["selector"]["matchExpressions"] == [
        {
            "key": "app.kubernetes.io/service",
            "operator": "In",
            "values": [f"{pool}-metrics-exporter"],
        }
    ]
    assert endpoint["port"] == "exporter-port"
    assert endpoint["honorLabels"], "labels pod and namespace are those of who holds the GPU"
    assert walled["spec"]["podSelector"]["matchLabels"] == {
        "app.kubernetes.io/name": "metrics-exporter"
    }
    assert "gcluster:pod_wasted_usd_per_hour" in {one.get("record") for one in rules_of(amd)}


def test_amd_s_exporter_stays_off_where_nothing_watches() -> None:
    (config,) = amd_devices(facts_of(spec_of("amd")))
    assert config["spec"]["metricsExporter"]["enable"] is False


def test_idle_pods_are_an_alert_with_waste_alert_alone_and_by_its_limits(
    campus: KubernetesFacts,
) -> None:
    wanted = WasteAlert(below=Percent.parse("25%"), for_=Duration.parse("20m"), min_usd_per_hour=7)
    rules = {one.get("alert"): one for one in rules_of(watched("campus", waste_alert=wanted))}
    found = rules["KubeGpusWasted"]["expr"]

    assert all(figure in found for figure in ("< 0.25", "[1200s]", ">= 1200", "< 7"))
    assert "GpusWasted" not in rules
    assert not any(one.get("alert") == "KubeGpusWasted" for one in rules_of(campus))
    assert {one.get("record") for one in rules_of(campus)} >= {
        "gcluster:pod_wasted_usd_per_hour",
        "gcluster:account_usd_per_hour",
    }


def test_prices_are_those_of_the_catalog_by_pool(campus: KubernetesFacts) -> None:
    prices = node_prices(campus.spec, campus.catalog)
    recorded = {
        rule["labels"]["pool"]: rule["expr"]
        for rule in rules_of(campus)
        if rule.get("record") == "gcluster:pool_node_usd_per_hour"
    }

    assert recorded == {pool: f"vector({usd:.15g})" for pool, usd in prices.items()}


def test_every_alert_names_its_page_and_has_its_summary(campus: KubernetesFacts) -> None:
    for rule in (one for one in rules_of(campus) if "alert" in one):
        assert rule["annotations"]["runbook"] == f"gcluster explain {rule['alert']}"
        assert rule["annotations"]["summary"] == alert_rules()[rule["alert"]].summary


def test_what_pods_read_of_secrets_is_in_them_and_no_value_of_one_is_in_the_chart_s(
    campus: KubernetesFacts,
) -> None:
    values = stack_values(campus)
    held = {key for one in stack_secrets(campus.spec).values() for key in {**one.vault, **one.text}}
    read = {
        value["key"] for value in walk(values) if isinstance(value, dict) and "key" in value
    } - {"node-role.kubernetes.io/control-plane"}
    read |= {
        value.removeprefix(MOUNTED)
        for value in walk(values)
        if isinstance(value, str) and value.startswith(MOUNTED)
    }

    assert read == {
        "authority.pem", "mail", "webhook", "slack", "remote-user", "remote-password",
    }  # fmt: skip
    assert read | {"tls.crt", "tls.key"} == held
    assert "env:" not in json.dumps(values)


def test_a_bearer_token_and_cas_are_read_from_the_secret_too() -> None:
    remote: Any = {"url": "https://m.example/api", "password": "env:T", "ca": CA}
    said = msgspec.convert({"remote_write": remote}, Monitoring)
    facts = watched("cloud", remote_write=said.remote_write)
    [made] = stack_values(facts)["prometheus"]["prometheusSpec"]["remoteWrite"]
    secret = stack_secrets(facts.spec)[STACK]

    assert made["authorization"]["credentials"] == {"name": STACK, "key": "remote-password"}
    assert made["tlsConfig"]["ca"]["secret"] == {"name": STACK, "key": "remote-ca.pem"}
    assert secret.text == {"remote-ca.pem": CA}


def test_no_door_of_it_is_open_outside_the_cluster_or_to_other_namespaces(
    campus: KubernetesFacts,
) -> None:
    values = stack_values(campus)
    opened = {"LoadBalancer", "NodePort"} & {v for v in walk(values) if isinstance(v, str)}
    policies = {
        one["metadata"]["namespace"]: one["spec"] for one in monitoring_objects(campus)["walls"]
    }

    assert not opened
    assert '"ingress"' not in json.dumps(values)
    assert policies[NAMESPACE]["podSelector"] == {}
    assert policies[NAMESPACE]["ingress"] == [{"from": [{"podSelector": {}}]}]
    [source] = policies["gpu-operator"]["ingress"][0]["from"]
    assert source["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": NAMESPACE}
    exporter = values["prometheus-node-exporter"]
    assert exporter["kubeRBACProxy"] == {"enabled": True, "tls": {"enabled": True}}
    assert "insecureSkipVerify" not in json.dumps(exporter)


def test_metrics_of_nodes_and_gpus_get_the_labels_that_rules_have(campus: KubernetesFacts) -> None:
    node = stack_values(campus)["prometheus-node-exporter"]["prometheus"]["monitor"]
    [gpu] = monitoring_objects(campus)["scraped"]
    for job, monitor, endpoint in (
        ("node", node, node),
        ("gpu", gpu["spec"], gpu["spec"]["endpoints"][0]),
    ):
        steps = endpoint["relabelings"]
        assert monitor["attachMetadata"] == {"node": True}, job
        assert {
            s.get("targetLabel"): s.get("sourceLabels", s.get("replacement")) for s in steps
        } == {
            "instance": ["__meta_kubernetes_pod_node_name"],
            # Prometheus writes every other letter of a label's name as "_".
            "pool": ["__meta_kubernetes_node_label_gcluster_local_pool"],
            "job": job,
            None: None,
        }
    assert gpu["spec"]["endpoints"][0]["honorLabels"] is True


def test_what_bmcs_measure_is_written_where_the_chart_s_exporter_reads_and_is_drawn() -> None:
    spec = load_text(BMCS).spec
    assert spec is not None
    facts = facts_of(spec)
    exporter = stack_values(facts)["prometheus-node-exporter"]
    [mounted] = exporter["extraHostVolumeMounts"]
    groups = {group.name: group.steps for group in compiled(spec).groups}
    written = {
        name: [
            s.variables["ipmi_exporter_folder"] for s in steps if s.key == "ipmi_exporter.configure"
        ]
        for name, steps in groups.items()
    }

    assert written == {"head": [], "gpu": [mounted["hostPath"]]}
    # prometheus-community/helm-charts, prometheus-node-exporter 4.56.1, templates/daemonset.yaml:
    # each is a volume of the host, mounted into the exporter's container as it says.
    assert mounted["mountPath"] == mounted["hostPath"]
    assert mounted["readOnly"] is True
    assert f"--collector.textfile.directory={mounted['mountPath']}" in exporter["extraArgs"]
    assert "bmc" in conditions(facts)
    panels = json.dumps(monitoring_objects(facts)["dashboards"])
    assert panels.count("ipmi_dcmi_power_consumption_watts") >= 3
    assert "bmc" not in conditions(watched("campus"))


def test_the_exporter_of_gpus_runs_where_there_is_monitoring_with_the_metrics_of_rules() -> None:
    chosen = {one.addon.name: one.values for one in chosen_addons(watched("google"))}
    exporter = chosen["gpu-operator"]["dcgmExporter"]
    switched_on = {line.split(",")[0] for line in exporter["config"]["data"].splitlines()}
    without = {one.addon.name: one.values for one in chosen_addons(facts_of(spec_of("google")))}

    assert set(exported_metrics()["dcgm"]) <= switched_on
    assert exporter["env"] == [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}]
    assert without["gpu-operator"]["dcgmExporter"] == {"enabled": False}
    assert MONITORING not in without


def test_retention_volume_and_pool_are_the_spec_s(campus: KubernetesFacts) -> None:
    spec = stack_values(campus)["prometheus"]["prometheusSpec"]
    other = stack_values(watched("campus", pool="old"))["prometheus"]["prometheusSpec"]

    assert (spec["retention"], spec["retentionSize"]) == ("30d", "170GiB")
    claim = spec["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert claim["resources"] == {"requests": {"storage": "200Gi"}}
    assert claim["storageClassName"] == "local-path"
    assert spec["nodeSelector"] == {"gcluster.local/pool": "control"}
    assert other["retention"] == "15d"
    assert "storageSpec" not in other
    assert other["nodeSelector"] == {"gcluster.local/pool": "old"}


def test_an_alert_of_each_severity_goes_to_who_takes_it() -> None:
    hook = WebhookAlerts(url="env:HOOK", severities=["critical"])
    config = stack_values(watched("cloud", alerts=Alerts(webhook=hook)))["alertmanager"]["config"]

    assert [r["matchers"] for r in config["route"]["routes"]] == [['severity="critical"']]
    assert config["route"]["receiver"] == "page"


def test_a_known_digest_of_the_reloader_reaches_the_operator_s_argument(
    campus: KubernetesFacts,
) -> None:
    addon = campus.catalog.addons[MONITORING]
    pinned = msgspec.structs.replace(
        addon, images=dict.fromkeys(addon.images, f"sha256:{'a' * 64}")
    )
    catalog = msgspec.structs.replace(
        campus.catalog, addons={**campus.catalog.addons, MONITORING: pinned}
    )
    values = stack_values(msgspec.structs.replace(campus, catalog=catalog))

    assert values["prometheusOperator"]["prometheusConfigReloader"] == {"image": {"sha": "a" * 64}}
    assert "prometheusConfigReloader" not in stack_values(campus)["prometheusOperator"]


def test_grafana_has_the_dashboards_and_the_source_that_they_name() -> None:
    maps = [
        one
        for one in of_kind("cloud", "ConfigMap")
        if "grafana_dashboard" in one["metadata"]["labels"]
    ]
    texts = [text for one in maps for text in one["data"].values()]
    grafana = stack_values(facts_of(spec_of("cloud")))["grafana"]
    used = {
        value["uid"]
        for text in texts
        for value in walk(json.loads(text))
        if isinstance(value, dict) and value.get("type") == "prometheus"
    }

    assert used == {grafana["sidecar"]["datasources"]["uid"]}
    assert {one["metadata"]["name"] for one in maps} >= {"dashboard-node", "dashboard-storage"}
    assert max(map(len, texts)) < 2**20
    held = stack_secrets(spec_of("cloud"))[STACK]
    assert grafana["admin"]["existingSecret"] == STACK
    assert grafana["admin"]["passwordKey"] in held.vault
    assert grafana["admin"]["userKey"] in held.text
    assert stack_values(watched("campus"))["grafana"] == {"enabled": False}


def test_images_of_a_grafana_are_only_where_there_is_one() -> None:
    described = yaml.safe_load(files_of("cloud")["addons/addons.yaml"])
    [mine] = [one for one in described if one["name"] == MONITORING]
    [plain] = [one for one in chosen_addons(watched("campus")) if one.addon.name == MONITORING]

    assert mine["images"].keys() - plain.addon.images.keys() == {
        "docker.io/grafana/grafana:13.2.0",
        "quay.io/kiwigrid/k8s-sidecar:2.10.1",
    }


def test_nothing_is_compiled_where_the_nodes_can_t_get_the_chart() -> None:
    facts = msgspec.structs.replace(watched("campus"), without=frozenset({MONITORING}))

    assert monitoring_objects(facts) == {}
    assert MONITORING not in {one.addon.name for one in chosen_addons(facts)}
