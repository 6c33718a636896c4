"""Nodes without a scheduler: the AllReduce by SSH, and the programs that people start there."""

from __future__ import annotations

import pytest

from .conftest import LiveCluster, until

pytestmark = [pytest.mark.local, pytest.mark.no_scheduler]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  gpu: {{site: here, machine: sim.h100x8, count: {count}, update: {{drain_timeout: 3s}}}}
scheduler: {{type: none}}
users:
  - {{name: alice, uid: 2001, keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHmRn4kLqrT2jXg0o9cYbqkZ0WzT8hYp3vVd5s1nC7eQ a"]}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 1}}}}
"""  # noqa: E501  # a key is one word
PROGRAM = "setsid setpriv --reuid=alice --regid=alice --clear-groups sleep 3600 >/dev/null 2>&1 &"


def _write_spec(live: LiveCluster, count: int) -> None:
    live.spec.write_text(SPEC.format(name=live.name, count=count))


def _states(live: LiveCluster) -> dict[str, str]:
    return {
        n["name"]: n["scheduler_state"]
        for n in live.json("status", live.name, expect=None)["nodes"]
    }


def test_the_allreduce_passes_and_leaves_nothing_on_the_nodes(live: LiveCluster) -> None:
    _write_spec(live, 3)
    result = live.json("up", str(live.spec), "--yes")
    assert result["verdict"]["verdict"] == "pass"
    assert result["verdict"]["ranks"] == 3
    assert _states(live) == dict.fromkeys(("gpu001", "gpu002", "gpu003"), "idle")
    for node in ("gpu001", "gpu003"):
        assert live.on(node, "ls -d /tmp/gcluster-smoke* 2>/dev/null; true") == ""
        assert live.on(node, "pgrep -f '[g]cluster_smoke|[p]rted'; true") == ""
    assert live.on("gpu001", "systemctl is-active munge slurmd; true").split() == ["inactive"] * 2


def test_a_node_in_use_is_left_out_of_the_test_and_not_removed(live: LiveCluster) -> None:
    live.on("gpu003", PROGRAM)
    until(lambda: _states(live)["gpu003"] == "in use")
    assert live.json("smoke", live.name)["left_out"] == "gpu003"

    _write_spec(live, 2)
    plan = live.json("plan", str(live.spec))
    assert plan["job_impact"]["users"] == ["alice"]
    refused = live.gcluster("up", str(live.spec), "--yes", expect=4)
    assert "alice:sleep" in refused.stderr
    assert "no node was removed" in refused.stderr
    assert "1 running" in live.gcluster("down", live.name, expect=4).stdout

    live.on("gpu003", "pkill -u alice")
    live.gcluster("up", str(live.spec), "--yes")
    assert set(_states(live)) == {"gpu001", "gpu002"}


def test_a_drained_node_reports_it_at_its_logins_until_it_is_resumed(live: LiveCluster) -> None:
    live.gcluster("drain", live.name, "gpu002", "--reason", "fan of GPU 3")
    assert _states(live)["gpu002"] == "drained"
    assert "fan of GPU 3" in live.on("gpu002", "cat /etc/motd.d/gcluster")
    live.gcluster("resume", live.name, "gpu002")
    assert live.on("gpu002", "ls /etc/motd.d/gcluster 2>/dev/null; true") == ""


def test_what_only_slurm_has_is_refused(live: LiveCluster) -> None:
    for verb in ("backup", "acceptance"):
        refused = live.gcluster(verb, live.name, expect=4)
        assert "GC1031" in refused.stderr
