"""Accounts on real nodes: slurmdbd and MariaDB hold what the spec says, and Slurm keeps to it.

The tests run in order on the cluster of four nodes that the tests of operations use after them.
"""

from __future__ import annotations

import pytest

from gcluster.inventory.accounting.desired import desired_accounting
from gcluster.inventory.accounting.reading import (
    association_query,
    qos_query,
    read_accounting,
    user_query,
)
from gcluster.schemas.load import load

from .conftest import until
from .slurm_site import TWELVE, Site

pytestmark = [pytest.mark.local, pytest.mark.slurm]

ALL_NODES = "gpu[001-004]"


@pytest.mark.core
def test_a_plan_has_the_accounts_before_there_is_anything(site: Site) -> None:
    plan = site.live.json("plan", str(site.live.spec))
    assert any(words.startswith("add account nlp") for words in plan["accounting"]["changes"])


@pytest.mark.core
def test_after_up_the_database_holds_what_the_spec_has(site: Site) -> None:
    site.up()
    spec = load(site.live.spec).spec
    assert spec is not None
    queries = (qos_query(), association_query(site.live.name), user_query())
    printed = [site.head(" ".join(query)) for query in queries]
    assert read_accounting(*printed) == desired_accounting(spec)


@pytest.mark.core
def test_a_second_plan_has_nothing_to_change(site: Site) -> None:
    site.live.gcluster("plan", str(site.live.spec), "--detailed-exitcode", expect=0)


@pytest.mark.core
def test_the_twelve_jobs_are_in_the_order_computed_by_hand(site: Site) -> None:
    site.head(f"scontrol update nodename={ALL_NODES} state=drain reason=counting")
    try:
        for job in TWELVE["jobs"]:
            options = f"--qos={job['qos']} --partition={job['partition']} --nodes={job['nodes']}"
            nice = f" --nice={job['nice']}" if "nice" in job else ""
            site.sbatch(job["user"], job["name"], options + nice)
        names = dict(line.split() for line in site.head("squeue -h --format='%i %j'").splitlines())
        until(lambda: len(site.head("sprio --noheader --format='%i %Y'").splitlines()) == 12)
        shown = site.head("sprio --noheader --format='%i %Y'").splitlines()
        by_priority = sorted(shown, key=lambda line: int(line.split()[1]), reverse=True)
        assert [names[line.split()[0]] for line in by_priority] == TWELVE["order"]
    finally:
        site.clear()
        site.head(f"scontrol update nodename={ALL_NODES} state=resume")


@pytest.mark.core
def test_a_job_of_a_qos_that_gives_way_is_queued_again(site: Site) -> None:
    low = site.sbatch("ada", "low", "--qos=low --nodes=4 --exclusive --requeue")
    until(lambda: site.state(low).startswith("RUNNING"))
    urgent = site.sbatch("ada", "urgent", "--qos=urgent --nodes=4 --exclusive", "sleep 5")
    chosen = f"scontrol --oneliner show job {low} | grep -v PreemptTime=None || true"
    until(lambda: site.head(chosen), seconds=60)
    assert site.state(low).startswith("RUNNING")  # for its grace of 20 s
    until(lambda: site.state(urgent).startswith("RUNNING"), seconds=120)
    assert site.state(low).startswith("PENDING")
    assert "Restarts=1" in site.head(f"scontrol --oneliner show job {low}")
    site.clear()


@pytest.mark.core
def test_an_account_s_quota_of_gpus_holds_for_its_jobs_together(site: Site) -> None:
    first = site.sbatch("bob", "first", "--gres=gpu:h100:6")
    until(lambda: site.state(first).startswith("RUNNING"))
    second = site.sbatch("bob", "second", "--gres=gpu:h100:4")
    until(lambda: "AssocGrpGRES" in site.state(second))
    used = {quota["account"]: quota for quota in site.do("status", expect=None)["quotas"]}
    assert (used["vision"]["used"], used["vision"]["limit"]) == (6, 8)
    other = site.sbatch("ada", "other", "--gres=gpu:h100:4")
    until(lambda: site.state(other).startswith("RUNNING"))
    site.head(f"scancel {first}")
    until(lambda: site.state(second).startswith("RUNNING"))
    site.clear()


