"""What nodes of a monitored cluster are configured with: who scrapes them, and no other target."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.inventory.alerts import inhibitions
from gcluster.inventory.compile import CompiledCluster, Step, compile_cluster
from gcluster.inventory.dashboards.grafana import grafana_files
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.secrets.makers import provided_secrets
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

sys.path.insert(0, str(Path(__file__).parent))
import golden

sys.path.pop(0)

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  login: {site: here, role: login, count: 2}
  gpu: {site: here, machine: sim.h100x8, count: COUNT}
scheduler: {type: slurm}
"""
_ROLES = ("node_exporter", "alertmanager", "prometheus")


def compiled(monitoring: str, count: int = 2) -> CompiledCluster:
    loaded = load_text(_SPEC.replace("COUNT", str(count)) + f"monitoring: {monitoring}\n")
    assert loaded.spec is not None, loaded.diagnostics
    return golden.compiled(loaded.spec)


def steps(cluster: CompiledCluster, pool: str) -> dict[str, Step]:
    (group,) = [group for group in cluster.groups if group.name == pool]
    return {step.key: step for step in group.steps if step.role in _ROLES}


def config_of(variables: dict[str, Any]) -> dict[str, Any]:
    """Return Alertmanager's configuration, as role alertmanager is given it."""
    text = str(variables["alertmanager_config"])
    found: dict[str, Any] = json.loads(text.removeprefix("{% raw %}").removesuffix("{% endraw %}"))
    return found


