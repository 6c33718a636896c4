"""A kubelet's certificate is approved for its own name and addresses, and for nothing else."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .kubernetes_node import Node

NODES = {"gpu001": "10.0.0.5", "gpu002": "10.0.0.6"}
USAGES = ("digital signature", "server auth")


def request(
    folder: Path,
    *,
    user: str = "system:node:gpu001",
    subject: str = "/O=system:nodes/CN=system:node:gpu001",
    names: str = "DNS:gpu001,IP:10.0.0.5",
    **more: Any,
) -> dict[str, Any]:
    """Return a request as the API has it; openssl makes it."""
    key, made = folder / "key.pem", folder / "made.csr"
    subprocess.run(
        ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True
    )
    words = ["openssl", "req", "-new", "-key", key, "-subj", subject, "-out", made]
    subprocess.run([*words, *(["-addext", f"subjectAltName={names}"] if names else [])], check=True)
    spec = {
        "signerName": "kubernetes.io/kubelet-serving",
        "username": user,
        "groups": ["system:nodes", "system:authenticated"],
        "usages": list(USAGES),
        "request": base64.b64encode(made.read_bytes()).decode(),
    }
    return {"metadata": {"name": "csr-1"}, "spec": spec | more}


@pytest.fixture
def approved(tmp_path: Path) -> Any:
    """Return a function: what the program sends to the API for a request."""
    node = Node(tmp_path)
    node.double("kubectl", f'for last; do :; done; case "$*" in *get*csr*) cat {tmp_path}/csr ;;'
                f" *get*nodes*) cat {tmp_path}/nodes ;; esac")  # fmt: skip

    def run_program(one: dict[str, Any]) -> list[str]:
        (tmp_path / "csr").write_text(json.dumps({"items": [one]}))
        nodes = [
            {"metadata": {"name": name}, "status": {"addresses": [{"address": address}]}}
            for name, address in NODES.items()
        ]
        (tmp_path / "nodes").write_text(json.dumps({"items": nodes}))
        code, _, errors = node.run("kubernetes-approve.py", "--once")
        assert code == 0, errors
        calls = [call.partition("6443 ")[2] for call in node.calls()]
        return [call for call in calls if call.startswith("certificate")]

    return run_program


def test_a_node_may_serve_under_its_name_and_address(approved: Any, tmp_path: Path) -> None:
    assert approved(request(tmp_path)) == ["certificate approve csr-1"]


@pytest.mark.parametrize(
    "other",
    [
        {"names": "DNS:gpu001,IP:10.0.0.6"},
        {"names": "DNS:gpu001,IP:10.0.0.1"},
        {"names": "DNS:gpu002"},
        {"names": ""},
        {"user": "system:node:gpu002"},
        {"user": "ada"},
        {"user": "system:node:gpu009", "subject": "/O=system:nodes/CN=system:node:gpu009"},
        {"subject": "/O=system:masters/CN=system:node:gpu001"},
        {"subject": "/O=system:nodes/O=system:masters/CN=system:node:gpu001"},
        {"groups": ["system:authenticated"]},
        {"usages": ["client auth", "digital signature"]},
        {"signerName": "kubernetes.io/kube-apiserver-client-kubelet"},
    ],
    ids=lambda other: ", ".join(f"{key} {value}" for key, value in other.items()),
)
def test_nothing_else_is_approved(approved: Any, tmp_path: Path, other: dict[str, Any]) -> None:
    assert approved(request(tmp_path, **other)) == []


def test_what_was_decided_is_left(approved: Any, tmp_path: Path) -> None:
    denied = request(tmp_path) | {"status": {"conditions": [{"type": "Denied"}]}}
    assert approved(denied) == []