def test_the_limit_of_one_user_is_no_limit_of_another(site: Site) -> None:
    first = site.sbatch("ada", "first", "--qos=high --gres=gpu:h100:3")
    until(lambda: site.state(first).startswith("RUNNING"))
    second = site.sbatch("ada", "second", "--qos=high --gres=gpu:h100:2")
    until(lambda: "QOSMaxGRESPerUser" in site.state(second))
    other = site.sbatch("bob", "other", "--qos=high --gres=gpu:h100:2")
    until(lambda: site.state(other).startswith("RUNNING"))
    site.clear()


@pytest.mark.core
def test_no_limit_of_a_qos_holds_the_allreduce_back(site: Site) -> None:
    qos = site.spec["scheduler"]["qos"]["normal"]
    qos["gpu_limit_per_user"] = 1
    site.write()
    assert site.up()["verdict"]["verdict"] == "pass"  # of 32 GPUs
    held = site.sbatch("ada", "held", "--qos=normal --gres=gpu:h100:2")
    until(lambda: "QOSMaxGRESPerUser" in site.state(held))
    site.clear()
    del qos["gpu_limit_per_user"]
    site.write()
    site.up()


def test_a_job_waits_for_those_that_it_depends_on(site: Site) -> None:
    tasks = site.sbatch("ada", "tasks", "--array=1-3 --nodes=1", "sleep 10")
    after = site.sbatch("ada", "after", f"--nodes=1 --dependency=afterok:{tasks}")
    until(lambda: site.state(after) == "PENDING Dependency")
    until(lambda: site.state(after).startswith("RUNNING"), seconds=120)
    assert site.head(f"squeue --noheader --job={tasks} 2>/dev/null || true") == ""
    site.clear()


@pytest.mark.core
def test_what_a_job_used_of_its_node_is_in_accounting(site: Site) -> None:
    job = site.sbatch("ada", "used", "--nodes=1 --acctg-freq=task=1", "sleep 3")
    used = f"sacct --noheader --parsable2 --jobs={job}.batch --format=State,MaxRSS,AveCPU"
    until(lambda: site.head(used).startswith("COMPLETED"))
    assert all(site.head(used).split("|"))


def test_a_member_who_is_removed_stays_while_a_job_runs_and_goes_after_it(
    site: Site,
) -> None:
    job = site.sbatch("bob", "last", "--gres=gpu:h100:1")
    until(lambda: site.state(job).startswith("RUNNING"))
    site.spec["scheduler"]["accounts"]["vision"]["users"] = []
    site.write()
    plan = site.live.json("plan", str(site.live.spec))
    waits = "keep user bob of account vision until a later run: 1 job"
    assert plan["accounting"]["held_back"] == [waits]
    assert waits in [diagnostic["summary"] for diagnostic in site.up()["diagnostics"]]
    assert site.state(job).startswith("RUNNING")

    site.clear()
    site.up()
    assert site.head("sacctmgr --noheader --parsable2 show user bob format=User") == ""
    refused = site.head("cd /tmp && runuser -u bob -- sbatch --wrap true 2>&1 || true")
    assert "Invalid account" in refused


def test_a_maintenance_window_is_a_reservation_and_goes_with_the_spec(site: Site) -> None:
    site.spec["scheduler"]["maintenance"] = {
        "patch": {"start": "2037-01-15T06:00Z", "duration": "2h"}
    }
    site.write()
    site.up()
    shown = site.head("TZ=UTC scontrol --oneliner show reservation")
    assert "ReservationName=gcluster-patch StartTime=2037-01-15T06:00:00" in shown
    del site.spec["scheduler"]["maintenance"]
    site.write()
    site.up()
    assert "gcluster-patch" not in site.head("scontrol show reservation")


def test_a_database_that_is_stopped_stops_no_job_and_is_reported(site: Site) -> None:
    job = site.sbatch("ada", "through", "--nodes=1")
    until(lambda: site.state(job).startswith("RUNNING"))
    site.on_database_host("systemctl stop mariadb")
    try:
        plan = site.live.json("plan", str(site.live.spec))
        assert plan["accounting"]["problem"]
        assert site.state(job).startswith("RUNNING")
    finally:
        site.on_database_host("systemctl start mariadb && systemctl restart slurmdbd")
    site.clear()


def test_no_log_of_a_run_and_no_process_holds_the_database_s_password(site: Site) -> None:
    password = site.on_database_host("sed -n s/^StoragePass=//p /etc/slurm/slurmdbd.conf")
    assert len(password) == 48
    kept = [path for path in site.live.data.rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if password.encode() in path.read_bytes()] == []
    assert site.live.processes(password) == []
