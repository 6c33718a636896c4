"""What slurm.conf says of jobs, seen on real nodes: failed prologs, limits, how far backfill plans.

The site of four nodes is that of the tests of accounts; it is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .conftest import until
from .slurm_site import Site

pytestmark = [pytest.mark.local, pytest.mark.slurm, pytest.mark.core]

PROLOG = "/root/failing-prolog"
CONFIGURED = f"Prolog={PROLOG}\\nPrologFlags=Alloc,DeferBatch,ForceRequeueOnFail"
"""Simulated nodes have no prolog of their own: its flags are those of machines, but for Contain,
which takes cgroups."""


@pytest.fixture(scope="module")
def cluster(site: Site) -> Site:
    """The site as its spec says, with no job."""
    site.up()
    site.clear()
    return site


def test_slurmctld_has_what_was_compiled(cluster: Site) -> None:
    shown = cluster.head("scontrol show config")
    config = dict(
        (part.strip() for part in line.split("=", 1)) for line in shown.splitlines() if "=" in line
    )
    parameters = config["SchedulerParameters"].split(",")
    assert parameters == [
        "nohold_on_prolog_fail",
        "bf_continue",
        "bf_window=1440",
        "bf_resolution=60",
    ]
    assert config["PropagateResourceLimitsExcept"] == "MEMLOCK"
    assert config["UnkillableStepTimeout"] == "300 sec"
    assert config["HealthCheckNodeState"] == "CYCLE,IDLE"


def test_the_submitting_shell_s_memlock_limit_stays_there(cluster: Site) -> None:
    """64 KiB, as many distributions' logins have it, would keep RDMA from its memory."""
    say = "cd /tmp && ulimit -S -l 64 && runuser -u ada -- srun --time=1 sh -c"
    job = cluster.head(f"{say} 'ulimit -S -l; ulimit -S -n'").splitlines()
    limits = "sed -n 's/Max locked memory *//p' /proc/$(pgrep -xo slurmd)/limits"
    daemon = cluster.live.on("gpu001", limits)
    soft = daemon.split()[0]
    assert job[0] == (soft if soft == "unlimited" else str(int(soft) // 1024))
    assert job[0] != "64"


def test_munge_works_with_ten_threads(cluster: Site) -> None:
    threads = "grep -c . /proc/$(pgrep -xo munged)/task/*/comm | wc -l"
    assert int(cluster.live.on("gpu001", threads)) >= 10


@pytest.fixture
def failing(cluster: Site) -> Iterator[str]:
    """The name of a node on which the prolog fails; on the others it does not."""
    nodes = ["gpu001", "gpu002", "gpu003", "gpu004"]
    for node in nodes:
        script = "#!/bin/sh\\n[ $(hostname -s) != gpu002 ]\\n"
        cluster.live.on(node, f"printf '{script}' > {PROLOG}; chmod 755 {PROLOG}")
    cluster.head(
        "cp -p /etc/slurm/slurm.conf /root/slurm.conf; "
        f"printf '{CONFIGURED}\\n' >> /etc/slurm/slurm.conf; scontrol reconfigure"
    )
    until(lambda: PROLOG in cluster.head("scontrol show config"))
    yield "gpu002"
    cluster.clear()
    cluster.head("cp -p /root/slurm.conf /etc/slurm/slurm.conf; scontrol reconfigure")
    cluster.do("resume", "gpu002", expect=None)


def test_a_job_whose_prolog_fails_waits_unheld_and_its_node_is_drained(
    cluster: Site, failing: str
) -> None:
    """Even one that would not be queued again after a failure: it has never begun."""
    options = f"--nodes=1 --nodelist={failing} --no-requeue"
    job = cluster.sbatch("ada", "unlucky", options)
    why = f"sinfo --noheader --nodes={failing} --format='%T %E'"
    until(lambda: "Prolog error" in cluster.head(why))
    assert "drain" in cluster.head(why)
    until(lambda: cluster.state(job).startswith("PENDING"))
    shown = cluster.head(f"scontrol --oneliner show job {job}")
    assert "Restarts=1" in shown
    assert "Priority=0 " not in shown  # held
    assert "held" not in cluster.state(job).lower()
