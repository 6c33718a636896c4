"""Keys and authorities of Kubernetes on real local nodes, exchanged while pods run.

The tests of this file run in order and share one cluster of a control plane and a node.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .kubernetes_site import KubernetesCluster, pod

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A cluster that is taken down whatever happens."""
    cluster = KubernetesCluster(tmp_path_factory.mktemp("keys"))
    cluster.up()
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


def test_secrets_are_encrypted_by_another_key_and_stay_readable(live: KubernetesCluster) -> None:
    live.kubectl("create", "secret", "generic", "kept", "--from-literal=word=unmistakable")
    result = live.json("rotate", "at-rest", str(live.spec))
    assert (result["changed"], result["left"]) == (["head"], {})
    etcdctl = "/usr/local/libexec/gcluster/kubernetes-etcd.sh etcdctl"
    kept = f"{etcdctl} get /registry/secrets/default/kept --print-value-only | head -c 32"
    stored = live.on("head", kept)
    assert stored.strip() == "k8s:enc:secretbox:v1:gcluster-2:"
    assert live.get("secret", "kept")["data"]["word"] == "dW5taXN0YWthYmxl"
    assert live.up()["changed"] is False
    live.kubectl("delete", "secret", "kept")


def test_authorities_are_exchanged_while_pods_run_and_who_was_trusted_before_is_refused(
    live: KubernetesCluster, tmp_path: Path
) -> None:
    def answered(access: Path) -> str:
        """Return the API's answer to a kubeconfig."""
        subprocess.run(["podman", "cp", str(access), f"{head}:/run/access"], check=True)
        skip = "--insecure-skip-tls-verify" if access == old else "--request-timeout=30s"
        line = f"kubectl --kubeconfig=/run/access {skip} get nodes --output=name 2>&1 || true"
        return live.on("head", line)

    head = f"gcluster-{live.name}-head"
    old, new = tmp_path / "old", tmp_path / "new"
    live.gcluster("kubeconfig", str(live.spec), "--out", str(old))
    document = json.loads(old.read_text())
    del document["clusters"][0]["cluster"]["certificate-authority-data"]
    old.write_text(json.dumps(document))
    live.on("head", "cp /etc/kubernetes/pki/ca.crt /run/ca-of-before.crt")
    live.apply(pod("kept", qos="low"))
    live.runs("kept")
    since = live.get("pod", "kept", "--namespace=physics")["status"]["containerStatuses"]
    rotate = ("rotate", "certificate-authority", str(live.spec))
    waits = live.json(*rotate, expect=3)
    assert list(waits["waits_for"]) == ["physics/kept"]
    result = live.json(*rotate, "--now")
    assert (set(result["changed"]), result["left"]) == ({"head", "gpu001"}, {})
    found = live.get("pod", "kept", "--namespace=physics")["status"]["containerStatuses"]
    assert [one["containerID"] for one in found] == [one["containerID"] for one in since]
    assert live.ready() == {"head": True, "gpu001": True}
    assert "Unauthorized" in answered(old) or "logged in" in answered(old)
    live.gcluster("kubeconfig", str(live.spec), "--out", str(new))
    assert "node/gpu001" in answered(new)
    of_before = "openssl verify -CAfile /run/ca-of-before.crt"
    held = "/var/lib/kubelet/pki/kubelet-{client,server}-current.pem"
    of_now = f"for one in {held}; do openssl verify -CAfile /etc/kubernetes/pki/ca.crt $one; done"
    for node in ("head", "gpu001"):
        assert live.on(node, f"bash -c '{of_now}'").count("OK") == 2
    assert "OK" not in live.on(
        "head", f"{of_before} /etc/kubernetes/pki/apiserver.crt 2>/dev/null || true"
    )
    live.kubectl("logs", "--namespace=kube-system", "--selector=k8s-app=kube-proxy", "--tail=1")
    live.free()
    assert live.up()["changed"] is False


def test_the_allreduce_passes_after_it(live: KubernetesCluster) -> None:
    found = live.json("smoke", str(live.spec))
    assert found["verdict"]["verdict"] == "pass"


def test_tokens_of_a_key_that_was_exchanged_twice_are_refused(live: KubernetesCluster) -> None:
    first = live.token()
    for is_taken in (True, False):
        live.on("head", "touch --date='2 hours ago' /etc/kubernetes/pki/sa.key")
        live.json("rotate", "service-accounts", str(live.spec))
        assert live.takes(live.token())
        assert live.takes(first) is is_taken
