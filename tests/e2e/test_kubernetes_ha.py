"""Three control planes share an address: one is gone, the API answers on, and its successor joins.

keepalived, haproxy and etcd are real; the address moves between containers on one bridge. The tests
run in order on a cluster of three control planes and a node.
"""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from gcluster.stacks.local.engine import find_engine
from gcluster.stacks.local.network import free_subnets, host_routes, used_networks

from .conftest import LiveCluster, until

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local, network: {{cidr: {subnet}}}}}}}
pools:
  head: {{site: here, role: controller, count: 3}}
  gpu: {{site: here, machine: sim.h100x8, count: 1}}
scheduler:
  type: kubernetes
  kueue: false
  virtual_address: {{address: {address}, by: keepalived}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 2}}}}
"""
HEADS = ("head", "head002", "head003")
FIRST, SECOND = HEADS[:2]
ADDRESS_OFFSET = 5
"""Of the shared address in the subnet: nodes have theirs from ten on."""
MEMBERS = "/usr/local/libexec/gcluster/kubernetes-etcd.sh etcdctl member list --write-out=json"


class Planes(LiveCluster):
    """Drives the command on a spec of three control planes and a node."""

    def __init__(self, folder: Path) -> None:
        """Write the spec; nothing is started."""
        super().__init__(folder)
        self.name = f"ha-{secrets.token_hex(3)}"
        subnet = _free_subnet(self.name)
        self.address = str(subnet[ADDRESS_OFFSET])
        self.spec.write_text(SPEC.format(name=self.name, subnet=subnet, address=self.address))

    def up(self) -> Any:
        """Bring it up; return the document."""
        return self.json("up", str(self.spec), "--yes")

    def kubectl(self, arguments: str, on: str = SECOND) -> str:
        """Run kubectl as root on a control plane, by the shared address."""
        return self.on(on, f"kubectl --kubeconfig=/etc/kubernetes/admin.conf {arguments}")

    def ready(self, on: str = SECOND) -> set[str]:
        """Return the nodes that are ready."""
        listed = json.loads(self.kubectl("get nodes --output=json", on))
        return {
            node["metadata"]["name"]
            for node in listed["items"]
            for c in node["status"]["conditions"]
            if (c["type"], c["status"]) == ("Ready", "True")
        }

    def container(self, node: str) -> str:
        """Return the name of a node's container."""
        return f"gcluster-{self.name}-{node}"


def _free_subnet(key: str) -> IPv4Network:
    subnets = [s for network in find_engine().networks() for s in network.subnets]
    return next(free_subnets(key, used_networks(subnets, host_routes())))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planes]:
    """A cluster that is taken down whatever happens."""
    cluster = Planes(tmp_path_factory.mktemp("planes"))
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


def test_three_control_planes_come_up_behind_one_address(live: Planes) -> None:
    live.up()
    assert live.ready() == {*HEADS, "gpu001"}
    assert live.address in live.on("gpu001", "grep server: /etc/kubernetes/kubelet.conf")
    assert len(json.loads(live.on(SECOND, MEMBERS))["members"]) == len(HEADS)


def test_a_second_up_changes_nothing(live: Planes) -> None:
    assert live.up()["changed"] is False


def test_the_api_answers_on_without_the_first_control_plane(live: Planes) -> None:
    live.kubectl("create configmap kept")
    gone = ["podman", "rm", "--force", "--volumes", "--time", "0", live.container(FIRST)]
    subprocess.run(gone, check=True, capture_output=True)

    def answers() -> bool:
        output = live.gcluster(
            "ssh", str(live.spec), SECOND, "--",
            "kubectl --kubeconfig=/etc/kubernetes/admin.conf get configmap kept --output=name",
            expect=None,
        )  # fmt: skip
        return output.stdout.strip() == "configmap/kept"

    until(answers, seconds=120)


def test_its_successor_joins_what_it_left(live: Planes) -> None:
    live.up()
    until(lambda: live.ready() == {*HEADS, "gpu001"}, seconds=120)
    members = json.loads(live.on(SECOND, MEMBERS))["members"]
    assert sorted(member["name"] for member in members) == sorted(HEADS)
    assert "configmap/kept" in live.kubectl("get configmap kept --output=name", on=FIRST)


def test_a_backup_brings_back_what_was_deleted_on_all_three(live: Planes) -> None:
    live.kubectl("create secret generic kept --from-literal=word=unmistakable")
    live.json("backup", str(live.spec))
    live.kubectl("delete secret,configmap kept")
    assert "GC969" in live.gcluster("restore", str(live.spec), expect=4).stderr
    restored = live.json("restore", str(live.spec), "--discard-queue")
    assert restored["restored"] == list(HEADS)
    for head in HEADS:
        assert "configmap/kept" in live.kubectl("get configmap kept --output=name", on=head)
    until(lambda: live.ready() == {*HEADS, "gpu001"}, seconds=120)
    assert len(json.loads(live.on(SECOND, MEMBERS))["members"]) == len(HEADS)


def test_all_control_planes_are_lost_and_come_back_with_the_backup(live: Planes) -> None:
    names = [live.container(head) for head in HEADS]
    gone = ["podman", "rm", "--force", "--volumes", "--time", "0", *names]
    subprocess.run(gone, check=True, capture_output=True)
    refused = live.gcluster("up", str(live.spec), "--yes", expect=4).stderr
    assert "gcluster restore" in refused
    live.gcluster("restore", str(live.spec))
    live.up()
    until(lambda: live.ready() == {*HEADS, "gpu001"}, seconds=120)
    word = live.kubectl("get secret kept --output=jsonpath={.data.word}", on=FIRST)
    assert base64.b64decode(word).decode() == "unmistakable"
    assert len(json.loads(live.on(FIRST, MEMBERS))["members"]) == len(HEADS)


def test_down_leaves_nothing(live: Planes) -> None:
    live.gcluster("down", str(live.spec), "--yes")
    assert not any(live.left_behind().values()), live.left_behind()
