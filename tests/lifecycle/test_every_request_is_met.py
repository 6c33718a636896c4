"""Whatever a spec requests changes what is compiled, or has a finding of `validate`.

Each line of tests/cases/requests.yaml is put into a spec of each provider under each scheduler.
Where `validate` says nothing, hosts, steps, Kubernetes' objects or the recorded graph must differ
from those of the same spec without it; or `ELSEWHERE` says what acts on it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.compile.kubernetes_objects import kubernetes_files
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.lifecycle.kubernetes.objects import left_out
from gcluster.lifecycle.kubernetes.release.source import planned_at
from gcluster.lifecycle.planning.preflight.offline import offline_findings
from gcluster.lifecycle.smoke.launching.kubernetes import kubernetes_runs
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec, KubernetesScheduler
from gcluster.stacks.provider import Provider
from gcluster.stacks.pulumi import plan
from gcluster.stacks.registry import provider

REQUESTS: Mapping[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "cases" / "requests.yaml").read_text(encoding="utf-8")
)
CATALOG = load_catalog()
_CIDRS = {"cidr": "10.20.0.0/16", "admin_cidrs": ["192.0.2.0/24"]}
SITES: Mapping[str, dict[str, Any]] = {
    "aws": {"region": "us-east-1", "zone_id": "use1-az4", "network": _CIDRS},
    "gcp": {
        "project": "research",
        "region": "us-central1",
        "zone": "us-central1-a",
        "network": _CIDRS,
    },
    "azure": {
        "subscription": "00000000-0000-0000-0000-000000000000",
        "region": "eastus",
        "zone": "1",
        "network": _CIDRS,
    },
    "oci": {
        "region": "us-ashburn-1",
        "availability_domain": "1",
        "compartment": "ocid1.compartment.oc1..aaaa",
        "tenancy": "ocid1.tenancy.oc1..aaaa",
        "network": _CIDRS,
    },
    "bare-metal": {"ssh": {"user": "ops"}, "network": {"cidr": "10.0.0.0/16"}},
    "ssh-fleet": {"ssh": {"user": "ops"}},
}
BASES = [
    ("bare-metal", "slurm", "dgx-h100"),
    ("bare-metal", "slurm", "mi300x-8"),
    ("bare-metal", "kubernetes", "dgx-h100"),
    ("ssh-fleet", "slurm", "hgx-h100-8"),
]
OF_CLOUDS = [
    ("aws", "slurm", "p5.48xlarge"),
    ("gcp", "slurm", "a3-megagpu-8g"),
    ("azure", "slurm", "Standard_ND96isr_H100_v5"),
    ("oci", "slurm", "BM.GPU.H100.8"),
    ("aws", "eks", "p5.48xlarge"),
    ("gcp", "gke", "a3-megagpu-8g"),
    ("azure", "aks", "Standard_ND96isr_H100_v5"),
]
"""Recorded graphs take a minute a base: `make test-engine-double` runs them."""
ALL = BASES + (OF_CLOUDS if os.environ.get("GCLUSTER_ENGINE_DOUBLE") == "all" else [])

ELSEWHERE = {
    "budget.": "plan, up and the reaper hold the cluster to it",
    "smoke.": "the gate at the end of up",
    "update.": "rolling changes",
    "pool.quorum": "up goes live with so many",
    "pool.mixed": "up's fallback list",
    "account.": "sacctmgr, or what accounts that have people get",
    "qos.": "sacctmgr",
    "slurm.maintenance": "reservations that up makes",
    "software.sources": "a mirror of what these pools don't take",
    "slurm.memory_reserved": "least is 5 %, which is more here",
    "slurm.topology": "clouds know blocks when machines are there",
    "slurm.block_sizes": "clouds know blocks when machines are there",
    "site.ssh.via": "how gcluster logs in",
    "site.ssh.key": "how gcluster logs in",
    "site.network.cidr": "exports, firewalls and links alone",
    "site.roles": "nodes that need nothing have no identity there",
    "tags": "tags of what is made",
    "owner": "tags of what is made",
    "workloads": "scripts that compile writes, and run submits",
    "user.": "machines alone; nodes of a cloud's control plane are refused",
}
"""Start of a name in the cases -> who acts on it, where nothing that is compiled does."""
SO_ALREADY = (
    "partition.default", "partition.accounts", "pool.placement=cluster", "login.fabric",
    "login.placement", "tuning.", "rdma.drivers", "fabric ib", "software.containers=none",
    "software.slurm", "software.distribution", "k8s.gpu.driver",
    "fabric roce", "k8s.pod_security", "pool.cpu.threads", "pool.kubernetes.alignment",
    "st.efs.options",
)  # fmt: skip
"""Starts of names of what is requested and is so without it in these specs."""

OF_VOLUMES = (".pools", ".options", ".read_only")
"""Ends of names of what is requested of storage and is in a volume alone: pools that name all there
are, and what is written when the cloud has given the storage its address."""


def base(provider_: str, scheduler: str, machine: str) -> dict[str, Any]:
    """Return a spec of a provider: two GPU nodes, and what its scheduler needs in addition."""
    cloud, managed = provider_ in {"aws", "gcp", "azure", "oci"}, len(scheduler) == len("eks")

    def pool(name: str, count: int, row: int, **more: Any) -> dict[str, Any]:
        hosts = [{"name": f"{name}[1-{count}]", "address": f"10.0.{row}.[1-{count}]"}]
        return {"site": "here", **({"count": count} if cloud else {"hosts": hosts}), **more}

    door = {"public_address": True} if cloud else {}
    pools = {"gpu": pool("gpu", 2, 3, machine=machine)}
    if not managed:
        inside = door if scheduler == "kubernetes" else {}
        pools["head"] = pool("head", 1, 1, role="controller", **inside)
    if scheduler == "slurm":
        pools["login"] = pool("login", 1, 2, role="login", **door)
    kind: dict[str, Any] = {
        "type": "slurm" if scheduler == "slurm" else "kubernetes",
        "accounts": {"nlp": {}},
        "qos": {"normal": {}},
        "partitions": {"main": {"pools": ["gpu"]}},
    }
    if managed:
        kind |= {"control_plane": scheduler}
    if scheduler == "aks":
        kind |= {"gpu": {"driver": "container"}}
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLE0 ada"
    return {
        "apiVersion": "gcluster/v1",
        "name": "requests",
        "sites": {"here": {"provider": provider_, **SITES[provider_]}},
        "pools": pools,
        "scheduler": kind,
        "software": {} if managed else {"distribution": "ubuntu-24.04"},
        "users": [{"name": "ada", "uid": 2001, "keys": [key]}],
        "smoke": {"allreduce": {"image": "registry.example.edu/allreduce:1"}} if managed else {},
    }


def merged(document: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with another over it; null takes a key out."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            merged(document[key], value)
        elif value is None:
            document.pop(key, None)
        else:
            document[key] = copy.deepcopy(value)
    return document


class Compiled:
    """What a spec compiles to; graphs are recorded only where all else is alike."""

    def __init__(self, spec: ClusterSpec) -> None:
        """Compile hosts, steps and objects."""
        self._spec = spec
        self._sites: dict[str, Provider] = {
            name: provider(site.provider, CATALOG) for name, site in spec.sites.items()
        }
        hosts = inventory(
            spec, (h for name, by in self._sites.items() for h in by.planned_hosts(spec, name))
        )
        under, objects = None, {}
        if isinstance(spec.scheduler, KubernetesScheduler):
            under = planned_at(spec)
            objects = kubernetes_files(
                spec, hosts, CATALOG, kubernetes_runs, left_out(spec, hosts, CATALOG)
            )
        self.files = (hosts, compile_cluster(spec, hosts, CATALOG, kubernetes=under), objects)

    @property
    def graphs(self) -> list[object]:
        """The sites' recorded graphs."""
        return [by.record(self._spec, name) for name, by in self._sites.items()]

    def is_as(self, other: Compiled) -> bool:
        """Say whether nothing differs."""
        return self.files == other.files and self.graphs == other.graphs


