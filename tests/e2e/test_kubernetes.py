"""Kubernetes on real local nodes: from a spec to ready nodes with all that was compiled.

The tests of this file run in order and share one cluster of a control plane and a node.
"""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster import places
from gcluster.lifecycle.kubernetes.release.build import built_folder
from gcluster.schemas.stack.bundle import BUNDLES, MANIFEST

from .conftest import until
from .kubernetes_site import KubernetesCluster, kernel, name_servers, pod

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]

KERNEL_BEFORE = kernel()

PROXY_HAS_WRITTEN = (
    "python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:10256/healthz\")'"
)
"""Ends with 0 once kube-proxy has written its rules."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A cluster that is taken down whatever happens."""
    cluster = KubernetesCluster(tmp_path_factory.mktemp("kubernetes"))
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


def test_plan_reports_where_kubernetes_comes_from_and_changes_nothing(
    live: KubernetesCluster,
) -> None:
    plan = live.json("plan", str(live.spec))
    assert str(built_folder()) in plan["kubernetes"]
    assert "add PriorityClass: high, low, normal, gcluster-smoke" in plan["objects"]["changes"]
    assert live.engine("ps", "--all") == []


def test_another_version_than_the_bundles_is_refused_before_anything_is_made(
    live: KubernetesCluster,
) -> None:
    live.write_spec(nodes=1, end='software: {kubernetes: "1.34.1"}\n')
    output = live.gcluster("up", str(live.spec), "--yes", expect=4)
    assert "GC1001" in output.stderr
    live.write_spec(nodes=1)
    assert live.engine("ps", "--all") == []


