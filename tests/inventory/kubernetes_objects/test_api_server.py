"""A real API server takes every compiled object of a built-in kind: strictly, as a dry run.

It finds what schemas don't: words of enumerations, quantities, selectors, CEL that doesn't compile,
names that are too long. Kinds of add-ons are held against their CRDs where those are to be had.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer
from tests.lifecycle.kubernetes.addons.api import LocalKubectl

from gcluster.inventory.compile.kubernetes_objects.devices.fabric import network_objects
from gcluster.lifecycle.kubernetes.addons.ownership import establish

from .compiled import NAMES, Object, objects_of
from .crds import MODULES, crds
from .test_cloud_fabrics import facts_from
from .test_network_operator import AKS
from .test_rules import ESCAPES
from .test_templates import pods_of, templates_of
from .test_valid import THIRD_PARTY

pytestmark = pytest.mark.kubernetes_api


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    """Give a running API server, with nothing in it."""
    with ApiServer() as server:
        yield server


def _group(made: Object) -> str:
    """Return an object's API group; "" of the core."""
    group, slash, _ = made["apiVersion"].partition("/")
    return str(group) if slash else ""


def _built_in(made: Object) -> bool:
    """Say whether the bundle's release has an object's kind."""
    return _group(made) not in THIRD_PARTY and not made["kind"].startswith("MutatingAdmission")


def _taken(api: Any, objects: list[Object]) -> None:
    answer = api.apply(objects, dry=True)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == len(objects)


@pytest.mark.parametrize("case", NAMES)
def test_every_built_in_object_is_taken_strictly(api: Any, case: str) -> None:
    built_in = [made for _, made in objects_of(case) if _built_in(made)]
    spaces = [made for made in built_in if made["kind"] == "Namespace"]
    answer = api.apply(spaces)
    assert answer.returncode == 0, answer.stderr
    _taken(api, [made for made in built_in if made["kind"] != "Namespace"])


@pytest.mark.parametrize("group", sorted(MODULES))
def test_objects_of_add_ons_fit_the_crds_that_are_to_be_had(
    api: Any, tmp_path: Path, group: str
) -> None:
    definitions = crds(group)
    establish(LocalKubectl(api, tmp_path), definitions, group)
    for case in NAMES:
        compiled = [*objects_of(case), *templates_of(case)]
        objects = [made for _, made in compiled if _group(made) == group]
        for space in sorted({made["metadata"].get("namespace", "default") for made in objects}):
            api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}])
        if objects:
            _taken(api, objects)


MEMBER = ("--as=ada", "--as-group=system:authenticated")
"""A member of account nlp, as the API server sees one; the administrator impersonates them."""
SPACE = "--namespace=nlp"
FORBIDDEN = (
    ("get", "secrets", "--namespace=kube-system"),
    ("get", "secrets", "--namespace=vision"),
    ("get", "nodes"),
    ("get", "--raw", "/api/v1/nodes/head/proxy/pods"),
    ("get", "csr"),
    ("cordon", "head"),
    ("label", "namespace", "nlp", "pod-security.kubernetes.io/enforce=privileged", "--overwrite"),
    ("create", "clusterrolebinding", "me", "--clusterrole=cluster-admin", "--user=ada"),
    ("create", "rolebinding", "me", "--clusterrole=admin", "--user=ada", SPACE),
    ("create", "role", "me", "--verb=*", "--resource=pods", SPACE),
    ("create", "serviceaccount", "me", SPACE),
    ("create", "token", "default", SPACE),
    ("create", "token", "default", "--namespace=kube-system"),
    ("create", "deployment", "me", "--image=x", SPACE),
    ("run", "me", "--image=x", SPACE),
    ("delete", "resourcequota", "--all", SPACE),
    ("delete", "networkpolicy", "--all", SPACE),
    ("delete", "validatingadmissionpolicy", "gcluster-confined-pods"),
    ("get", "pods", "--namespace=kube-system", "--as=system:admin"),
)
"""What would make a member more than that; each is refused."""


def _job(pod: dict[str, Any]) -> Object:
    containers = [{"name": "x", "image": "x", **one} for one in pod.get("containers", [{}])]
    named = {
        key: [{"name": "first", "image": "x", **one} for one in value]
        for key, value in pod.items()
        if key == "initContainers"
    }
    volumes = [{"name": "x", **one} for one in pod.get("volumes", [])]
    spec = {**pod, **named, "containers": containers, "restartPolicy": "Never"}
    spec |= {"priorityClassName": "low"} | ({"volumes": volumes} if volumes else {})
    labels = {"kueue.x-k8s.io/queue-name": "all"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "job-", "namespace": "nlp", "labels": labels},
        "spec": {"activeDeadlineSeconds": 60, "template": {"spec": spec}},
    }


