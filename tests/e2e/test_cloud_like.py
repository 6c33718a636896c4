"""The whole line on nodes that start as machines of a cloud do, one of which stays silent.

Their image is local and so is their cloud-init's seed: no cloud is involved. A real cloud-init lets
a user in who is not root, in its own time; updates run at the first start; the SSH server is stock;
and all nodes but the controller are reached through that.
"""

from __future__ import annotations

import json

import pytest

from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.cloud_like]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local, image: cloud-like}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: 4, quorum: 2}}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [gpu], default: true, max_time: 1h}}
users:
  - {{name: ada, uid: 2001}}
smoke: {{allreduce: {{sizes: 8B..1MiB, iterations: 2}}}}
"""
SILENT, SMALL = "gpu003", "gpu004"


@pytest.fixture(scope="module")
def cloud(live: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> LiveCluster:
    """Give a cluster of which one node boots without an SSH server and one has a small disk."""
    faults = tmp_path_factory.mktemp("faults") / "faults.json"
    masked = {"ssh.service": SILENT, "ssh.socket": SILENT}
    faults.write_text(json.dumps({"mask": masked, "var_mib": {SMALL: 40}}))
    live.environment["GCLUSTER_LOCAL_FAULTS"] = str(faults)
    live.spec.write_text(SPEC.format(name=live.name))
    return live


def test_up_comes_to_a_passed_allreduce_without_the_silent_node(cloud: LiveCluster) -> None:
    result = cloud.json("up", str(cloud.spec), "--yes")
    assert result["verdict"]["verdict"] == "pass"
    assert result["verdict"]["ranks"] == 2
    assert sorted(result["failed_hosts"]) == [SILENT, SMALL]
    assert "showed no host key" in result["failed_hosts"][SILENT]
    assert result["failed_hosts"][SMALL].endswith("its disk is full")


def test_the_first_start_was_over_before_anything_ran(cloud: LiveCluster) -> None:
    for node in ("head", "gpu001"):
        boot = "/var/lib/cloud/instance/boot-finished"
        assert "status: done" in cloud.on(node, f"cloud-init status; sudo test -e {boot}")
        earlier = f"sudo find /var/lib/gcluster/stamps -type f ! -newer {boot}"
        assert cloud.on(node, earlier) == "", "a step was done before the first start was over"


def test_roots_login_is_as_closed_as_user_data_left_it(cloud: LiveCluster) -> None:
    output = cloud.on("gpu001", "sudo sshd -T | grep -i permitrootlogin; whoami").split()
    assert output == ["permitrootlogin", "no", "debian"]


def test_status_names_the_silent_node_and_waits_for_it_no_more(cloud: LiveCluster) -> None:
    status = cloud.json("status", str(cloud.spec), expect=None)
    assert "showed no host key" in json.dumps(
        [node for node in status["nodes"] if node["name"] == SILENT]
    )


def test_down_leaves_nothing(cloud: LiveCluster) -> None:
    cloud.gcluster("down", str(cloud.spec), "--yes")
    left = cloud.left_behind()
    assert left["containers"] == left["networks"] == []