@pytest.mark.parametrize("how", ["missing", "other"])
def test_a_damaged_bundle_is_refused_before_anything_is_made(
    live: KubernetesCluster, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "gcluster" / BUNDLES
    damaged = cache / built_folder().name
    shutil.copytree(built_folder(), damaged)
    kube = damaged / "bin" / "kube"
    kube.unlink()
    if how == "other":
        kube.write_text("not what was built")
    monkeypatch.setitem(live.environment, "XDG_CACHE_HOME", str(tmp_path))
    output = live.gcluster("up", str(live.spec), "--yes", expect=4)
    assert "GC1000" in output.stderr
    assert str(kube) in output.stderr.replace("\n", "")
    shutil.rmtree(cache)
    assert live.engine("ps", "--all") == []


def test_up_can_be_killed_while_the_control_plane_is_made(live: KubernetesCluster) -> None:
    live.cut_off("head kubernetes.join", killing="kubeadm init")
    mark = "/etc/kubernetes/gcluster/init-unfinished"
    there = ["podman", "exec", f"gcluster-{live.name}-head", "test", "-e", mark]
    assert subprocess.run(there, check=False).returncode == 0


def test_up_continues_to_ready_nodes(live: KubernetesCluster) -> None:
    result = live.up()
    assert result["failed_hosts"] == {}
    assert live.ready() == {"head": True, "gpu001": True}


def test_what_was_compiled_is_applied(live: KubernetesCluster) -> None:
    label = f"--selector=gcluster.local/cluster={live.name}"
    names = {one["metadata"]["name"] for one in live.get("namespaces", label)["items"]}
    assert names == {"gcluster-system", "physics"}
    values = {
        c["metadata"]["name"]: c["value"] for c in live.get("priorityclasses", label)["items"]
    }
    assert (values["low"], values["high"]) == (10, 1000)
    managers = {
        field["manager"]
        for field in live.get("resourcequotas", "--namespace=physics", "--show-managed-fields")[
            "items"
        ][0]["metadata"]["managedFields"]
        if field["operation"] == "Apply"
    }
    assert managers == {"gcluster"}
    labels = live.get("node", "gpu001")["metadata"]["labels"]
    assert labels["partition.gcluster.local/main"] == "true"


def test_the_api_server_is_closed_and_kubelets_serve_by_signed_certificates(
    live: KubernetesCluster,
) -> None:
    manifests = live.on("head", "cat /etc/kubernetes/manifests/*.yaml")
    for flag in (
        "--audit-policy-file=",
        "--enable-admission-plugins=NodeRestriction",
        "--encryption-provider-config=",
        "--authentication-config=/etc/kubernetes/gcluster/authentication.yaml",
        "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt",
        "--quota-backend-bytes=8589934592",
    ):
        assert flag in manifests, flag
    spaces = live.get("namespace", "physics")["metadata"]["labels"]
    assert spaces["pod-security.kubernetes.io/enforce"] == "restricted"
    assert live.get("limitrange", "containers", "--namespace=physics")["spec"]["limits"]
    other = (
        "kubectl --kubeconfig=/etc/kubernetes/kubelet.conf label node head mine=true 2>&1 || true"
    )
    assert "forbidden" in live.on("gpu001", other).lower()
    for node in ("head", "gpu001"):
        issuer = "openssl x509 -noout -issuer -in /var/lib/kubelet/pki/kubelet-server-current.pem"
        assert "kubernetes" in live.on(node, issuer)
        kubelet = json.loads(live.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/configz"))
        assert kubelet["kubeletconfig"]["maxParallelImagePulls"] == 8  # by default


def test_root_of_a_control_plane_needs_no_kubeconfig(live: KubernetesCluster) -> None:
    done = subprocess.run(
        ["podman", "exec", f"gcluster-{live.name}-head", "kubectl", "get", "nodes"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_person_can_log_in_with_the_rights_of_their_account_and_no_more(
    live: KubernetesCluster, tmp_path: Path
) -> None:
    def allowed(access: Path, *arguments: str) -> tuple[int, str]:
        node = f"gcluster-{live.name}-head"
        subprocess.run(["podman", "cp", str(access), f"{node}:/run/access"], check=True)
        done = subprocess.run(
            ["podman", "exec", node, "kubectl", "--kubeconfig=/run/access", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    ada, admin = tmp_path / "ada", tmp_path / "admin"
    as_ada = ("--as", "physics", "--user", "ada", "--for", "10m", "--out", str(ada))
    message = live.json("kubeconfig", str(live.spec), *as_ada)
    assert message["reachable"], message
    assert stat.S_IMODE(ada.stat().st_mode) == 0o600
    assert allowed(ada, "get", "jobs")[0] == 0
    assert allowed(ada, "auth", "can-i", "create", "jobs")[1].strip() == "yes"
    for refused in (("create", "pods"), ("get", "nodes"), ("get", "secrets", "-nkube-system")):
        assert allowed(ada, "auth", "can-i", *refused)[1].startswith("no\n"), refused
    assert "Forbidden" in allowed(ada, "get", "nodes")[1]
    live.gcluster("kubeconfig", str(live.spec), "--out", str(admin))
    assert allowed(admin, "get", "nodes")[0] == 0
    bound = live.get("rolebinding", "account-member", "--namespace=physics")["subjects"]
    assert {"oidc:ada", "oidc:/physics"} <= {subject["name"] for subject in bound}
    requests = [item["metadata"]["name"] for item in live.get("csr")["items"]]
    assert not [name for name in requests if name.startswith("gcluster-")]


def test_a_second_up_changes_nothing(live: KubernetesCluster) -> None:
    before = live.stamp_times()
    assert live.up()["changed"] is False
    assert live.stamp_times() == before


def test_right_after_up_nothing_has_drifted_and_everything_is_known(
    live: KubernetesCluster,
) -> None:
    report = live.json("drift", str(live.spec), "--detailed-exitcode")
    assert report["drifts"] == []
    assert (report["silent"], report["behind"], report["unsealed"]) == ({}, [], {})


def test_what_was_deleted_by_hand_is_in_the_plan_and_comes_back(live: KubernetesCluster) -> None:
    live.kubectl("delete", "priorityclass", "high")
    plan = live.json("plan", str(live.spec))
    assert plan["objects"]["changes"] == ["add PriorityClass: high"]
    live.up()
    assert live.json("plan", str(live.spec))["objects"]["changes"] == []


def test_names_are_found_and_pods_of_both_nodes_are_reached(live: KubernetesCluster) -> None:
    live.apply(*name_servers())
    until(lambda: live.get("daemonset", "names")["status"].get("numberReady") == 2, seconds=90)
    for one in live.get("pods", "--selector=app=names")["items"]:
        live.finds_names(one)


def test_pods_resolve_names_in_the_clusters_domains_alone(live: KubernetesCluster) -> None:
    """Those of their node are added to these, and the engine's domain answers over UDP alone."""
    assert "search" not in live.on("gpu001", "cat /etc/resolv.conf")


def test_services_outlive_a_kube_proxy_that_starts_again(live: KubernetesCluster) -> None:
    """It compares what nft lists with what it would write: what differs it takes for a leftover."""
    mine = ("--namespace=kube-system", "--selector=k8s-app=kube-proxy")
    live.kubectl("delete", "pods", *mine, "--wait")
    for node in ("head", "gpu001"):
        synced = ("ssh", str(live.spec), node, "--", PROXY_HAS_WRITTEN)
        until(
            lambda requested=synced: live.gcluster(*requested, expect=None).returncode == 0,
            seconds=90,
        )
    for one in live.get("pods", "--selector=app=names")["items"]:
        live.finds_names(one)


def test_simulated_gpus_are_given_out_and_no_more_than_there_are(live: KubernetesCluster) -> None:
    assert live.get("node", "gpu001")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    live.apply(pod("eight", gpus=8, qos="low"))
    live.runs("eight")


def test_a_quota_is_held(live: KubernetesCluster) -> None:
    answer = live.apply(pod("ninth", gpus=1, qos="low"), expect=1)
    assert "exceeded quota" in answer
    live.free()


def test_a_node_takes_no_pod_before_its_device_plugin_has_registered(
    live: KubernetesCluster,
) -> None:
    live.free()
    plugin = ("daemonset", "simulated-gpu-gpu", "--namespace=gcluster-system")
    live.kubectl("delete", *plugin, "--wait")
    live.kubectl("delete", "node", "gpu001")
    live.on("gpu001", "systemctl restart kubelet")
    until(lambda: live.ready().get("gpu001", False), seconds=90)
    taints = [one["key"] for one in live.get("node", "gpu001")["spec"]["taints"]]
    assert "gcluster.local/startup" in taints
    live.apply(pod("early", qos="low"))
    status = live.json("status", str(live.spec), expect=None)
    (node,) = (one for one in status["nodes"] if one["name"] == "gpu001")
    assert node["reason"] == "no device plugin has registered nvidia.com/gpu yet"
    assert live.phase("early") == "Pending"
    live.free()
    live.up()
    live.apply(pod("late", qos="low"))
    live.runs("late")
    found = live.get("node", "gpu001")
    assert not [t for t in found["spec"].get("taints", []) if "gcluster" in t["key"]]
    assert found["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    live.free()


def test_a_quality_of_service_that_the_account_has_not_is_refused(live: KubernetesCluster) -> None:
    answer = live.apply(pod("other", qos="normal"), expect=1)
    assert "priorityClassName of this account" in answer


def test_an_account_that_the_spec_drops_keeps_its_work_and_goes_when_that_ended(
    live: KubernetesCluster,
) -> None:
    live.write_spec(nodes=1, more="biology: {qos: [low], users: [ada]}")
    live.up()
    live.apply(pod("kept", qos="low", namespace="biology"))
    live.write_spec(nodes=1)
    assert "GC1007" in {diagnostic["code"] for diagnostic in live.up()["diagnostics"]}
    assert live.phase("kept", "biology") == "Running"
    live.kubectl("delete", "pod", "kept", "--namespace=biology")
    live.up()
    until(lambda: "NotFound" in live.kubectl("get", "namespace", "biology", expect=None))


def test_renewed_certificates_are_read_by_a_control_plane_that_is_ready_again(
    live: KubernetesCluster,
) -> None:
    head = ["podman", "exec", f"gcluster-{live.name}-head"]
    subprocess.run([*head, "touch", "/etc/kubernetes/pki/apiserver.crt"], check=True)
    program = "/usr/local/libexec/gcluster/kubernetes-certificates.py"
    done = subprocess.run([*head, program, "--renew"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("restarted, to read their certificates: etcd, kube-apiserver")
    again = subprocess.run([*head, program, "--renew"], capture_output=True, text=True, check=True)
    assert again.stdout == ""
    until(lambda: all(live.ready().values()), seconds=60)


def test_tokens_are_signed_by_another_key_and_those_before_are_taken_for_an_hour(
    live: KubernetesCluster,
) -> None:
    first = live.token()
    rotate = ("rotate", "service-accounts", str(live.spec))
    result = live.json(*rotate)
    assert (result["changed"], result["left"]) == (["head"], {})
    assert live.takes(live.token())
    assert live.takes(first)
    refused = live.gcluster(*rotate, expect=1)
    assert "GC1033" in refused.stderr
    assert live.up()["changed"] is False


def test_a_killed_node_comes_back(live: KubernetesCluster) -> None:
    subprocess.run(
        ["podman", "kill", f"gcluster-{live.name}-gpu001"], check=True, capture_output=True
    )
    live.up()
    assert live.ready() == {"head": True, "gpu001": True}


def test_a_node_whose_container_is_gone_is_recreated_and_joins(live: KubernetesCluster) -> None:
    before = live.get("node", "gpu001")["metadata"]["uid"]
    gone = ["podman", "rm", "--force", "--volumes", "--time", "0", f"gcluster-{live.name}-gpu001"]
    subprocess.run(gone, check=True, capture_output=True)
    live.up()
    assert live.ready() == {"head": True, "gpu001": True}
    assert live.get("node", "gpu001")["metadata"]["uid"] != before


def test_down_leaves_nothing_and_the_kernel_as_it_was(live: KubernetesCluster) -> None:
    made = live.volumes()
    assert len(made) == 6
    live.gcluster("down", str(live.spec), "--yes")
    assert not any(live.left_behind().values()), live.left_behind()
    left = subprocess.run(
        ["podman", "volume", "ls", "--quiet"], capture_output=True, text=True, check=True
    )
    assert set(made).isdisjoint(left.stdout.split())
    assert kernel() == KERNEL_BEFORE
    assert (built_folder() / MANIFEST).is_file(), places.cache_home()
