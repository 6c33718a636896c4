"""The documents of permissions name what the code makes and calls, all of it and nothing else."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcluster.stacks.provider import ProviderError
from gcluster.stacks.pulumi.permissions import CLOUDS, document, kind_of, load_permissions, needed

_STACKS = Path(__file__).parents[2] / "stacks"
_CASES = Path(__file__).parents[1] / "cases" / "stacks"
_PROVIDERS = {"aws.Provider", "gcp.Provider", "azure_native.Provider"}
_SERVICES = {
    "efs": "elasticfilesystem",
    "service-quotas": "servicequotas",
    "resourcegroupstaggingapi": "tag",
}
"""Client of boto3 -> how actions spell the service, where they differ."""


def _sources(cloud: str) -> Iterator[ast.Module]:
    for path in sorted((_STACKS / cloud).rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def _made(cloud: str) -> set[str]:
    """Return the kinds of resources that a cloud's components make, as their code says."""
    found = set()
    for tree in _sources(cloud):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and any(word.arg == "opts" for word in node.keywords):
                words = ast.unparse(node.func).split(".")
                if len(words) > 1 and words[-2].islower() and words[-1][0].isupper():
                    found.add(".".join(words[-2:]))
    return found - _PROVIDERS


def _recorded(cloud: str) -> set[str]:
    """Return the kinds of resources in the golden recordings."""
    prefix = "azure-native" if cloud == "azure" else cloud
    types = {
        token
        for path in (_CASES / cloud).rglob("*.json")
        for token in re.findall(rf'"type": ?"({prefix}:[^"]+)"', path.read_text(encoding="utf-8"))
    }
    return {kind_of(token) for token in types}


def _aws_actions() -> set[str]:
    """Return the actions of all calls that the code makes by `Api.call`, `find` and `pages`."""
    found = set()
    for tree in _sources("aws"):
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            words = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if node.func.attr in {"call", "find", "pages"} and len(words) == 2:
                service, operation = map(str, words)
                action = "".join(word.capitalize() for word in operation.split("_"))
                found.add(f"{_SERVICES.get(service, service)}:{action}")
    return found


@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_kind_that_the_code_makes_has_its_permissions_and_no_other(cloud: str) -> None:
    made = _made(cloud) | _recorded(cloud)
    assert len(made) > 20
    assert set(load_permissions(cloud).resources) == made


def test_every_call_to_aws_is_allowed() -> None:
    requested = _aws_actions()
    assert len(requested) > 20
    # A secret that a spec refers to is its owner's: who may read it is said there, for it alone.
    granted = {*load_permissions("aws").always}
    assert requested - {"secretsmanager:GetSecretValue"} <= granted


def test_what_preflight_requests_is_granted() -> None:
    from gcluster.stacks.gcp.plan.facts import facts  # noqa: PLC0415  # data of one cloud

    assert set(facts().up_permissions) <= set(needed("gcp"))
    rights = (_STACKS / "azure" / "preflight/existing.py").read_text(encoding="utf-8")
    requested = set(re.findall(r'"(Microsoft\.[A-Za-z]+/[A-Za-z/]+/(?:write|action))"', rights))
    assert requested
    assert requested <= set(needed("azure"))


@pytest.mark.parametrize("cloud", CLOUDS)
def test_permissions_are_spelled_as_the_cloud_spells_them_and_no_wildcard_is_granted(
    cloud: str,
) -> None:
    forms = {
        "aws": r"[a-z0-9-]+:[A-Z][A-Za-z0-9]+",
        "gcp": r"[a-z]+(\.[A-Za-z]+){2}",
        "azure": r"Microsoft\.[A-Za-z]+(/[A-Za-z]+)+/(read|write|delete|action)",
    }
    wrong = [name for name in needed(cloud) if not re.fullmatch(forms[cloud], name)]
    assert wrong == []


def test_a_spec_that_makes_less_needs_less() -> None:
    whole, some = needed("aws"), needed("aws", ["ec2.Vpc"])
    assert set(some) < set(whole)
    assert "ec2:CreateVpc" in some
    assert "fsx:CreateFileSystem" not in some


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_document_is_what_the_cloud_takes(cloud: str) -> None:
    body = json.loads(document(cloud, needed(cloud)))
    key = {"aws": "Statement", "gcp": "includedPermissions", "azure": "Actions"}[cloud]
    assert body[key]


def _of_aws(state: tuple[str, str] | None = None) -> dict[str, dict[str, object]]:
    body = json.loads(document("aws", needed("aws"), state=state))
    return {each["Sid"]: each for each in body["Statement"]}


def test_roles_are_passed_to_nodes_and_control_planes_alone() -> None:
    found = _of_aws()
    (service,) = found["PassRole"]["Condition"].values()  # type: ignore[attr-defined]
    assert {"ec2.amazonaws.com", "eks.amazonaws.com"} <= set(service["iam:PassedToService"])
    granted = [sid for sid, each in found.items() if "iam:PassRole" in str(each["Action"])]
    assert granted == ["PassRole"]


@pytest.mark.parametrize(
    ("prefix", "below"), [("a/b", "arn:aws:s3:::acme/a/b/*"), ("", "arn:aws:s3:::acme/*")]
)
def test_a_state_in_s3_is_granted_there_and_nowhere_else(prefix: str, below: str) -> None:
    found = _of_aws(state=("arn:aws:s3:::acme", prefix))
    assert (found["State"]["Resource"], found["StateKeys"]["Resource"]) == (
        below, "arn:aws:s3:::acme",
    )  # fmt: skip
    assert "s3:GetObject" not in str(_of_aws())


def test_an_unknown_cloud_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ProviderError) as caught:
        load_permissions("oci")
    assert "aws, azure, gcp" in caught.value.diagnostics[0].hint
