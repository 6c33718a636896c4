"""Claims of devices on a real API server with its controllers: NVLink's channels, claimed GPUs.

The ComputeDomains of NVL72 nodes are taken under NVIDIA's CRD, accounts claim their channels and
not what runs IMEX, and quotas count what claims request. NVIDIA's driver isn't there: its claim
template is made by its hand, and no node has a device.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer
from tests.lifecycle.kubernetes.addons.api import LocalKubectl

from gcluster.inventory.compile.kubernetes_objects.accounts import quotas
from gcluster.inventory.compile.kubernetes_objects.devices.nvlink import (
    ADDON,
    CHANNEL_CLASS,
    DAEMON_CLASS,
)
from gcluster.lifecycle.kubernetes.addons.ownership import establish
from gcluster.schemas.catalog import load_catalog

from .compiled import Object, objects_of, of_kind
from .crds import crds, module_folder
from .test_nvlink import CASE, CHART, MODULE, claim, with_gpus
from .test_templates import templates_of
from .test_valid import THIRD_PARTY

pytestmark = pytest.mark.kubernetes_api

ADA = ("--as=ada", "--as-group=system:authenticated")
"""A member of account nlp."""
DRIVERS_SPACE = load_catalog().addons[ADDON].namespace
DRIVER = (f"--as=system:serviceaccount:{DRIVERS_SPACE}:driver", "--as-group=system:masters")
"""NVIDIA's controller, whose roles its chart brings."""
GPU, SLICE, MACHINES_GPU = "gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"


class Server:
    """The server, and what a person does there."""

    def __init__(self, api: Any) -> None:
        """Take it."""
        self._api = api

    def create(self, made: Object, *who: str, dry: bool = False) -> str:
        """Return "" where an object is created, else the refusal."""
        words = [*who, "create", "--filename=-", *(["--dry-run=server"] if dry else [])]
        done = self._api.kubectl(*words, stdin=json.dumps(made), check=False)
        return "" if done.returncode == 0 else str(done.stderr)

    def listed(self, kind: str, space: str) -> list[Object]:
        """Return the objects of a kind in a namespace."""
        answer = self._api.kubectl("get", kind, f"--namespace={space}", "--output=json").stdout
        return list(json.loads(answer)["items"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server with its controllers, NVIDIA's CRD, and the accounts of the racks."""
    with ApiServer() as api:
        api.run_scheduler()
        folder: Path = tmp_path_factory.mktemp("api")
        establish(LocalKubectl(api, folder), crds("resource.nvidia.com"), ADDON)
        found = Server(api)
        compiled = [made for name, made in objects_of(CASE) if name.startswith(("names", "accou"))]
        built_in = [
            made
            for made in compiled
            if made["apiVersion"].split("/")[0] not in THIRD_PARTY
            and not made["kind"].startswith("MutatingAdmission")  # comes with 1.36
        ]
        spaces = [made for made in built_in if made["kind"] == "Namespace"]
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DRIVERS_SPACE}}
        for objects in ([*spaces, space], [made for made in built_in if made not in spaces]):
            answer = api.apply(objects)
            assert answer.returncode == 0, answer.stderr
        daemon = request("none", DAEMON_CLASS)
        until(lambda: "gcluster-channels" in found.create(daemon, *ADA, dry=True))
        until(lambda: all("hard" in one["status"] for one in found.listed("quota", "nlp")))
        yield found


def until(holds: Callable[[], bool]) -> None:
    """Wait for what controllers and watches bring."""
    for _ in range(120):
        if holds():
            return
        time.sleep(0.5)
    raise AssertionError(holds)


def request(name: str, of: str, count: int = 1, space: str = "nlp", **more: Any) -> Object:
    """Return a claim of so many devices of a class."""
    wanted = {"deviceClassName": of, "allocationMode": "ExactCount", "count": count} | more
    spec = {"devices": {"requests": [{"name": "one", "exactly": wanted}]}}
    return _claim("ResourceClaim", name, spec, space)


def _claim(kind: str, name: str, spec: Object, space: str = "nlp") -> Object:
    metadata = {"name": name, "namespace": space}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def test_every_domain_is_taken_and_only_a_whole_one(server: Server) -> None:
    domains = [made for _, made in templates_of(CASE) if made["kind"] == "ComputeDomain"]
    domains += of_kind(CASE, "ComputeDomain")
    named = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in domains}
    assert {space for space, _ in named} > {"gcluster-system"}
    for one in named.values():
        assert server.create(one, dry=True) == ""
    first = next(iter(named.values()))
    assert "spec.channel" in server.create({**first, "spec": {"numNodes": 0}}, dry=True)
    more = {**first, "spec": {**first["spec"], "nodes": 2}}
    assert 'unknown field "spec.nodes"' in server.create(more, dry=True)


