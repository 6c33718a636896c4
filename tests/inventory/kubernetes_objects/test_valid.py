"""Every object of a built-in kind fits the API's own schema, strictly; every file says whose it is.

The schemas are those of kubernetes-validate: they find unknown and missing fields and wrong types,
not wrong words of an enumeration or quantities. Kinds of add-ons have no schema there.
"""

from __future__ import annotations

import pytest
import yaml

from gcluster.inventory.compile.kubernetes_objects.objects import CLUSTER_LABEL, MANAGED_BY
from gcluster.schemas.derived.control_planes import MUTATING_POLICY_SINCE

from .compiled import (
    EXPECTED,
    NAMES,
    Object,
    facts_of,
    files_of,
    objects_of,
    of_kind,
    reviewed,
    spec_of,
)
from .strict import mistakes, newest_release

CASES = [pytest.param(name, id=name) for name in NAMES]
THIRD_PARTY = {
    "amd.com", "argoproj.io", "helm.toolkit.fluxcd.io", "jobset.x-k8s.io", "kubeflow.org",
    "kueue.x-k8s.io", "mellanox.com", "monitoring.coreos.com", "networking.gke.io",
    "nv-ipam.nvidia.com", "resource.nvidia.com", "source.toolkit.fluxcd.io",
}  # fmt: skip
"""API groups that add-ons bring."""


def _group(made: Object) -> str:
    group, slash, _ = made["apiVersion"].partition("/")
    return str(group) if slash else ""


def _built_in(case: str) -> list[tuple[str, Object]]:
    return [(f, made) for f, made in objects_of(case) if _group(made) not in THIRD_PARTY]


@pytest.mark.parametrize("case", CASES)
def test_every_built_in_object_fits_the_schema_of_its_release(case: str) -> None:
    release = facts_of(spec_of(case)).release
    found = {f"{file} {made['kind']}": mistakes(made, release) for file, made in _built_in(case)}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("case", CASES)
def test_every_built_in_object_fits_the_schema_of_the_newest_release(case: str) -> None:
    found = {f"{f} {made['kind']}": mistakes(made, newest_release()) for f, made in _built_in(case)}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_validation_finds_a_field_that_is_not_there_and_one_that_is_missing() -> None:
    (job,) = of_kind("local", "Job")
    assert mistakes(job | {"spce": {}}, "1.35")
    assert mistakes(job | {"spec": {}}, "1.35")
    assert not mistakes(job, "1.35")


def test_policies_that_fill_in_defaults_come_only_with_the_release_that_has_them() -> None:
    kinds = {
        case: {made["kind"] for _, made in objects_of(case)} & {"MutatingAdmissionPolicy"}
        for case in NAMES
    }
    with_them = {case for case, found in kinds.items() if found}
    newer = {case for case in NAMES if facts_of(spec_of(case)).release >= MUTATING_POLICY_SINCE}
    assert with_them == newer
    assert with_them < set(NAMES)


@pytest.mark.parametrize("case", CASES)
def test_every_object_reports_which_cluster_owns_it(case: str) -> None:
    for file, made in objects_of(case):
        labels = made["metadata"]["labels"]
        found = (labels[CLUSTER_LABEL], labels[MANAGED_BY])
        assert found == (spec_of(case).name, "gcluster"), file


@pytest.mark.parametrize("case", CASES)
def test_no_two_objects_have_one_name(case: str) -> None:
    applied = [made for file, made in objects_of(case) if not file.startswith("smoke/")]
    keys = [
        (one["apiVersion"], one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in applied
    ]
    assert sorted(map(str, keys)) == sorted(map(str, set(keys)))


@pytest.mark.parametrize("case", CASES)
def test_every_namespace_that_objects_are_in_is_made_too(case: str) -> None:
    made = {one["metadata"]["name"] for _, one in objects_of(case) if one["kind"] == "Namespace"}
    used = {one["metadata"].get("namespace") for _, one in objects_of(case)} - {None}
    assert used - made <= {"flux-system", "argocd"}


@pytest.mark.parametrize("case", CASES)
def test_every_file_of_a_folder_is_named_by_its_kustomization(case: str) -> None:
    files = files_of(case)
    for name in (name for name in files if name.endswith("/kustomization.yaml")):
        folder = name.rpartition("/")[0]
        beside = {f.rpartition("/")[2] for f in files if f.rpartition("/")[0] == folder}
        listed = set(yaml.safe_load(files[name])["resources"])
        fetched = {one for one in listed if one.startswith("https://")}  # manifests of add-ons
        assert not fetched or folder.startswith("addons/")
        assert {*(listed - fetched), "kustomization.yaml"} == beside


@pytest.mark.parametrize("case", CASES)
def test_every_folder_has_its_place_in_the_order(case: str) -> None:
    files = files_of(case)
    folders = {name.partition("/")[0] for name in files if "/" in name}
    ordered = yaml.safe_load(files["order.yaml"])
    assert {*ordered, "smoke", "templates", "flux", "argocd"} >= folders
    assert ordered[0] == "namespaces"


def test_a_tree_is_as_it_was_reviewed() -> None:
    kept = {
        str(path.relative_to(EXPECTED)): path.read_bytes()
        for path in EXPECTED.rglob("*")
        if path.is_file()
    }
    assert reviewed() == kept
