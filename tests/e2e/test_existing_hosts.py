"""Hosts that exist already: one of bare metal, one of an ssh-fleet's list, reached over SSH alone.

Neither provider makes anything, so the test makes the machines: containers of the nodes' base
image, without anything that the roles install. The head is pinned by the spec, the listed host by a
known_hosts file; only the list says where it is. A second listed host is not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from .conftest import LiveCluster
from .room import Room, podman, started_room

pytestmark = pytest.mark.local

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites:
  room:
    provider: bare-metal
    ssh: {{user: root, key: {key}}}
  rented:
    provider: ssh-fleet
    ssh: {{user: root, key: {key}, known_hosts: {known_hosts}}}
    hosts_file: hosts.json
    usd_per_hour: {{sim.h100x8: 20}}
links:
  - {{between: [room, rented], via: routed}}
pools:
  head:
    site: room
    role: controller
    hosts: [{{name: head01, address: {head}, host_key: "{head_key}"}}]
  gpu: {{site: rented, machine: sim.h100x8, hosts: [gpu01, gpu02], quorum: 1}}
scheduler: {{type: slurm}}
users:
  - {{name: ada, uid: 2001}}
  - {{name: grace, uid: 2002, gid: 2001}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 1}}}}
"""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Machines that exist before gcluster runs, and after."""
    with started_room(tmp_path_factory.mktemp("room")) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(live: LiveCluster, room: Room) -> LiveCluster:
    """The cluster of these machines, with the fleet's list in a file as an API gives it."""
    folder = live.spec.parent
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(f"{room.gpu} {room.host_key('gpu01')}\n")
    listed = [
        {"ip": room.gpu, "status": "active"},
        {"name": "gpu02", "ip": room.nobody, "host_key": room.host_key("gpu01")},
    ]
    (folder / "hosts.json").write_text(json.dumps({"data": listed}))
    live.spec.write_text(
        SPEC.format(
            name=live.name,
            key=room.key,
            known_hosts=known_hosts,
            head=room.head,
            head_key=room.host_key("head01"),
        )
    )
    return live


def test_up_names_the_host_that_is_not_there_and_continues_with_the_rest(
    cluster: LiveCluster,
) -> None:
    result = cluster.json("up", str(cluster.spec), "--yes")
    assert set(result["failed_hosts"]) == {"gpu02"}
    assert result["verdict"]["verdict"] == "pass"
    named = next(d for d in result["diagnostics"] if "gpu02" in d["summary"])
    assert f"gcluster up {cluster.spec}" in named["hint"]


def test_a_second_plan_keeps_both_sites_and_has_work_for_the_missing_host_alone(
    cluster: LiveCluster,
) -> None:
    plan = cluster.json("plan", str(cluster.spec))
    effects = {change["effect"] for site in plan["sites"] for change in site["changes"]}
    assert effects == {"keep"}
    assert [why.partition(":")[0] for why in plan["unreachable"]] == ["gpu02"]
    assert {host for step in plan["steps"] for host in step["hosts"]} <= {"gpu02"}


def test_users_who_share_a_group_are_the_same_on_every_node(cluster: LiveCluster) -> None:
    seen = {cluster.on(node, "id ada; id grace") for node in ("head01", "gpu01")}
    ada, grace = "uid=2001(ada)", "uid=2002(grace)"
    same = "gid=2001(ada) groups=2001(ada)"
    assert seen == {f"{ada} {same}\n{grace} {same}\n"}


def test_a_host_whose_key_changed_is_refused_and_named(cluster: LiveCluster, room: Room) -> None:
    another = "rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh; pkill sshd-session"
    podman("exec", f"{room.name}-gpu01", "sh", "-c", another)
    cluster.gcluster("ssh", str(cluster.spec), "gpu01", "--", "true", expect=255)
    status = cluster.json("status", str(cluster.spec), expect=1)
    gpu01 = next(node for node in status["nodes"] if node["name"] == "gpu01")
    assert "host key" in gpu01["reason"]


def test_down_needs_no_list_and_leaves_the_machines_as_they_are(
    cluster: LiveCluster, room: Room
) -> None:
    (cluster.spec.parent / "hosts.json").unlink()
    cluster.gcluster("down", str(cluster.spec), "--yes")
    for host in ("head01", "gpu01"):
        assert podman("exec", f"{room.name}-{host}", "hostname") == host