def test_a_member_of_an_account_keeps_its_identity(api: Any) -> None:
    objects = [made for name, made in objects_of("campus") if name.startswith(("namesp", "accou"))]
    built_in = [made for made in objects if _built_in(made)]
    answer = api.apply([made for made in built_in if made["kind"] == "Namespace"])
    answer = api.apply([made for made in built_in if made["kind"] != "Namespace"])
    assert answer.returncode == 0, answer.stderr

    def as_member(*arguments: str, made: Object | None = None) -> Any:
        stdin = None if made is None else json.dumps(made)
        return api.kubectl(*MEMBER, *arguments, stdin=stdin, check=False)

    until_it_holds = _job({"hostPID": True})
    for _ in range(60):  # policies are read by a watch
        if as_member("create", "--filename=-", "--dry-run=server", made=until_it_holds).returncode:
            break
        time.sleep(1)
    allowed = as_member("create", "--filename=-", made=_job({}))
    assert allowed.returncode == 0, allowed.stderr
    for arguments in FORBIDDEN:
        done = as_member(*arguments)
        assert done.returncode != 0, (arguments, done.stdout)
        assert "forbidden" in done.stderr.lower(), (arguments, done.stderr)
    for what, pod in ESCAPES.items():
        done = as_member("create", "--filename=-", made=_job(pod))
        assert done.returncode != 0, what
        assert "gcluster-confined-jobs" in done.stderr, (what, done.stderr)
    for _, made in templates_of("campus"):  # Pod Security itself takes their pods
        for number, template in enumerate(pods_of(made)):
            whole = {"name": f"taken-{number}", "namespace": made["metadata"]["namespace"]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": whole, "spec": template["spec"]}
            answer = api.apply([pod], dry=True)
            assert answer.returncode == 0, answer.stderr
    part = _job({})
    owner = {"kind": "JobSet", "name": "x", "uid": "1", "apiVersion": "jobset.x-k8s.io/v1alpha2"}
    part["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    assert "gcluster-queues" in as_member("create", "--filename=-", made=part).stderr
    too_many = _job({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]})
    too_many["spec"]["parallelism"] = 5
    assert "gcluster-whole-jobs" in as_member("create", "--filename=-", made=too_many).stderr
    operator = "--as=system:serviceaccount:jobset-system:jobset-controller-manager"
    parts = ("--as-group=system:serviceaccounts:jobset-system", "--as-group=system:masters")
    del part["metadata"]["labels"]
    made = api.kubectl(operator, *parts, "create", "--filename=-", stdin=json.dumps(part))
    assert "created" in made.stdout
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mine", "namespace": "nlp"},
        "spec": {"ports": [{"port": 6443}], "externalIPs": ["10.22.0.10"]},
    }
    assert "gcluster-addresses" in as_member("create", "--filename=-", made=service).stderr


def test_a_service_of_an_administrator_does_not_wait_for_a_load_balancer_for_ever(
    api: Any,
) -> None:
    [policy, binding] = [
        made
        for _, made in objects_of("campus")
        if made["metadata"]["name"] == "gcluster-load-balancers"
    ]
    assert api.apply([policy, binding]).returncode == 0
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "balanced", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
    }
    for _ in range(60):  # policies are read by a watch
        answer = api.apply([service], dry=True)
        if answer.returncode:
            break
        time.sleep(1)
    assert "nothing here makes load balancers" in answer.stderr
    service["spec"] |= {"loadBalancerClass": "metallb.io/metallb"}  # type: ignore[operator]
    assert api.apply([service], dry=True).returncode == 0


def test_what_only_a_server_finds_is_found(api: Any) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "eight"}},
    }
    answer = api.apply([quota], dry=True)
    assert answer.returncode != 0
    assert "quantities must match" in answer.stderr


def test_what_lifts_the_limit_of_locked_memory_under_aks_is_taken(api: Any) -> None:
    (daemons,) = [one for one in network_objects(facts_from(AKS)) if one["kind"] == "DaemonSet"]
    namespace = {"name": daemons["metadata"]["namespace"]}
    api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": namespace}])
    _taken(api, [daemons])


def test_the_size_of_etcds_file_is_on_the_servers_page_as_the_alert_reads_it(api: Any) -> None:
    page = api.kubectl("get", "--raw", "/metrics").stdout
    (size,) = re.findall(
        r'^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} (\S+)$', page, re.MULTILINE
    )
    assert 0 < float(size) < 2**30