def findings_and_compiled(document: dict[str, Any]) -> tuple[set[tuple[str, str]], Compiled | None]:
    """Return what validate says of a spec, and what it compiles to; None: it has errors."""
    loaded = load_text(yaml.safe_dump(document, sort_keys=False), file="spec.yaml")
    found = (*loaded.diagnostics, *offline_findings(loaded))
    findings = {(each.code, each.summary) for each in found}
    if loaded.spec is None or any(each.is_error for each in found):
        return findings, None
    return findings, Compiled(loaded.spec)


def dropped(spec: dict[str, Any]) -> Iterator[str]:
    """Yield what is requested and neither compiled nor found by `validate`."""

    @cache
    def result(*names: str) -> tuple[set[tuple[str, str]], Compiled | None]:
        document = copy.deepcopy(spec)
        for name in names:
            merged(document, REQUESTS[name]["request"])
        return findings_and_compiled(document)

    for name, case in REQUESTS.items():
        findings, compiled = result(name)
        without, before = result(*([case["with"]] if "with" in case else []))
        if before is None:
            without, before = result()
        assert before is not None, f"the base is wrong: {without}"
        if compiled is None or findings - without or name.startswith((*ELSEWHERE, *SO_ALREADY)):
            continue
        if not compiled.is_as(before):
            continue
        managed = len(spec["pools"]) == 1
        if managed and name.startswith("st.") and name.endswith(OF_VOLUMES):
            continue
        if not name.endswith((".site", "=preinstalled", "=unm")):  # as without the word
            yield name


@pytest.mark.parametrize(("provider_", "scheduler", "machine"), ALL)
def test_nothing_that_a_spec_requests_is_dropped_in_silence(
    provider_: str, scheduler: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "spec_hash", lambda _: "the same for all")  # is in all tags
    assert list(dropped(base(provider_, scheduler, machine))) == []


def test_every_reason_is_one_for_something() -> None:
    starts = (*ELSEWHERE, *SO_ALREADY)
    assert [s for s in starts if not any(name.startswith(s) for name in REQUESTS)] == []
