"""What slurm.conf says of jobs, seen on real nodes: failed prologs, limits, backfill, hooks.

The site of four nodes is that of the tests of accounts; it is left as it was.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.lifecycle.leak_search import found_in

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
        "sched_interval=5",
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


@pytest.fixture(scope="module")
def hooked(cluster: Site) -> Iterator[Site]:
    """The site with the hooks of examples/hooks.yaml, their files next to its spec."""
    examples = Path(__file__).parents[2] / "examples"
    shutil.copytree(examples / "hooks", cluster.live.spec.parent / "hooks", dirs_exist_ok=True)
    cluster.spec["hooks"] = yaml.safe_load((examples / "hooks.yaml").read_text())["hooks"]
    cluster.spec["hooks"]["notice"]["secrets"] = {"site_notice_token": "env:NOTICE_TOKEN"}
    cluster.live.environment["NOTICE_TOKEN"] = "CANARY-OF-A-HOOK"  # noqa: S105  # looked for
    cluster.write()
    cluster.up()
    yield cluster
    cluster.clear()
    del cluster.spec["hooks"]
    cluster.write()
    cluster.up()
    left = "ls /usr/local/libexec/gcluster/run-prologs.sh /usr/local/libexec/gcluster/hooks/*.d"
    assert cluster.live.on("gpu001", f"{left} 2>/dev/null || true") == ""
    assert "run-prologs" not in cluster.head("scontrol show config")


def test_roles_scripts_and_programs_of_hooks_run_where_the_spec_has(hooked: Site) -> None:
    """A role on every node, a script on compute nodes, programs around jobs and of the health."""
    assert "gpu001 is a compute node" in hooked.live.on("gpu001", "cat /etc/motd")
    assert "head is a controller node" in hooked.head("cat /etc/motd")
    cache = "/var/cache/models"
    assert hooked.live.on("gpu001", f"stat -c %a {cache}").strip() == "1777"
    assert hooked.head(f"ls -d {cache} 2>/dev/null || true") == ""

    job = "srun --nodes=1 --nodelist=gpu002 --time=1"
    look = f"sh -c 'stat -c \"%U %n\" {cache}/job-*'"
    seen = hooked.head(f"cd /tmp && runuser -u ada -- {job} {look}")
    assert re.fullmatch(rf"ada {cache}/job-\d+", seen)
    until(lambda: hooked.live.on("gpu002", f"ls {cache}").strip() == "")

    hooked.live.on("gpu003", f"mv {cache} {cache}.away; /usr/libexec/gcluster/node-health-check")
    why = hooked.head("sinfo --noheader --nodes=gpu003 --format='%T %E'")
    assert "drain" in why
    assert "no /var/cache/models" in why
    hooked.live.on("gpu003", f"mv {cache}.away {cache}")
    hooked.do("resume", "gpu003", expect=None)


def test_a_changed_file_of_a_hook_is_a_change_of_the_spec_and_runs_alone(hooked: Site) -> None:
    assert hooked.up()["changed"] is False
    before = hooked.live.stamp_times()
    notice = hooked.live.spec.parent / "hooks/roles/site_notice/templates/notice.j2"
    notice.write_text("changed, {{ site_notice_token | length }} characters\n")
    plan = hooked.do("plan")
    assert [line["path"] for line in plan["fields"]] == ["hooks.notice.files.templates/notice.j2"]
    hooked.up()
    after = hooked.live.stamp_times()
    touched = {key[1] for key, line in after.items() if before.get(key) != line}
    assert touched == {"hook_notice.configure"}
    assert hooked.head("cat /etc/motd") == "changed, 16 characters"
    leaks = {name for name, data in found_in(hooked.live.spec.parent).items()
             if b"CANARY-OF-A-HOOK" in data}  # fmt: skip
    assert leaks == set()
