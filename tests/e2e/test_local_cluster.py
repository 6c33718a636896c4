"""The whole line on real nodes: from a spec to a passing AllReduce, through its life, to nothing.

The tests of this file run in order and share one cluster, as a person's session would.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest
from tests.lifecycle.leak_search import Watcher, found_in, spellings

from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore

from .conftest import LiveCluster, until

pytestmark = pytest.mark.local


def test_plan_shows_five_nodes_to_create_and_changes_nothing(live: LiveCluster) -> None:
    plan = live.json("plan", str(live.spec))
    created = [
        change["resource"]["name"]
        for site in plan["sites"]
        for change in site["changes"]
        if change["effect"] == "create" and change["resource"]["kind"] == "node"
    ]
    assert created == ["head", "gpu001", "gpu002", "gpu003", "gpu004"]
    assert live.engine("ps", "--all") == []


def test_ctrl_c_ends_up_cleanly_and_reports_how_to_continue(live: LiveCluster) -> None:
    status, answer = live.stop_up(signal.SIGINT, after_steps=3)
    assert status == 130
    assert "gcluster up" in answer
    assert live.processes(mentioning="ansible") == []


def test_up_can_be_killed_while_it_works_on_the_nodes(live: LiveCluster) -> None:
    status, _ = live.stop_up(signal.SIGKILL, after_steps=2)
    assert status == -signal.SIGKILL


@pytest.fixture(scope="module")
def watcher(live: LiveCluster) -> Watcher:
    """Watch the arguments of all processes, those in nodes too, during the `up` that works."""
    return Watcher(live.name, every_s=0.05)


def test_up_brings_the_cluster_to_a_passed_allreduce(live: LiveCluster, watcher: Watcher) -> None:
    with watcher:
        result = live.json("up", str(live.spec), "--yes")
    assert result["verdict"]["verdict"] == "pass"
    assert result["verdict"]["ranks"] == 4
    assert result["failed_hosts"] == {}


def test_no_argument_and_no_file_has_a_secret_in_the_clear(
    live: LiveCluster, watcher: Watcher
) -> None:
    state = live.spec.parent / ".gcluster" / live.name
    store = StateStore.open(f"file://{state}")
    identity = store.identity()
    assert identity is not None
    keys = live.config / "gcluster" / "keys"
    munge = SecretVault.open(store, None, identity.id, keys).reveal("munge")
    assert watcher.seen > 0
    artefacts = {
        name: data
        for name, data in found_in(live.spec.parent).items()
        if not name.endswith(".key")  # the age identity itself
    }
    assert any(name.endswith(".tar.gz") for name in artefacts)
    artefacts["arguments"] = "\n".join(watcher.arguments).encode()
    wanted = spellings(munge)
    assert {name for name, data in artefacts.items() if any(s in data for s in wanted)} == set()


def test_status_reports_that_all_is_well(live: LiveCluster) -> None:
    status = live.json("status", str(live.spec))
    assert {c["name"]: c["status"] for c in status["conditions"]} == {
        "NodesReady": "true",
        "SchedulerUp": "true",
        "Converged": "true",
        "AllReducePassed": "true",
        "NoDrift": "true",
    }
    states = {node["name"]: node["scheduler_state"] for node in status["nodes"]}
    assert states == {
        "head": "",
        "gpu001": "idle",
        "gpu002": "idle",
        "gpu003": "idle",
        "gpu004": "idle",
    }


def test_a_second_up_changes_nothing(live: LiveCluster) -> None:
    before = live.stamp_times()
    result = live.json("up", str(live.spec), "--yes")
    assert result["changed"] is False
    assert live.stamp_times() == before


def test_an_up_with_nothing_to_do_gives_back_what_no_person_took_out(live: LiveCluster) -> None:
    live.on("head", "scontrol update nodename=gpu001 state=drain reason='Duplicate jobid'")
    live.on("head", "scontrol update nodename=gpu002 state=drain reason='link 3 is off'")
    result = live.json("up", str(live.spec), "--yes")
    assert (result["changed"], result["out_of_service"]) == (False, {"gpu002": "link 3 is off"})
    output = live.on("head", "sinfo --noheader --Node --format='%N %T' | sort -u")
    states = [line.rstrip("*") for line in output.splitlines()]  # "*": not responding yet
    assert states[:2] == ["gpu001 idle", "gpu002 drained"]
    live.on("head", "scontrol update nodename=gpu002 state=resume")


def test_a_job_of_a_user_gets_gpus_on_two_nodes(live: LiveCluster) -> None:
    live.on("head", "install -d -o ada /tmp/ada")
    job = (
        'cd /tmp/ada && su ada -c "sbatch --wait -N2 --gres=gpu:8 --output=/dev/null --wrap '
        "'srun --output=/tmp/job-%N.out printenv CUDA_VISIBLE_DEVICES'\""
    )
    live.on("head", job)
    seen = [
        live.on(node, "cat /tmp/job-*.out 2>/dev/null || true").strip()
        for node in ("gpu001", "gpu002")
    ]
    assert seen == ["0,1,2,3,4,5,6,7"] * 2


def test_a_job_that_names_its_variables_has_the_login_environment_of_its_user(
    live: LiveCluster,
) -> None:
    """That is read in namespaces, which a container may not make, and slurmd ended there."""
    sbatch = "runuser -u ada -- sbatch --wait --export=COLOUR=red --output=/tmp/given"
    job = f"cd /tmp && timeout 60 {sbatch} --nodelist=gpu001"
    live.on("head", f"{job} --wrap 'echo $COLOUR $HOME; which scontrol'")
    assert live.on("gpu001", "cat /tmp/given").split() == ["red", "/home/ada", "/usr/bin/scontrol"]


def test_a_job_with_a_task_on_each_cpu_ends(live: LiveCluster) -> None:
    # Its step holds more than 1,024 files: a node that allows no more never gets rid of it.
    ran = live.on("head", "cd /tmp && timeout 60 srun --nodelist=gpu002 --ntasks=192 hostname")
    assert ran.split() == ["gpu002"] * 192


def test_smoke_reports_the_bandwidth_of_every_size(live: LiveCluster) -> None:
    result = live.json("smoke", str(live.spec))
    assert result["verdict"]["verdict"] == "pass"
    sizes = [row["size"] for row in result["log"]["rows"]]
    assert sizes == [8 * 2**step for step in range(21)]


def test_a_killed_node_is_named_and_up_repairs_it(live: LiveCluster) -> None:
    subprocess.run(
        ["podman", "kill", f"gcluster-{live.name}-gpu003"], check=True, capture_output=True
    )
    status = live.json("status", str(live.spec), expect=None)
    ready = next(c for c in status["conditions"] if c["name"] == "NodesReady")
    assert ready["status"] == "false"
    assert "gpu003" in ready["reason"]
    assert live.json("up", str(live.spec), "--yes")["verdict"]["verdict"] == "pass"
    status = live.json("status", str(live.spec))
    assert all(condition["status"] == "true" for condition in status["conditions"])


def conditions_of(live: LiveCluster) -> dict[str, dict[str, str]]:
    """Return what `status` of a cluster that is not well says of each condition, by its name."""
    status = live.json("status", str(live.spec), expect=1)
    return {each["name"]: each for each in status["conditions"]}


def test_a_node_that_is_back_before_it_is_missed_has_lost_its_jobs_and_that_is_known(
    live: LiveCluster,
) -> None:
    """Slurm never marks it down: its boot time reports the restart, to slurmctld and to users."""
    send = "cd /tmp && runuser -u ada -- sbatch --parsable --output=/dev/null"
    alone = live.on("head", f"{send} --nodelist=gpu003 --wrap='sleep 600'").strip()
    wide = "--nodes=2 --nodelist=gpu001,gpu003"
    part = live.on("head", f"{send} {wide} --wrap='srun sleep 600'").strip()
    steps = "squeue --noheader --steps --format=%i"
    until(lambda: f"{part}.0" in live.on("head", steps).split())
    until(lambda: alone in live.on("head", "squeue --noheader --states=RUNNING --format=%i"))
    container, since = f"gcluster-{live.name}-gpu003", live.on("head", "date +@%s").strip()
    subprocess.run(["podman", "restart", "--time=0", container], check=True, capture_output=True)
    # Its sshd is up again, which takes long where the machine is busy.
    until(lambda: conditions_of(live)["Converged"]["status"] != "unknown", 180)
    conditions = conditions_of(live)
    assert conditions["Converged"]["status"] == "false"
    assert conditions["AllReducePassed"]["status"] == "unknown"
    assert "gpu003: started again or replaced since" in conditions["AllReducePassed"]["reason"]
    waiting = f"squeue --noheader --jobs={alone},{part} --format='%T %r'"
    until(lambda: live.on("head", waiting).splitlines() == ["PENDING BeginTime"] * 2, 180)
    live.on("head", f"scancel {alone} {part}")
    missed = "not responding, setting DOWN"
    assert missed not in live.on("head", f"journalctl --unit=slurmctld --since={since}")
    assert live.json("up", str(live.spec), "--yes")["verdict"]["verdict"] == "pass"
    status = live.json("status", str(live.spec))
    assert all(condition["status"] == "true" for condition in status["conditions"])


def test_a_fifth_node_costs_itself_and_the_controllers_slurm_configuration(
    live: LiveCluster,
) -> None:
    before = live.stamp_times()
    live.write_spec(nodes=5)
    live.gcluster("up", str(live.spec), "--yes")
    after = live.stamp_times()
    touched = {key for key, line in after.items() if before.get(key) != line}
    assert {node for node, _ in touched} == {"head", "gpu005"}
    assert {step for node, step in touched if node == "head"} == {"slurm.configure", "slurm.verify"}


def test_a_node_stays_while_a_job_in_line_requests_it_by_name(live: LiveCluster) -> None:
    """Slurm ends such a job, NODE_FAIL, when its configuration no longer has the node."""
    send = "sbatch --parsable --output=/dev/null --begin=now+1hour --nodelist=gpu005 --wrap=true"
    job = live.on("head", f"cd /tmp && runuser -u ada -- {send}").strip()
    live.write_spec(nodes=4)
    output = live.gcluster("up", str(live.spec), "--yes", expect=4)
    assert f"(gpu005): {job}" in output.stdout + output.stderr
    assert live.on("head", f"squeue --noheader --jobs={job} --format=%T").strip() == "PENDING"
    assert (
        live.on("head", "sinfo --noheader --Node --nodes=gpu005 --format=%T").split()[0] == "idle"
    )
    live.on("head", f"scancel {job}")
    live.write_spec(nodes=5)


def test_a_node_leaves_once_its_job_has_ended(live: LiveCluster) -> None:
    send = "sbatch --parsable --output=/dev/null --nodelist=gpu005 --wrap='sleep 15'"
    job = live.on("head", f"cd /tmp && runuser -u ada -- {send}").strip()
    until(lambda: "RUNNING" in live.on("head", f"squeue --noheader --format=%T --jobs={job}"))
    live.write_spec(nodes=4)
    output = live.gcluster("up", str(live.spec), "--yes")
    assert f"waiting for gpu005 (job {job})" in output.stdout + output.stderr
    ended = live.on("head", f"scontrol show job {job}")
    assert "JobState=COMPLETED" in ended
    assert "Restarts=0" in ended
    assert len(live.engine("ps")) == 5  # the head and four


def test_one_idle_node_gets_no_certificate(live: LiveCluster) -> None:
    before = live.json("status", str(live.spec))["certificate"]
    send = "sbatch --parsable --nodes=3 --exclusive --output=/dev/null --wrap='srun sleep 300'"
    job = live.on("head", f"cd /tmp && runuser -u ada -- {send}").strip()
    until(lambda: "RUNNING" in live.on("head", f"squeue --noheader --format=%T --jobs={job}"))
    output = live.gcluster("smoke", str(live.spec), expect=4)
    assert "1 of 4 compute nodes is idle" in output.stdout + output.stderr
    assert live.json("status", str(live.spec))["certificate"] == before


def test_down_leaves_nothing_behind(live: LiveCluster, capsys: pytest.CaptureFixture[str]) -> None:
    live.on("head", "cd /tmp && runuser -u ada -- sbatch --output=/dev/null --wrap='sleep 600'")
    output = live.gcluster("down", str(live.spec), "--yes")
    assert "pending jobs end with" in output.stdout + output.stderr
    left = live.left_behind()
    counts = {kind: len(found) for kind, found in left.items()}
    with capsys.disabled():
        sys.stdout.write(f"\nleft behind by {live.name}: {counts}\n")
    assert counts == dict.fromkeys(counts, 0), left


def test_a_second_down_reports_that_there_is_nothing(live: LiveCluster) -> None:
    output = live.gcluster("down", str(live.spec), "--yes").stdout
    assert re.search(r"nothing", output)
