"""Hosts of a list, as a GPU cloud hands it out: reached, set up, tested, and left where they are.

One is pinned by the list, the other by a known_hosts file; only the list says where they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import LiveCluster
from .room import Room, podman

pytestmark = pytest.mark.local

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites:
  rented:
    provider: ssh-fleet
    ssh: {{user: root, key: {key}, known_hosts: {known_hosts}}}
    hosts_file: hosts.json
    usd_per_hour: {{sim.h100x8: 20}}
pools:
  head: {{site: rented, role: controller, hosts: head01}}
  gpu: {{site: rented, machine: sim.h100x8, hosts: gpu01}}
scheduler: {{type: slurm}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 1}}}}
"""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Two rented machines."""
    made = Room(tmp_path_factory.mktemp("room"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def fleet(live: LiveCluster, room: Room) -> LiveCluster:
    """The cluster of these machines, with their list in a file as an API gives it."""
    folder = live.spec.parent
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(f"{room.gpu} {room.host_key('gpu01')}\n")
    listed = [
        {"ip": room.gpu, "status": "active"},
        {"name": "head01", "ip": room.head, "host_key": room.host_key("head01")},
    ]
    (folder / "hosts.json").write_text(json.dumps({"data": listed}))
    live.spec.write_text(SPEC.format(name=live.name, key=room.key, known_hosts=known_hosts))
    return live


def test_up_brings_the_hosts_of_the_list_to_a_passed_allreduce(fleet: LiveCluster) -> None:
    result = fleet.json("up", str(fleet.spec), "--yes")
    assert result["failed_hosts"] == {}
    assert result["verdict"]["verdict"] == "pass"


def test_a_second_up_does_nothing(fleet: LiveCluster) -> None:
    plan = fleet.json("plan", str(fleet.spec))
    effects = {change["effect"] for site in plan["sites"] for change in site["changes"]}
    assert (effects, plan["steps"], plan["unreachable"]) == ({"keep"}, [], [])


def test_down_needs_no_list_and_leaves_the_machines_where_they_are(
    fleet: LiveCluster, room: Room
) -> None:
    Path(fleet.spec.parent / "hosts.json").unlink()
    fleet.gcluster("down", str(fleet.spec), "--yes")
    assert podman("exec", f"{room.name}-gpu01", "hostname") == "gpu01"
