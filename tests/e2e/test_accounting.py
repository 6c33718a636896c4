"""Accounts on real nodes: slurmdbd and MariaDB hold what the spec says, and Slurm keeps to it.

The tests run in order and share one cluster of four nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.inventory.accounting.desired import desired_accounting
from gcluster.inventory.accounting.reading import (
    association_query,
    qos_query,
    read_accounting,
    user_query,
)
from gcluster.schemas.load import load

from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.slurm]

TWELVE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[1] / "cases/priority/twelve-jobs/case.yaml").read_text()
)
QOS: dict[str, dict[str, Any]] = {name: {"priority": p} for name, p in TWELVE["qos"].items()}
QOS["urgent"]["preempts"] = ["low"]
QOS["low"]["preemptible"] = "requeue"
ALL_NODES = "gpu[001-004]"


class Charged:
    """The cluster and the spec that is changed from test to test."""

    def __init__(self, live: LiveCluster) -> None:
        """Write the spec of the twelve jobs, with a quota and a user who comes and goes."""
        live.ask_for(nodes=4)
        self.live = live
        self.spec: dict[str, Any] = yaml.safe_load(live.spec.read_text())
        self.spec["users"] = [{"name": "ada", "uid": 2001}, {"name": "bob", "uid": 2002}]
        self.spec["scheduler"] = {
            "type": "slurm",
            "qos": QOS,
            "accounts": {
                "nlp": {"share": 60, "users": ["ada"]},
                "vision": {"share": 40, "gpu_quota": 8, "users": ["bob"]},
            },
            "priority": TWELVE["weights"],
            "partitions": {
                name: {"pools": ["gpu"], "tier": tier, "default": name == "batch", "max_time": "1h"}
                for name, tier in TWELVE["partitions"].items()
            },
        }
        self.write()

    def write(self) -> None:
        """Write the spec as it is now."""
        self.live.spec.write_text(yaml.safe_dump(self.spec, sort_keys=False))

    def up(self) -> Any:
        """Run `up` to its end."""
        return self.live.json("up", str(self.live.spec), "--yes")

    def head(self, command: str) -> str:
        """Run a shell line on the controller."""
        return self.live.on("head", command).strip()

    def sbatch(self, user: str, name: str, options: str, script: str = "sleep 600") -> str:
        """Send a job as a user; return its id."""
        return self.head(
            f"cd /tmp && runuser -u {user} -- sbatch --parsable --job-name={name} "
            f"--output=/dev/null --time=10 {options} --wrap '{script}'"
        )

    def state(self, job: str) -> str:
        """Return "RUNNING None": a job's state and its reason."""
        return self.head(f"squeue --noheader --job={job} --format='%T %r'")

    def clear(self) -> None:
        """Cancel every job and wait until they are gone."""
        self.head("scancel --user=ada; scancel --user=bob; scancel --state=PENDING")
        until(lambda: not self.head("squeue --noheader"))