def test_a_member_makes_domains_in_its_own_account_alone(server: Server) -> None:
    domain = next(made for _, made in templates_of(CASE) if made["kind"] == "ComputeDomain")
    for space, refused in (("nlp", False), ("vision", True), (DRIVERS_SPACE, True)):
        one = {**domain, "metadata": {"name": "mine", "namespace": space}}
        answer = server.create(one, *ADA, dry=True)
        assert ("orbidden" in answer) == refused, answer
        assert (answer == "") != refused


@pytest.mark.parametrize("alternative", [False, True])
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_of_imex_itself_is_refused_and_one_of_a_channel_is_not(
    server: Server, kind: str, *, alternative: bool
) -> None:
    def answer(of: str, who: tuple[str, ...] = ADA, space: str = "nlp") -> str:
        asked = claim(of, alternative=alternative)
        if alternative:
            asked["devices"]["requests"][0]["firstAvailable"][0]["name"] = "first"
        spec = asked if kind == "ResourceClaim" else {"spec": asked}
        return server.create(_claim(kind, "probe", spec, space), *who, dry=True)

    assert answer(CHANNEL_CLASS) == ""
    refused = answer(DAEMON_CLASS)
    assert "gcluster-channels" in refused
    assert "make a ComputeDomain and claim its channel" in refused
    assert answer(DAEMON_CLASS, DRIVER, DRIVERS_SPACE) == ""  # NVIDIA's driver has its own there
    assert "orbidden" in answer(CHANNEL_CLASS, ADA, "vision")  # where another's domain is
    assert "orbidden" in answer(DAEMON_CLASS, ADA, DRIVERS_SPACE)


def test_pods_of_a_job_get_a_claim_each_of_the_domain_s_template(server: Server) -> None:
    objects = [
        made
        for part, made in templates_of(CASE)
        if part == "rack" and made["metadata"]["name"] == "torchrun"
    ]
    assert {made["kind"] for made in objects} == {"ComputeDomain", "Service", "Job"}
    for made in objects:
        assert server.create(made, *ADA) == ""
    spec = {"spec": claim(CHANNEL_CLASS)}
    template = _claim("ResourceClaimTemplate", "torchrun-channel", spec)
    assert server.create(template, *DRIVER) == ""
    until(lambda: len(server.listed("resourceclaims", "nlp")) == 2)
    pods = {one["metadata"]["name"] for one in server.listed("pods", "nlp")}
    owners = {
        owner["name"]
        for one in server.listed("resourceclaims", "nlp")
        for owner in one["metadata"]["ownerReferences"]
    }
    assert owners == pods


def test_no_account_has_more_channels_than_nodes_of_its_quota(server: Server) -> None:
    used = len(server.listed("resourceclaims", "nlp"))
    assert server.create(request("rest", CHANNEL_CLASS, 8 - used), *ADA) == ""
    assert "exceeded quota" in server.create(request("more", CHANNEL_CLASS), *ADA)
    every = request("every", CHANNEL_CLASS)
    every["spec"]["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": CHANNEL_CLASS,
        "allocationMode": "All",
    }
    assert "exceeded quota" in server.create(every, *ADA)


def test_claimed_gpus_are_counted_whatever_class_they_are_claimed_by(server: Server) -> None:
    facts = with_gpus(resource_claims=True)
    (quota,) = [one for one in quotas(facts) if one["metadata"]["name"] == "gpus"]
    elsewhere = {"name": "claimed", "namespace": "vision"}
    assert server.create({**quota, "metadata": elsewhere}) == ""
    until(lambda: all("hard" in one["status"] for one in server.listed("quota", "vision")))
    assert server.create(request("all", GPU, 30, "vision")) == ""
    for of in (GPU, SLICE, MACHINES_GPU):
        assert "exceeded quota" in server.create(request("more", of, 1, "vision")), of
    assert {GPU, SLICE, MACHINES_GPU} == set(classes_of("gpu.nvidia.com"))


def classes_of(driver: str) -> Iterator[str]:
    """Yield the device classes of NVIDIA's chart that give this driver's devices."""
    for path in (module_folder(MODULE) / CHART / "templates").glob("deviceclass-*.yaml"):
        text = path.read_text(encoding="utf-8")
        if f"device.driver == '{driver}'" in text:
            yield text.partition("\n  name: ")[2].split()[0]


def test_a_quota_of_a_qos_counts_no_claim(server: Server) -> None:
    """So none is compiled for claimed GPUs (GC591 says so): it would look as if it held."""
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["normal"]}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "qos-normal", "namespace": "gcluster-system"},
        "spec": {
            "hard": {f"{GPU}.deviceclass.resource.k8s.io/devices": "0"},
            "scopeSelector": {"matchExpressions": [scope]},
        },
    }
    assert server.create(quota) == ""
    until(lambda: all("hard" in one["status"] for one in server.listed("quota", "gcluster-system")))
    assert server.create(request("beyond", GPU, 1, "gcluster-system")) == ""
