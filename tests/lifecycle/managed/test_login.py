"""How this machine gets into a cloud's control plane, and what it needs for that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcluster.lifecycle.kubernetes.managed.joining import managed_findings
from gcluster.lifecycle.kubernetes.managed.login import (
    kubeconfig,
    missing_programs,
    needs_of,
    write_kubeconfig,
)
from gcluster.schemas.derived.control_planes import Managed
from gcluster.stacks.provider import ControlPlaneAt
from gcluster.stacks.pulumi.engine.checkpoint import read_output

from .eks_spec import EKS, IMAGE, spec_of

PLANE = ControlPlaneAt(
    name="demo-here", endpoint="https://192.0.2.7", authority="Q0E=", region="us-east-1"
)
COMMANDS = {
    "eks": "aws --region us-east-1 eks get-token --cluster-name demo-here --output json",
    "gke": "gke-gcloud-auth-plugin",
    "aks": "kubelogin get-token --login azurecli --server-id 6dae42f8-4368-4678-94ff-3960e28e3630",
}


@pytest.mark.parametrize("managed", list(COMMANDS))
def test_the_user_is_a_command_and_nothing_secret(managed: Managed) -> None:
    made = kubeconfig(managed, PLANE)
    assert made["clusters"][0]["cluster"] == {
        "server": "https://192.0.2.7",
        "certificate-authority-data": "Q0E=",
    }
    [user] = made["users"]
    assert list(user["user"]) == ["exec"]
    run = user["user"]["exec"]
    assert " ".join([run["command"], *run.get("args", [])]) == COMMANDS[managed]
    assert run["interactiveMode"] == "Never"


def test_its_file_is_this_user_s_alone_and_replaces_an_older_one(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path, "eks", PLANE)
    path = write_kubeconfig(tmp_path, "gke", PLANE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["current-context"] == "demo-here"
    assert [file.name for file in tmp_path.iterdir()] == ["kubeconfig"]


@pytest.mark.parametrize(
    ("managed", "programs"),
    [
        ("eks", ("kubectl", "aws")),
        ("gke", ("kubectl", "gke-gcloud-auth-plugin")),
        ("aks", ("kubectl", "kubelogin", "az")),
    ],
)
def test_each_cloud_has_its_own_programs(managed: Managed, programs: tuple[str, ...]) -> None:
    assert missing_programs(managed, lambda _: None) == programs
    assert missing_programs(managed, lambda name: f"/usr/bin/{name}") == ()


def test_a_missing_program_is_refused_with_how_it_is_had() -> None:
    [answer] = managed_findings(spec_of(), lambda name: None if name == "aws" else name)
    assert (answer.code, answer.is_error) == ("GC1040", True)
    assert answer.summary == "eks is reached from this machine, which lacks aws"
    assert answer.hint == "aws: install the AWS CLI, version 2"


def test_own_control_planes_are_not_queried() -> None:
    own = EKS.replace("control_plane: eks, ", "").replace("role: login", "role: controller")
    assert managed_findings(spec_of(own.replace(IMAGE, "")), lambda _: None) == ()


def test_doctor_lists_what_a_spec_needs(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(EKS)
    found = needs_of(path, lambda name: name if name == "kubectl" else None)
    assert [(need.name, need.present, need.required) for need in found] == [
        ("kubectl", True, True),
        ("aws", False, True),
    ]


@pytest.mark.parametrize(
    ("answer", "endpoint"),
    [
        ({"name": "a", "endpoint": "192.0.2.7", "authority": "Q0E="}, "https://192.0.2.7"),
        ({"name": "a", "endpoint": "https://x:443", "authority": "Q0E="}, "https://x:443"),
    ],
)
def test_a_stack_shows_a_control_plane_by_name_address_and_authority(
    answer: dict[str, str], endpoint: str
) -> None:
    found = read_output({"control-plane": answer}, "eastus")
    assert found == ControlPlaneAt(name="a", endpoint=endpoint, authority="Q0E=", region="eastus")


@pytest.mark.parametrize("answer", [None, "", {}, {"name": "a", "endpoint": "", "authority": "Q"}])
def test_a_stack_that_has_not_made_it_yet_has_none(answer: object) -> None:
    assert read_output({} if answer is None else {"control-plane": answer}, "") is None
