"""kubectl of this machine: what keeps it from answering is said in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shell_double import write_double

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.kubectl import ApiRefused, ApiSilent
from gcluster.lifecycle.kubernetes.managed.login import local_kubectl, write_kubeconfig
from gcluster.lifecycle.kubernetes.managed.release import cloud_objects, give_back
from gcluster.lifecycle.nodes.ssh import SshResult, Unreachable
from gcluster.stacks.provider import ControlPlaneAt

PLANE = ControlPlaneAt(name="demo", endpoint="https://192.0.2.7", authority="Q0E=")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a cluster's folder with its kubeconfig, and a PATH with a double of kubectl alone."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    write_kubeconfig(tmp_path, "eks", PLANE)
    return tmp_path


def write_kubectl(folder: Path, script: str) -> None:
    """Write the double of kubectl."""
    program = folder / "bin/kubectl"
    write_double(program, script)


def test_without_a_control_plane_nothing_is_queried(tmp_path: Path) -> None:
    with pytest.raises(ApiSilent, match="the stack has no control plane yet"):
        local_kubectl(tmp_path).text("get", "nodes")


def test_without_kubectl_it_reports_it(folder: Path) -> None:
    with pytest.raises(ApiSilent, match="this machine: kubectl is not on the PATH"):
        local_kubectl(folder).text("get", "nodes")


def test_a_login_that_fails_is_silence_with_its_words(folder: Path) -> None:
    answer = "Unable to connect to the server: getting credentials: exec: executable aws not found"
    write_kubectl(folder, f"echo '{answer}' >&2; exit 1")
    with pytest.raises(ApiSilent, match="executable aws not found"):
        local_kubectl(folder).text("get", "nodes")


def test_a_no_of_the_api_is_no_silence(folder: Path) -> None:
    write_kubectl(folder, "echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1")
    with pytest.raises(ApiRefused, match="Forbidden"):
        local_kubectl(folder).text("get", "nodes")


def test_arguments_and_input_arrive_and_lines_are_passed_on(folder: Path) -> None:
    write_kubectl(folder, 'echo "$@"; while read -r line; do echo "$line"; done')
    reported = local_kubectl(folder).text("apply", "--filename=-", stdin="an object\n")
    assert reported == f"--kubeconfig={folder}/kubeconfig apply --filename=-\nan object\n"
    lines: list[str] = []
    answer = local_kubectl(folder).stream("logs", "a b", take=lines.append, timeout_s=20)
    assert lines == [f"--kubeconfig={folder}/kubeconfig logs a b\n"]
    assert answer == SshResult(returncode=0, stdout="", stderr="")


def test_a_log_without_an_end_is_given_up(folder: Path) -> None:
    write_kubectl(folder, "exec /bin/sleep 60")
    answer = local_kubectl(folder).stream("logs", take=lambda _: None, timeout_s=0.2)
    assert isinstance(answer, Unreachable)


def test_down_goes_no_further_where_the_api_is_silent(folder: Path) -> None:
    write_kubectl(folder, "echo 'Unable to connect to the server: i/o timeout' >&2; exit 1")
    for act in (cloud_objects, lambda kubectl: give_back(kubectl, silent)):
        with pytest.raises(LifecycleError) as refused:
            act(local_kubectl(folder))
        [message] = refused.value.diagnostics
        assert message.code == "GC1044"
        assert "--skip-kubernetes" in message.hint


def test_what_a_cloud_keeps_for_objects_is_shown_before_the_prompt(folder: Path) -> None:
    (folder / "objects").write_text(OBJECTS)
    write_kubectl(folder, f'while read -r line; do echo "$line"; done <{folder}/objects')
    shown = cloud_objects(local_kubectl(folder)).leftovers()
    assert [(one.kind, one.name, one.kept_data) for one in shown] == [
        ("load-balancer", "physics/door", False),
        ("load-balancer", "physics/web", False),
        ("volume-claim", "physics/work", False),
        ("volume", "pvc-2", True),
    ]


OBJECTS = """\
{"items": [
{"kind": "Service", "metadata": {"name": "door", "namespace": "physics"},
 "spec": {"type": "LoadBalancer"}},
{"kind": "Service", "metadata": {"name": "inner", "namespace": "physics"}, "spec": {}},
{"kind": "Ingress", "metadata": {"name": "web", "namespace": "physics"}, "spec": {}},
{"kind": "PersistentVolumeClaim", "metadata": {"name": "work", "namespace": "physics"}, "spec": {}},
{"kind": "PersistentVolume", "metadata": {"name": "scratch"},
 "spec": {"persistentVolumeReclaimPolicy": "Retain"}},
{"kind": "PersistentVolume", "spec": {"persistentVolumeReclaimPolicy": "Retain"},
 "metadata": {"name": "pvc-2", "annotations": {"pv.kubernetes.io/provisioned-by": "ebs"}}}
]}
"""