def until(holds: Callable[[], bool], limit_s: float = 60) -> None:
    """Wait until something holds; it must within `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, "it didn't come about"
        time.sleep(1)


@pytest.fixture(scope="module")
def charged(live: LiveCluster) -> Charged:
    return Charged(live)


def test_a_plan_says_the_accounts_before_there_is_anything(charged: Charged) -> None:
    plan = charged.live.json("plan", str(charged.live.spec))
    assert any(words.startswith("add account nlp") for words in plan["books"]["changes"])


def test_after_up_the_database_holds_what_the_spec_says(charged: Charged) -> None:
    charged.up()
    spec = load(charged.live.spec).spec
    assert spec is not None
    queries = (qos_query(), association_query(charged.live.name), user_query())
    printed = [charged.head(" ".join(query)) for query in queries]
    assert read_accounting(*printed) == desired_accounting(spec)


def test_a_second_plan_has_nothing_to_change(charged: Charged) -> None:
    charged.live.gcluster("plan", str(charged.live.spec), "--detailed-exitcode", expect=0)


def test_the_twelve_jobs_stand_in_the_order_computed_by_hand(charged: Charged) -> None:
    charged.head(f"scontrol update nodename={ALL_NODES} state=drain reason=counting")
    try:
        for job in TWELVE["jobs"]:
            options = f"--qos={job['qos']} --partition={job['partition']} --nodes={job['nodes']}"
            nice = f" --nice={job['nice']}" if "nice" in job else ""
            charged.sbatch(job["user"], job["name"], options + nice)
        names = dict(
            line.split() for line in charged.head("squeue -h --format='%i %j'").splitlines()
        )
        until(lambda: len(charged.head("sprio --noheader --format='%i %Y'").splitlines()) == 12)
        shown = charged.head("sprio --noheader --format='%i %Y'").splitlines()
        by_priority = sorted(shown, key=lambda line: int(line.split()[1]), reverse=True)
        assert [names[line.split()[0]] for line in by_priority] == TWELVE["order"]
    finally:
        charged.clear()
        charged.head(f"scontrol update nodename={ALL_NODES} state=resume")


def test_a_job_of_a_qos_that_gives_way_is_queued_again(charged: Charged) -> None:
    low = charged.sbatch("ada", "low", "--qos=low --nodes=4 --exclusive --requeue")
    until(lambda: charged.state(low).startswith("RUNNING"))
    urgent = charged.sbatch("ada", "urgent", "--qos=urgent --nodes=4 --exclusive", "sleep 5")
    until(lambda: charged.state(urgent).startswith("RUNNING"), limit_s=120)
    assert charged.state(low).startswith("PENDING")
    assert "Restarts=1" in charged.head(f"scontrol --oneliner show job {low}")
    charged.clear()


def test_an_account_s_quota_of_gpus_holds_for_its_jobs_together(charged: Charged) -> None:
    first = charged.sbatch("bob", "first", "--gres=gpu:h100:6")
    until(lambda: charged.state(first).startswith("RUNNING"))
    second = charged.sbatch("bob", "second", "--gres=gpu:h100:4")
    until(lambda: "AssocGrpGRES" in charged.state(second))
    other = charged.sbatch("ada", "other", "--gres=gpu:h100:4")
    until(lambda: charged.state(other).startswith("RUNNING"))
    charged.head(f"scancel {first}")
    until(lambda: charged.state(second).startswith("RUNNING"))
    charged.clear()


def test_a_member_who_is_removed_stays_while_a_job_runs_and_goes_after_it(
    charged: Charged,
) -> None:
    job = charged.sbatch("bob", "last", "--gres=gpu:h100:1")
    until(lambda: charged.state(job).startswith("RUNNING"))
    charged.spec["scheduler"]["accounts"]["vision"]["users"] = []
    charged.write()
    plan = charged.live.json("plan", str(charged.live.spec))
    waits = "keep user bob of account vision until a later run: 1 job"
    assert plan["books"]["held_back"] == [waits]
    assert waits in charged.live.gcluster("up", str(charged.live.spec), "--yes").stdout
    assert charged.state(job).startswith("RUNNING")

    charged.clear()
    charged.up()
    assert charged.head("sacctmgr --noheader --parsable2 show user bob format=User") == ""
    refused = charged.head("cd /tmp && runuser -u bob -- sbatch --wrap true 2>&1 || true")
    assert "Invalid account" in refused


def test_a_maintenance_window_is_a_reservation_and_goes_with_the_spec(charged: Charged) -> None:
    charged.spec["scheduler"]["maintenance"] = {
        "patch": {"start": "2037-01-15T06:00Z", "duration": "2h"}
    }
    charged.write()
    charged.up()
    shown = charged.head("TZ=UTC scontrol --oneliner show reservation")
    assert "ReservationName=gcluster-patch StartTime=2037-01-15T06:00:00" in shown
    del charged.spec["scheduler"]["maintenance"]
    charged.write()
    charged.up()
    assert "gcluster-patch" not in charged.head("scontrol show reservation")


def test_a_database_that_is_stopped_stops_no_job_and_is_said(charged: Charged) -> None:
    job = charged.sbatch("ada", "through", "--nodes=1")
    until(lambda: charged.state(job).startswith("RUNNING"))
    charged.head("systemctl stop mariadb")
    try:
        plan = charged.live.json("plan", str(charged.live.spec))
        assert plan["books"]["problem"]
        assert charged.state(job).startswith("RUNNING")
    finally:
        charged.head("systemctl start mariadb && systemctl restart slurmdbd")
    charged.clear()


def test_no_log_of_a_run_and_no_process_holds_the_database_s_password(charged: Charged) -> None:
    password = charged.head("sed -n s/^StoragePass=//p /etc/slurm/slurmdbd.conf")
    assert len(password) == 48
    kept = [path for path in charged.live.data.rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if password.encode() in path.read_bytes()] == []
    assert charged.live.processes(password) == []
