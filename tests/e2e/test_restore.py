"""Everything but the backup is lost: queue, jobs and accounts come back together, or nothing does.

The accounting database is on the controller, as by default. `make prove-restore` loses all of it
ten times over.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
import yaml

from .conftest import LiveCluster, until

pytestmark = pytest.mark.local

ROUNDS = int(os.environ.get("GCLUSTER_ROUNDS", "1"))
SUBMIT = "cd /tmp && runuser -u ada -- sbatch --parsable --output=/dev/null --time=50 --requeue"
LATER = "--begin=now+30days"
"""These wait whatever happens to the nodes, and so does their place in the queue."""
QUEUE = "squeue --noheader --format='%i %T %a' | sort -n"
RECORDS = (
    "sacct --noheader --parsable2 --allusers --allocations --starttime=now-7days "
    "--format=JobID,Account,State"
)
"""By itself sacct shows what ran since midnight."""
CLUSTER_ID = "cat /var/lib/slurm/slurmctld/clustername"
NEVER_STARTS = "/etc/systemd/system/slurmctld.service.d/zz-test.conf"
ENDURE_S = 240
"""A job that a lost node had begins again after Slurm's pause of two minutes (BeginTime)."""


class Restored:
    """A cluster with accounts, jobs, and what is known of both."""

    def __init__(self, live: LiveCluster) -> None:
        """One job has ended, one runs, two wait."""
        self.live = live
        self.head(f"{SUBMIT} --wait --wrap true")
        self.job = self.head(f"{SUBMIT} --gpus-per-node=8 --wrap 'sleep 2900'")
        self.waiting = [self.head(f"{SUBMIT} {LATER} --wrap true") for _ in range(2)]
        until(lambda: self.queue()[self.job].startswith("RUNNING"))
        self.saved = live.json("backup", str(live.spec))

    def head(self, command: str) -> str:
        """Run a shell line on the controller."""
        return self.live.on("head", command).strip()

    def queue(self) -> dict[str, str]:
        """Return job -> its state and account."""
        return dict(line.split(" ", 1) for line in self.head(QUEUE).splitlines())

    def records(self) -> dict[str, str]:
        """Return job -> its account and state, as the database has them."""
        return dict(line.split("|", 1) for line in self.head(RECORDS).splitlines())

    def lose(self, *nodes: str) -> None:
        """Lose machines with all that is on them."""
        names = [f"gcluster-{self.live.name}-{node}" for node in nodes]
        subprocess.run(["podman", "rm", "--force", *names], check=True, capture_output=True)

    def refused(self) -> dict[str, Any]:
        """Return what `up` says instead of making the controller again."""
        done = self.live.gcluster("up", str(self.live.spec), "--yes", "--format", "json", expect=4)
        found = [d for d in yaml.safe_load(done.stdout)["diagnostics"] if d["code"] == "GC909"]
        assert len(found) == 1, done.stdout
        return dict(found[0])

    def has_all(self) -> bool:
        """Say whether the jobs run and wait as they did, each charged to its account."""
        queue = self.queue()
        waiting = {job: queue.get(job) for job in self.waiting}
        return queue.get(self.job) == "RUNNING nlp" and set(waiting.values()) == {"PENDING nlp"}

    def works(self) -> bool:
        """Return whether the job's process runs: one that was restored as running need not."""
        node = self.head(f"squeue --noheader --jobs={self.job} --format=%N")
        look = ("ssh", str(self.live.spec), node, "--", "pgrep --full 'sleep 290[0]'")
        return bool(node) and self.live.gcluster(*look, expect=None).returncode == 0


@pytest.fixture(scope="module")
def cluster(pair: LiveCluster) -> Restored:
    """The cluster, with its backup."""
    return Restored(pair)


def test_a_controller_that_is_gone_is_not_recreated_unasked(cluster: Restored) -> None:
    assert (cluster.saved["running"], cluster.saved["pending"]) == (1, 2)
    assert cluster.saved["accounts"] > 0
    cluster.lose("head")
    refused = cluster.refused()
    assert "head is gone with its queue and the accounting database" in refused["summary"]
    assert f"gcluster restore {cluster.live.name}" in refused["hint"]
    assert "1 running and 2 pending jobs, with accounts" in refused["hint"]
    assert "--allow controller:head" in refused["hint"]
    assert len(cluster.live.engine("ps", "--all")) == 2


def test_a_restore_that_fails_leaves_the_new_controller_as_it_was(cluster: Restored) -> None:
    """What keeps slurmctld from starting here is an example of any reason why it doesn't."""
    spec = str(cluster.live.spec)
    cluster.live.gcluster("up", spec, "--yes", "--allow", "controller:head")
    assert cluster.queue() == {}
    job = cluster.head(f"{SUBMIT} {LATER} --wrap true")
    before = (cluster.head(CLUSTER_ID), cluster.records(), cluster.queue())
    cluster.head(
        f"printf '[Service]\\nExecStartPre=+/usr/bin/test ! -e %s\\n' "
        f"/var/lib/gcluster/slurm-state-replaced > {NEVER_STARTS} && systemctl daemon-reload"
    )
    output = cluster.live.gcluster("restore", spec, "--discard-queue", expect=1)
    assert "everything is as it was before" in output.stdout + output.stderr
    until(lambda: cluster.queue() == before[2], ENDURE_S)
    assert (cluster.head(CLUSTER_ID), cluster.records(), cluster.queue()) == before
    cluster.head(f"rm {NEVER_STARTS}; systemctl daemon-reload; scancel {job}")


def test_a_controller_that_was_recreated_takes_queue_and_accounts_together(
    cluster: Restored,
) -> None:
    """Its database was made again too, so it has another cluster id."""
    done = cluster.live.json("restore", str(cluster.live.spec), "--discard-queue")
    assert (done["restored"], done["accounts"]) == (True, "restored")
    until(cluster.has_all, ENDURE_S)
    assert cluster.records()[cluster.job].startswith("nlp|")
    assert "nlp|COMPLETED" in cluster.records().values()
    assert cluster.live.json("status", str(cluster.live.spec), expect=None)["causes"] == []


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_all_machines_are_lost_and_the_jobs_run_again(cluster: Restored, round_number: int) -> None:
    del round_number
    before = cluster.head(CLUSTER_ID)
    cluster.lose("head", "gpu001", "gpu002")
    cluster.refused()
    spec = str(cluster.live.spec)
    assert not cluster.live.json("restore", spec)["restored"]
    # The job that runs again may hold what the AllReduce needs: 3 says that it was not run.
    assert cluster.live.gcluster("up", spec, "--yes", expect=None).returncode in {0, 3}
    until(lambda: cluster.has_all() and cluster.works(), ENDURE_S)
    assert cluster.head(CLUSTER_ID) == before
    assert "nlp|COMPLETED" in cluster.records().values()
