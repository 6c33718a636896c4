"""On a node of Kubernetes the check renews a condition, cordons no node, and lifts our cordons."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import recorded

Check = Callable[..., tuple[int, str]]
UNFIT = "GclusterUnfit"
KUBECTL = """\
import json, sys
from pathlib import Path

root = Path({root!r})
words, node = sys.argv[2:], json.loads((root / "node.json").read_text())
assert sys.argv[1] == "--kubeconfig=/etc/kubernetes/kubelet.conf"
if (root / "silent").exists():
    sys.exit("The connection to the server head:6443 was refused")
if words[0] == "replace":
    assert words[1:] == ["--raw=/api/v1/nodes/gpu001/status", "--filename=-"]
    if (root / "conflicts").exists():
        (root / "conflicts").unlink()
        sys.exit("Error: the object has been modified; please apply your changes")
    node["status"] = json.load(sys.stdin)["status"]
elif words[0] == "patch":
    change = json.loads(words[-1].removeprefix("--patch="))
    for part in ("metadata", "spec"):
        for name, value in change[part].items():
            if isinstance(value, dict):
                kept = node[part].setdefault(name, {{}}) | value
                node[part][name] = {{k: v for k, v in kept.items() if v is not None}}
            elif value is None:
                node[part].pop(name, None)
            else:
                node[part][name] = value
(root / "node.json").write_text(json.dumps(node))
print(json.dumps(node))
"""
"""The double of kubectl: one node, changed as the API server would change it."""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Give a node that has joined, whose kubelet says that it is ready."""
    recorded.make_machine(tmp_path)
    script = KUBECTL.format(root=str(tmp_path))
    (tmp_path / "kubectl.py").write_text(script)
    (tmp_path / "bin/kubectl").write_text(
        f'#!/bin/sh\nexec {sys.executable} {tmp_path}/kubectl.py "$@" 2>&1\n'
    )
    (tmp_path / "bin/kubectl").chmod(0o755)
    joined = tmp_path / "root/etc/kubernetes/kubelet.conf"
    joined.parent.mkdir(parents=True, exist_ok=True)
    joined.touch()
    ready = {"type": "Ready", "status": "True"}
    answer = {"metadata": {"name": "gpu001"}, "spec": {}, "status": {"conditions": [ready]}}
    (tmp_path / "node.json").write_text(json.dumps(answer))
    return tmp_path


def seen(node: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((node / "node.json").read_text())
    return found


def condition(node: Path) -> dict[str, Any]:
    (found,) = [c for c in seen(node)["status"]["conditions"] if c["type"] == UNFIT]
    return dict(found)


def test_a_fit_node_reports_it_and_takes_pods(node: Path, check: Check) -> None:
    assert check() == (0, "fit")
    answer = condition(node)
    assert (answer["status"], answer["reason"]) == ("False", "HealthCheckPassed")
    assert seen(node)["spec"] == {}
    assert len(seen(node)["status"]["conditions"]) == 2  # the kubelet's own stays


def cordon(node: Path, reason: str) -> None:
    held = seen(node)
    held["spec"]["unschedulable"] = True
    held["metadata"]["annotations"] = {"gcluster.local/drain-reason": reason}
    (node / "node.json").write_text(json.dumps(held))


def test_an_unfit_node_reports_what_is_wrong_and_leaves_the_cordon_to_the_controller(
    node: Path, check: Check
) -> None:
    code, line = check("gpu-lost")
    assert (code, line.endswith("[reported to the control planes]")) == (0, True)
    assert condition(node)["status"] == "True"
    assert condition(node)["message"] in line
    assert seen(node)["spec"] == {}
    cordon(node, "gcluster-health: gpu-count: 7 of 8 GPUs")
    assert check("gpu-lost")[1].endswith("[is cordoned]")


def test_since_when_it_is_unfit_stays_while_it_is(node: Path, check: Check) -> None:
    check("gpu-lost")
    then = "2026-11-20T08:00:00Z"
    held = seen(node)
    held["status"]["conditions"][-1] |= {"lastTransitionTime": then, "lastHeartbeatTime": then}
    (node / "node.json").write_text(json.dumps(held))
    check("gpu-lost")
    assert condition(node)["lastTransitionTime"] == then
    assert condition(node)["lastHeartbeatTime"] != then
    check()
    assert condition(node)["lastTransitionTime"] != then


def test_a_cordon_of_another_owner_keeps_its_reason(node: Path, check: Check) -> None:
    cordon(node, "new cables")
    assert check("gpu-lost")[1].endswith("[was cordoned already: new cables]")
    assert check(resume=True) == (0, "fit")
    assert seen(node)["spec"]["unschedulable"]


@pytest.mark.parametrize("resume", [True, False])
def test_a_cordon_of_ours_is_lifted_only_where_the_role_allows_it(
    node: Path, check: Check, resume: bool
) -> None:
    cordon(node, "gcluster-health: gpu-count: 7 of 8 GPUs")
    code, line = check(resume=resume)
    assert (code, line.startswith("fit [cordon lifted: ")) == (0, resume)
    assert seen(node)["spec"].get("unschedulable", False) is not resume


def test_who_comes_second_to_the_kubelet_reads_the_status_again(node: Path, check: Check) -> None:
    (node / "conflicts").touch()
    assert check() == (0, "fit")
    assert condition(node)["status"] == "False"


def test_an_api_server_that_can_not_be_updated_is_a_failure(node: Path, check: Check) -> None:
    (node / "silent").touch()
    code, line = check("gpu-lost")
    assert code == 1
    assert "not reported to Kubernetes" in line