def targets(cluster: CompiledCluster, pool: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = steps(cluster, pool)["prometheus.join"].variables[
        "prometheus_targets"
    ]
    return found


@pytest.mark.parametrize("monitoring", ["{}", "{prometheus: false}"])
def test_a_cluster_that_is_not_watched_has_none_of_it(monitoring: str) -> None:
    cluster = compiled(monitoring)
    assert [steps(cluster, group.name) for group in cluster.groups] == [{}, {}, {}]


def test_every_node_has_an_exporter_and_the_first_controller_the_servers() -> None:
    cluster = compiled("{prometheus: true}")
    for pool in ("login", "gpu"):
        assert {step.role for step in steps(cluster, pool).values()} == {"node_exporter"}
    head = steps(cluster, "head")
    assert {step.role for step in head.values()} == set(_ROLES)
    hosts = {
        step.variables[f"{step.role}_host"]
        for step in head.values()
        if step.role != "node_exporter" and step.phase != "install"
    }
    assert hosts == {"head"}


def test_the_servers_run_where_the_spec_has() -> None:
    cluster = compiled("{prometheus: true, pool: login}")
    assert {step.role for step in steps(cluster, "head").values()} == {"node_exporter"}
    given = steps(cluster, "login")["alertmanager.configure"].variables
    assert given.keys() == {"alertmanager_host", "alertmanager_config"}
    config = config_of(given)
    assert config["inhibit_rules"] == inhibitions()
    assert config["receivers"] == [{"name": "page"}]


def test_who_is_sent_alerts_is_compiled_and_secrets_are_references_alone() -> None:
    written = (
        "{prometheus: true, alerts: {webhook: {url: 'env:PAGER'}, mail: {to: [ops@example.edu], "
        "from: g@example.edu, server: 's.example.edu:587', user: g, password: 'env:SMTP'}}}"
    )
    loaded = load_text(_SPEC.replace("COUNT", "2") + f"monitoring: {written}\n")
    assert loaded.spec is not None, loaded.diagnostics
    step = steps(golden.compiled(loaded.spec), "head")["alertmanager.configure"]

    sent = config_of(step.variables)
    routes = [(one["receiver"], *one["matchers"]) for one in sent["route"]["routes"]]
    both = ('severity="critical"', 'severity="warning"')
    assert routes == [(name, one) for name in ("mail", "webhook") for one in both]
    assert sent["receivers"][1]["email_configs"][0]["to"] == "ops@example.edu"
    names = {"mail": "alerts-mail", "webhook": "alerts-webhook"}
    assert {step.secrets[f"alertmanager_{kind}_secret_file"] for kind in names} == {*names.values()}
    given = provided_secrets(loaded.spec)
    assert given == {"alerts-mail": "env:SMTP", "alerts-webhook": "env:PAGER"}


def test_where_metrics_are_sent_is_compiled_and_its_password_is_a_reference() -> None:
    written = (
        "{prometheus: true, remote_write: {url: 'https://m.example.edu/write', user: lab, "
        "password: 'env:METRICS'}}"
    )
    loaded = load_text(_SPEC.replace("COUNT", "2") + f"monitoring: {written}\n")
    assert loaded.spec is not None, loaded.diagnostics
    step = steps(golden.compiled(loaded.spec), "head")["prometheus.configure"]

    remote = {"url": "https://m.example.edu/write", "user": "lab", "ca": "", "login": True}
    assert step.variables["prometheus_remote_write"] == remote
    name = step.secrets["prometheus_remote_secret_file"]
    assert provided_secrets(loaded.spec) == {name: "env:METRICS"}


@pytest.mark.parametrize(
    ("settings", "count", "port"),
    [
        ("{MetricsType: metrics/openmetrics}", "2", 6817),
        ("{MetricsType: metrics/openmetrics, SlurmctldPort: 7817}", "2", 7817),
        # Neither is answered without a token: slurm.conf(5) 26.05, and 25.11 with PrivateData.
        ("{MetricsType: metrics/openmetrics, MetricsAuthUsers: slurm}", "2", None),
        ("{MetricsType: metrics/openmetrics}", "{min: 0, max: 2}", None),
        ("{DebugFlags: Backfill}", "2", None),
    ],
)
def test_slurm_s_own_metrics_are_scraped_on_their_host_where_they_are_on(
    settings: str, count: str, port: int | None
) -> None:
    text = _SPEC.replace("COUNT", count).replace(
        "{type: slurm}", f"{{type: slurm, settings: {{slurm: {settings}}}}}"
    )

    def port_of(pool: str, monitoring: str) -> Any:
        loaded = load_text(f"{text}monitoring: {monitoring}\n")
        assert loaded.spec is not None, loaded.diagnostics
        step = steps(golden.compiled(loaded.spec), pool)["prometheus.configure"]
        return step.variables.get("prometheus_slurmctld_port")

    assert port_of("head", "{prometheus: true}") == port
    assert port_of("login", "{prometheus: true, pool: login}") is None


def test_owners_of_jobs_get_the_alert_and_limits_are_in_the_rule() -> None:
    written = (
        "{prometheus: true, alerts: {mail: {to: [ops@example.edu], from: g@example.edu, "
        "server: 's.example.edu:25'}}, waste_alert: {below: 25%, for: 45m, min_usd_per_hour: 20, "
        "to_owner: true, mail_domain: example.edu}}\n"
    )
    users = "users: [{name: ada, uid: 2001, mail: ada@example.org}, {name: bob, uid: 2002}]\n"
    directory = "users: {source: sssd, ldap: 'ldaps://dir.example.edu'}\n"

    def given(text: str) -> dict[str, Step]:
        loaded = load_text(_SPEC.replace("COUNT", "2") + f"monitoring: {written}{text}")
        assert loaded.spec is not None, loaded.diagnostics
        return steps(golden.compiled(loaded.spec), "head")

    def owner(text: str) -> tuple[list[str], str]:
        config = config_of(given(text)["alertmanager.configure"].variables)
        [receiver] = [one for one in config["receivers"] if one["name"] == "owner"]
        return config["route"]["routes"][0]["matchers"], receiver["email_configs"][0]["to"]

    by_name, to = owner(users)
    assert by_name == ['alertname="GpusWasted"', 'user=~"ada|bob"']
    assert to == (
        '{{ if eq .GroupLabels.user "ada" }}ada@example.org{{ end }}'
        '{{ if eq .GroupLabels.user "bob" }}bob@example.edu{{ end }}'
    )
    assert owner(directory)[1] == "{{ .GroupLabels.user }}@example.edu"
    rules = given(users)["prometheus.configure"].variables["prometheus_rules"]
    for part in ("active[2700s]", "< 0.25", ">= 2700", "[2700s])) < 20"):
        assert part in rules


def test_ceilings_and_ends_of_the_budget_have_their_alerts_and_no_others_do() -> None:
    def rules_with(budget: str) -> str:
        text = _SPEC.replace("COUNT", "2") + f"monitoring: {{prometheus: true}}\n{budget}"
        loaded = load_text(text)
        assert loaded.spec is not None, loaded.diagnostics
        step = steps(golden.compiled(loaded.spec), "head")["prometheus.configure"]
        return str(step.variables["prometheus_rules"])

    by_the_month = rules_with("budget: {max_usd_per_month: 9000, expires: 30d}\n")

    assert "expr: vector(9000)" in by_the_month
    assert {"BudgetBurn", "ClusterEnds"} <= set(by_the_month.split())
    assert "BudgetHour" not in by_the_month
    assert {"BudgetBurn", "BudgetHour", "ClusterEnds"}.isdisjoint(rules_with("").split())


def test_a_node_more_changes_what_is_scraped_and_no_other_node() -> None:
    before, after = (compiled("{prometheus: true}", count) for count in (2, 3))
    assert steps(before, "gpu") == steps(after, "gpu")
    changed = {
        key for key, step in steps(after, "head").items() if steps(before, "head")[key] != step
    }
    assert changed == {"prometheus.join"}
    assert [one["labels"]["instance"] for one in targets(after, "head")] == [
        "head", "login", "login002", "gpu001", "gpu002", "gpu003",
    ]  # fmt: skip


def test_simulated_gpus_have_a_double_on_their_nodes_alone_and_need_no_vendor() -> None:
    cluster = compiled("{prometheus: true}")
    [group] = [group for group in cluster.groups if group.name == "gpu"]
    double = {step.key: step.variables for step in group.steps if step.role == "dcgm_exporter"}
    assert double["dcgm_exporter.install"] == {"dcgm_exporter_double": True}
    assert double["dcgm_exporter.configure"]["dcgm_exporter_gpus"] == 8
    assert all(step.role != "package_sources" for step in group.steps)
    others = [group for group in cluster.groups if group.name != "gpu"]
    assert all(step.role != "dcgm_exporter" for group in others for step in group.steps)
    requested = steps(cluster, "head")["prometheus.join"].variables["prometheus_gpu_targets"]
    assert [one["targets"] for one in requested] == [["10.210.0.2:9400"], ["10.210.0.3:9400"]]


def test_nodes_of_kubernetes_made_here_have_the_same_and_kubernetes_own_metrics() -> None:
    text = _SPEC.replace("{type: slurm}", "{type: kubernetes, kueue: false}")
    text = text.replace("  login: {site: here, role: login, count: 2}\n", "").replace("COUNT", "2")
    loaded = load_text(f"{text}monitoring: {{prometheus: true, waste_alert: {{below: 40%}}}}\n")
    assert loaded.spec is not None, loaded.diagnostics
    cluster = golden.compiled(loaded.spec)
    roles = {group.name: {step.role for step in group.steps} for group in cluster.groups}
    assert {"node_exporter", "dcgm_exporter"} <= roles["gpu"]
    assert {"prometheus", "alertmanager"} <= roles["head"] - roles["gpu"]
    assert "slurm_exporter" not in roles["head"]

    head = steps(cluster, "head")
    given = head["prometheus.join"].variables
    kinds = ("targets", "gpu_targets", "apiserver_targets", "kubelet_targets")
    scraped = {
        kind: [
            f"{one['labels']['instance']}:{one['targets'][0].rpartition(':')[2]}"
            for one in given[f"prometheus_{kind}"]
        ]
        for kind in kinds
    }
    assert scraped == {
        "targets": ["head:9100", "gpu001:9100", "gpu002:9100"],
        "gpu_targets": ["gpu001:9400", "gpu002:9400"],
        "apiserver_targets": ["head:6443"],
        "kubelet_targets": ["head:10250", "gpu001:10250", "gpu002:10250"],
    }
    quiet = config_of(head["alertmanager.configure"].variables)["inhibit_rules"]
    assert quiet == inhibitions("kubernetes")
    configured = head["prometheus.configure"].variables
    assert configured["prometheus_kubernetes"] is True
    assert given["prometheus_elastic"] == []
    written = set(str(configured["prometheus_rules"]).replace("\n", " ").split())
    assert {"KubeNodeDown", "KubeMetricsOld", "KubeGpusWasted", "UnitFailed", "GpuXid"} <= written
    assert written.isdisjoint({"NodeDown", "SlurmControllerDown", "KubeMetricsDown", "GpusWasted"})


def test_nodes_of_kubernetes_that_come_and_go_may_be_scraped_and_are_on_no_other_list() -> None:
    text = _SPEC.replace("{type: slurm}", "{type: kubernetes, kueue: false}")
    text = text.replace("  login: {site: here, role: login, count: 2}\n", "")
    text = text.replace("COUNT", "{min: 1, max: 3}")
    loaded = load_text(f"{text}monitoring: {{prometheus: true}}\n")
    assert loaded.spec is not None, loaded.diagnostics
    given = steps(golden.compiled(loaded.spec), "head")["prometheus.join"].variables

    assert given["prometheus_elastic"] == [
        {
            "pool": "gpu",
            "site": "here",
            "nodes": ["gpu002", "gpu003"],
            "ports": {"node": 9100, "gpu": 9400, "kubelet": 10250},
        }
    ]
    [_, fixed] = given["prometheus_kubelet_targets"]
    assert fixed["labels"]["instance"] == "gpu001"


def test_amd_s_gpus_have_amd_s_exporter_and_their_rules_and_nothing_more_is_scraped() -> None:
    loaded = load_text(
        "apiVersion: gcluster/v1\nname: demo\n"
        "sites: {hall: {provider: bare-metal, ssh: {user: ops}}}\n"
        "pools:\n"
        "  head: {site: hall, role: controller, hosts: [{name: head01, address: 10.0.0.1}]}\n"
        "  gpu: {site: hall, machine: mi300x-8, hosts: [{name: gpu01, address: 10.0.0.2}], "
        "cpu: {sockets: 2, cores: 56, threads_per_core: 2}, memory: 2048 GiB}\n"
        "scheduler: {type: slurm}\nsoftware: {distribution: ubuntu-22.04}\n"
        "monitoring: {prometheus: true, waste_alert: {below: 40%}}\n"
    )
    assert loaded.spec is not None, loaded.diagnostics
    cluster = golden.compiled(loaded.spec)
    roles = {group.name: {step.role for step in group.steps} for group in cluster.groups}
    assert "amd_exporter" in roles["gpu"] - roles["head"]
    assert "dcgm_exporter" not in roles["gpu"] | roles["head"]
    prometheus = steps(cluster, "head")
    assert prometheus["prometheus.join"].variables["prometheus_gpu_targets"] == []
    rules = str(prometheus["prometheus.configure"].variables["prometheus_rules"])
    assert {"AmdGpuUnhealthy", "GpusWasted", "gpu_gfx_activity"} <= set(
        rules.replace("(", " ").replace(")", " ").split()
    )
    assert "DCGM_" not in rules


def test_pools_whose_firmware_names_bmcs_measure_their_power_and_have_its_panels() -> None:
    loaded = load_text(
        "apiVersion: gcluster/v1\nname: demo\n"
        "sites: {hall: {provider: bare-metal, ssh: {user: ops}}}\n"
        "pools:\n"
        "  head: {site: hall, role: controller, hosts: [{name: head01, address: 10.0.0.1}]}\n"
        "  gpu: {site: hall, machine: hgx-h100-8, hosts: [{name: gpu01, address: 10.0.0.2}], "
        "firmware: {bmc: 'https://{host}-bmc.example.edu', credentials: bmc}}\n"
        "scheduler: {type: slurm}\nsoftware: {distribution: ubuntu-22.04}\n"
        "monitoring: {prometheus: true}\n"
    )
    assert loaded.spec is not None, loaded.diagnostics
    cluster = golden.compiled(loaded.spec)
    phases = {
        group.name: [s.phase for s in group.steps if s.role == "ipmi_exporter"]
        for group in cluster.groups
    }
    assert phases == {"head": [], "gpu": ["install", "configure", "verify"]}
    assert b"Power of whole nodes" in grafana_files(cluster)["gcluster-demo/cluster.json"]
    assert not [key for key in steps(compiled("{prometheus: true}"), "gpu") if "ipmi" in key]


def test_each_target_is_a_node_s_own_address_with_its_name_and_pool() -> None:
    first, *_ = targets(compiled("{prometheus: true}"), "head")
    assert first == {
        "targets": ["10.210.1.2:9100"],
        "labels": {"instance": "head", "pool": "head", "site": "here"},
    }


def test_hosts_without_an_address_or_with_nothing_on_them_are_not_queried() -> None:
    loaded = load_text(_SPEC.replace("COUNT", "2") + "monitoring: {prometheus: true}\n")
    assert loaded.spec is not None
    known = golden.inventory_of(loaded.spec)
    hosts = [
        msgspec.structs.replace(host, address="")
        if host.name == "gpu001"
        else msgspec.structs.replace(host, connection="simulated")
        if host.name == "gpu002"
        else host
        for host in known.hosts
    ]
    inventory = ClusterInventory(cluster="demo", hosts=tuple(hosts))
    found = targets(compile_cluster(loaded.spec, inventory, load_catalog()), "head")
    assert {one["labels"]["pool"] for one in found} == {"head", "login"}


@pytest.mark.parametrize(
    ("written", "given"), [("90d", "90d"), ("12h", "43200s"), ("36h", "129600s")]
)
def test_retention_is_passed_on_in_whole_units(written: str, given: str) -> None:
    configure = steps(compiled(f"{{prometheus: true, retention: {written}}}"), "head")[
        "prometheus.configure"
    ]
    assert configure.variables["prometheus_retention"] == given


def test_without_retention_the_role_s_default_holds() -> None:
    configure = steps(compiled("{prometheus: true}"), "head")["prometheus.configure"]
    assert "prometheus_retention" not in configure.variables


def test_the_authority_s_key_goes_to_no_node_and_the_client_s_to_one_pool() -> None:
    cluster = compiled("{prometheus: true, pool: login}")
    secrets = {
        group.name: {
            secret
            for step in steps(cluster, group.name).values()
            for secret in step.secrets.values()
        }
        for group in cluster.groups
    }
    exporter = {"monitoring-authority", "monitoring-exporter"}
    assert secrets["gpu"] == secrets["head"] == exporter
    assert secrets["login"] == exporter | {"monitoring-server", "monitoring-password"}
