"""Nodes that converge themselves (`converge: pull`): changes, a fault, an unsigned revision.

The tests run in order and share one cluster of two nodes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from .conftest import LiveCluster, until

pytestmark = [pytest.mark.local, pytest.mark.pull]

PATIENCE_S = 120
NODES = ("gpu001", "gpu002")
_PUSHED = re.compile(r"(\S+) [a-z_]+\.[a-z]+")
"""Progress of a pushed step: "head base.configure"."""
PACKAGE_MIRROR = "/srv/gcluster/package-mirror/converge"
STAMPS = "/var/lib/gcluster/stamps"


class Pulling:
    """The cluster and the spec that is changed from test to test."""

    def __init__(self, live: LiveCluster) -> None:
        """Write the first spec."""
        live.write_spec(nodes=len(NODES))
        self.live = live
        self.pushed_to: set[str] = set()
        """Hosts of the last `up` that steps went to over SSH."""
        self.spec: dict[str, Any] = yaml.safe_load(live.spec.read_text()) | {"converge": "pull"}
        self.write()

    def write(self) -> None:
        """Write the spec as it is now."""
        self.live.spec.write_text(yaml.safe_dump(self.spec, sort_keys=False))

    def up(self) -> Any:
        """Run `up` to its end; note the hosts that it pushed to."""
        done = self.live.gcluster("up", str(self.live.spec), "--yes", "--format", "json")
        details = [json.loads(line).get("detail", "") for line in done.stderr.splitlines()]
        self.pushed_to = {found[1] for detail in details if (found := _PUSHED.fullmatch(detail))}
        return json.loads(done.stdout)

    def last_run(self, node: str) -> Any:
        """Return how a node's last run ended, as it reported to the collector."""
        return json.loads(self.live.on(node, "cat /var/lib/gcluster/self-converge/state.json"))

    def state(self, node: str) -> str:
        """Return what Slurm says of a node."""
        return self.live.on("head", f"sinfo --noheader --nodes={node} --format=%T").strip()


@pytest.fixture(scope="module")
def pulling(live: LiveCluster) -> Pulling:
    """A cluster whose nodes pull."""
    return Pulling(live)


def test_up_ends_in_a_passed_allreduce_of_nodes_that_set_themselves_up(pulling: Pulling) -> None:
    result = pulling.up()
    assert result["failed_hosts"] == {}
    assert (result["verdict"]["verdict"], result["verdict"]["ranks"]) == ("pass", 2)
    assert {pulling.last_run(node)["state"] for node in NODES} == {"converged"}


def test_a_second_up_changes_nothing(pulling: Pulling) -> None:
    before = pulling.live.stamp_times()
    assert pulling.up()["changed"] is False
    assert pulling.live.stamp_times() == before


def test_a_change_reaches_the_nodes_without_a_push_to_them(pulling: Pulling) -> None:
    pulling.spec["users"].append({"name": "grace", "uid": 2002})
    pulling.write()
    assert pulling.up()["failed_hosts"] == {}
    assert pulling.pushed_to == {"head"}
    for node in NODES:
        assert pulling.live.on(node, "id -u grace").strip() == "2002"


def test_a_node_fixes_itself_during_a_job_that_is_not_affected(pulling: Pulling) -> None:
    on = pulling.live.on
    job = on(
        "head",
        'cd /tmp && su ada -c "sbatch --parsable --nodelist=gpu001 --gres=gpu:8 --output=/dev/null'
        " --wrap 'until [ -e /tmp/end ]; do sleep 0.2; done'\"",
    ).strip()
    until(lambda: pulling.state("gpu001") in {"allocated", "mixed"}, PATIENCE_S)
    on("gpu001", f"rm {STAMPS}/mpi.install")
    until(lambda: "mpi.install" in on("gpu001", f"ls {STAMPS}").split(), PATIENCE_S)

    assert "JobState=RUNNING" in on("head", f"scontrol --oneliner show job {job}")
    on("gpu001", "touch /tmp/end")
    until(lambda: "COMPLETED" in on("head", f"scontrol --oneliner show job {job}"), PATIENCE_S)
    assert "Restarts=0" in on("head", f"scontrol --oneliner show job {job}")
    until(lambda: [pulling.state(node) for node in NODES] == ["idle", "idle"], PATIENCE_S)


def test_what_was_not_signed_is_refused_and_named(pulling: Pulling) -> None:
    pulling.live.on("head", f"sed -i 's/max_failed/min_failed/' {PACKAGE_MIRROR}/gpu.signed")
    before = pulling.live.stamp_times()
    for node in NODES:
        until(lambda node=node: pulling.last_run(node)["state"] == "refused", PATIENCE_S)  # type: ignore[misc]
    assert "signature" in pulling.last_run("gpu001")["reason"]
    assert pulling.live.stamp_times() == before


def test_pushing_again_takes_the_nodes_back(pulling: Pulling) -> None:
    pulling.spec["converge"] = "push"
    pulling.spec["users"].append({"name": "edsger", "uid": 2003})
    pulling.write()
    assert pulling.up()["failed_hosts"] == {}
    assert pulling.pushed_to >= set(NODES)
    assert pulling.live.on("gpu002", "id -u edsger").strip() == "2003"
    assert pulling.live.on("head", f"ls {PACKAGE_MIRROR} | grep signed || true").strip() == ""
