"""helm is found on PATH and new enough, or that is reported; its error is shown when it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shell_double import write_double

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.addons.helm import Helm, find_helm


def program(folder: Path, script: str) -> Path:
    path = folder / "helm"
    write_double(path, script)
    return path


def refusal() -> tuple[str, str]:
    with pytest.raises(LifecycleError) as error:
        find_helm()
    (message,) = error.value.diagnostics
    return message.code, message.summary


@pytest.mark.parametrize("version", ["v3.18.0", "v3.20.1", "v4.1.4"])
def test_a_helm_that_is_new_enough_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    path = program(tmp_path, f"echo {version}")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_helm() == Helm(path=str(path), version=version)


@pytest.mark.parametrize("version", ["v3.17.4", "v2.17.0", "", "helm: no such option"])
def test_one_that_is_too_old_or_prints_no_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    program(tmp_path, f"echo '{version}'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    code, summary = refusal()
    assert code == "GC1061"
    assert "3.18 is the oldest" in summary


def test_without_one_that_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert refusal() == ("GC1061", "add-ons are Helm charts, and there is no helm on PATH")


def test_its_own_words_are_reported_where_it_refuses(tmp_path: Path) -> None:
    path = program(tmp_path, "cat >/dev/null; echo 'Error: colour is no number' >&2; exit 1")
    helm = Helm(path=str(path), version="v4.1.4")
    with pytest.raises(LifecycleError) as error:
        helm.template(b"", "widgets", namespace="ns", values={}, release="1.35")
    (message,) = error.value.diagnostics
    assert message.code == "GC1062"
    assert message.summary.endswith("Error: colour is no number")


def test_neither_its_plugins_nor_a_kubeconfig_of_this_machine_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere/.kube/config")
    monkeypatch.setenv("HELM_PLUGINS", "/somewhere/plugins")
    path = program(tmp_path, 'cat >/dev/null; echo "$KUBECONFIG $HELM_PLUGINS $*"')
    helm = Helm(path=str(path), version="v4.1.4")
    answer = helm.template(b"", "widgets", namespace="ns", values={}, release="1.35").decode()
    assert "/somewhere" not in answer
    assert "--kube-version=1.35" in answer
