"""A pool's kubelet: what it keeps from pods, and how it places them on processors."""

from __future__ import annotations

from typing import Any

import pytest

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.hosts import ClusterInventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites:
  hall: {{provider: bare-metal, ssh: {{user: ops}}, network: {{cidr: 10.20.0.0/16}}}}
pools:
  head: {{site: hall, role: controller, hosts: [{{name: head01, address: 10.20.0.1}}]}}
  train:
    site: hall
    machine: dgx-h100
    hosts: [{{name: "gpu[01-04]", address: "10.20.1.[1-4]"}}]
    kubernetes: {{{requested}}}
scheduler: {{type: kubernetes, cni: cilium{more}}}
"""


def steps_of(requested: str = "", more: str = "") -> dict[str, list[Any]]:
    """Return pool -> its steps, in the order in which they run."""
    spec = load_text(
        SPEC.format(requested=requested, more=more and f", {more}"), file="demo.yaml"
    ).spec
    assert spec is not None
    inventory = ClusterInventory(cluster=spec.name, hosts=bare_metal_hosts(spec, "hall"))
    compiled = compile_cluster(spec, inventory, load_catalog())
    return {group.name: list(group.steps) for group in compiled.groups}


def settings(pool: str, requested: str = "") -> dict[str, Any]:
    """Return a pool's kubelet configuration."""
    (step,) = [one for one in steps_of(requested)[pool] if one.key == "kubelet.configure"]
    return dict(step.variables["kubelet_settings"])


def test_machines_with_gpus_keep_something_for_themselves_and_align_the_rest() -> None:
    gpu, head = settings("train"), settings("head")
    # dgx-h100: 224 threads and 2 TiB.
    assert gpu["kubeReserved"] == {"cpu": "4", "memory": "21996Mi"}
    assert (gpu["cpuManagerPolicy"], gpu["topologyManagerPolicy"]) == ("static", "best-effort")
    assert (gpu["podPidsLimit"], gpu["seccompDefault"]) == (32768, True)
    assert (gpu["serializeImagePulls"], gpu["maxParallelImagePulls"]) == (False, 8)
    assert "memoryManagerPolicy" not in gpu
    assert "cpuManagerPolicy" not in head
    assert head["kubeReserved"] == {"cpu": "1", "memory": "1024Mi"}


def test_a_pool_has_otherwise() -> None:
    requested = (
        "alignment: none, pin_memory: true, reserved_cpus: 6, reserved_memory: 8 GiB, max_pods: 60"
    )
    written = settings("train", f"{requested}, pids_per_pod: 4096, parallel_pulls: 1")
    assert written["kubeReserved"] == {"cpu": "6", "memory": "8192Mi"}
    assert "cpuManagerPolicy" not in written
    # With what is evicted below: a kubelet refuses any other sum.
    assert written["reservedMemory"] == [{"numaNode": 0, "limits": {"memory": "8292Mi"}}]
    assert (written["maxPods"], written["podPidsLimit"]) == (60, 4096)
    assert written["serializeImagePulls"] is True
    assert "maxParallelImagePulls" not in written


@pytest.mark.parametrize("pool", ["head", "train"])
def test_the_settings_are_there_before_the_first_kubelet_and_drain_a_node_later(pool: str) -> None:
    steps = steps_of()[pool]
    keys = [step.key for step in steps]
    assert keys.index("kubelet.configure") < keys.index("kubernetes.join")
    (step,) = [one for one in steps if one.key == "kubelet.configure"]
    assert step.needs_drain


def test_the_join_of_control_planes_runs_again_where_people_log_in_otherwise() -> None:
    oidc = "oidc: {issuer: https://login.example.edu, client_id: kubernetes}"
    with_login = {
        pool: next(one for one in steps if one.key == "kubernetes.join")
        for pool, steps in steps_of(more=oidc).items()
    }
    plain = {
        pool: next(one for one in steps if one.key == "kubernetes.join")
        for pool, steps in steps_of().items()
    }
    assert "kubernetes_authentication" in with_login["head"].variables
    assert with_login["head"].digest("", {}) != plain["head"].digest("", {})
    assert with_login["train"] == plain["train"]
