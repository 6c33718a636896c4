"""Hosts that exist already: containers reached over SSH by address, key and pinned host key alone.

The bare-metal provider makes nothing, so the test makes the machines: containers of the nodes' base
image, without anything that the roles install.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .conftest import LiveCluster
from .room import Room, podman

pytestmark = pytest.mark.local

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites:
  room:
    provider: bare-metal
    ssh: {{user: root, key: {key}}}
pools:
  head:
    site: room
    role: controller
    hosts: [{{name: head01, address: {head}, host_key: "{head_key}"}}]
  gpu:
    site: room
    machine: sim.h100x8
    quorum: 1
    hosts:
      - {{name: gpu01, address: {gpu}, host_key: "{gpu_key}"}}
      - {{name: gpu02, address: {nobody}}}
scheduler: {{type: slurm}}
users:
  - {{name: ada, uid: 2001}}
  - {{name: grace, uid: 2002, gid: 2001}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 1}}}}
"""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Machines that exist before gcluster is asked, and after."""
    made = Room(tmp_path_factory.mktemp("room"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def campus(live: LiveCluster, room: Room) -> LiveCluster:
    """The cluster of the room's machines."""
    live.spec.write_text(
        SPEC.format(
            name=live.name,
            key=room.key,
            head=room.head,
            head_key=room.host_key("head01"),
            gpu=room.gpu,
            gpu_key=room.host_key("gpu01"),
            nobody=room.nobody,
        )
    )
    return live


def test_up_names_the_host_that_is_not_there_and_goes_on_with_the_rest(campus: LiveCluster) -> None:
    result = campus.json("up", str(campus.spec), "--yes")
    assert set(result["failed_hosts"]) == {"gpu02"}
    assert result["verdict"]["verdict"] == "pass"
    said = next(d for d in result["diagnostics"] if "gpu02" in d["summary"])
    assert f"gcluster up {campus.spec}" in said["hint"]


def test_people_who_share_a_group_are_the_same_on_every_node(campus: LiveCluster) -> None:
    seen = {campus.on(node, "id ada; id grace") for node in ("head01", "gpu01")}
    ada, grace = "uid=2001(ada)", "uid=2002(grace)"
    same = "gid=2001(ada) groups=2001(ada)"
    assert seen == {f"{ada} {same}\n{grace} {same}\n"}


def test_a_host_whose_key_changed_is_refused_and_named(campus: LiveCluster, room: Room) -> None:
    another = "rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh; pkill sshd-session"
    podman("exec", f"{room.name}-gpu01", "sh", "-c", another)
    campus.gcluster("ssh", str(campus.spec), "gpu01", "--", "true", expect=255)
    status = campus.json("status", str(campus.spec), expect=1)
    gpu01 = next(node for node in status["nodes"] if node["name"] == "gpu01")
    assert "host key" in gpu01["reason"]


def test_down_leaves_the_machines_as_they_are(campus: LiveCluster, room: Room) -> None:
    campus.gcluster("down", str(campus.spec), "--yes")
    assert podman("inspect", "--format", "{{.State.Status}}", f"{room.name}-head01") == "running"
