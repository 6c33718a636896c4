"""kubectl runs on the first control plane that answers, with a manifest on its stdin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, LocalShell

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl
from gcluster.lifecycle.kubernetes.managed.login import kubectl_of
from gcluster.lifecycle.nodes.ssh import Answer, Unreachable

SECOND = msgspec.structs.replace(HEAD, name="head002")
NODE = msgspec.structs.replace(HEAD, name="gpu001", role="compute", pool="gpu")
REFUSED = "The connection to the server head:6443 was refused - did you specify the right host?"


class FirstIsOff(LocalShell):
    """The double of an SSH session to two control planes, of which the first is off."""

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Run the command here for all but the first."""
        if host.name == "head":
            return Unreachable(reason="no route to host")
        return super().run(host, command, stdin=stdin, timeout_s=timeout_s)


def api(tmp_path: Path, script: str, control_planes: Sequence[Host] = (HEAD,)) -> Kubectl:
    """Return the API of control planes whose kubectl is a shell script."""
    session = (
        FirstIsOff(tmp_path / "bin") if len(control_planes) > 1 else LocalShell(tmp_path / "bin")
    )
    session.has("sudo", 'shift; exec "$@"')
    session.has("kubectl", script)
    return Kubectl(session, control_planes)


def test_arguments_arrive_as_given_and_the_manifest_on_stdin(tmp_path: Path) -> None:
    kubectl = api(tmp_path, 'printf "[%s]" "$@"; cat')
    answer = kubectl.text("apply", "--filename=-", "a b; rm", stdin="kind: Job\n")
    assert answer == (
        "[--kubeconfig=/etc/kubernetes/admin.conf][apply][--filename=-][a b; rm]kind: Job\n"
    )


def test_an_answer_in_json_is_decoded(tmp_path: Path) -> None:
    kubectl = api(tmp_path, '[ "$*" = "$1 get nodes --output=json" ] && echo \'{"items": []}\'')
    assert kubectl.get("nodes") == {"items": []}


def test_what_the_server_refuses_is_reported_with_its_message(tmp_path: Path) -> None:
    kubectl = api(tmp_path, "echo 'Error from server (Forbidden): exceeded quota' >&2; exit 1")
    with pytest.raises(ApiRefused, match="exceeded quota"):
        kubectl.text("apply", "--filename=-")


def test_a_server_that_is_not_there_is_reported_apart_from_one_that_refuses(tmp_path: Path) -> None:
    kubectl = api(tmp_path, f"echo '{REFUSED}' >&2; exit 1")
    with pytest.raises(ApiSilent, match="head: The connection to the server"):
        kubectl.run("get", "nodes")


def test_the_next_control_plane_is_queried_where_one_is_off(tmp_path: Path) -> None:
    kubectl = api(tmp_path, "echo there", (HEAD, SECOND))
    assert kubectl.text("version") == "there\n"


def test_a_cluster_is_queried_on_its_control_planes_alone(tmp_path: Path) -> None:
    session = LocalShell(tmp_path / "bin")
    nodes_only = ClusterInventory(cluster="trial", hosts=(NODE,))
    with pytest.raises(ApiSilent, match="no control plane"):
        kubectl_of(session, nodes_only).run("version")
