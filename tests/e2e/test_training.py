"""A training on real local nodes survives what happens to nodes, disks and other jobs.

The program is that of examples/first-model: its numbers are the same however often it is stopped,
so each curve of losses is held, digit by digit, to that of a run that nothing disturbed.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import until
from .training_site import LOSS, Lab, measured, opened, podman

pytestmark = [pytest.mark.local, pytest.mark.training]

NODES, STEPS = 3, 120
KILLS = int(os.environ.get("GCLUSTER_KILLS", "5"))
"""Processes of the long run that are killed."""
CASES = {
    "plain": {},
    "node": {"spares": 1},
    "without-spares": {},
    "script": {"spares": 1},
    "elastic": {"nodes": NODES + 1, "min_nodes": NODES, "steps": 600},
    "hangs": {"hang": "15s", "restarts": 1},
    "gated": {"spares": 1, "gate": "allreduce"},
    "gated-after": {"gate": {"after": "allreduce"}},
    "controller": {},
    "full": {"nodes": 1},
    "torn": {},
    "gives-way": {"qos": "low"},
    "killed": {"restarts": KILLS, "steps": max(STEPS, 40 * KILLS)},
}
COPIED: dict[str, Any] = {
    "framework": "command",
    "nodes": NODES,
    "chdir": "/scratch",
    "command": [
        *("sh", "-c"),
        (
            'folder=$GCLUSTER_CHECKPOINTS/step-1; [ "$RANK" = 0 ] || exit 0; mkdir "$folder"; '
            'head -c 200000000 /dev/zero >"$folder/model"; '
            '/usr/local/libexec/gcluster/job-checkpoint.py commit "$folder"'
        ),
    ],
    "account": "lab",
    "time": "1h",
    "checkpoint": {"to": "scratch", "every": "1h", "copies": ["second"]},
}
"""Saves once and ends, sooner than a copy is begun: the job looks every five seconds."""
SLICE_S = 0.2


RECOVERY = ("spares", "min_nodes", "hang", "gate")


def _workload(case: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: case[key] for key in RECOVERY if key in case},
        "framework": "command",
        "nodes": case.get("nodes", NODES),
        "chdir": "/scratch",
        "command": ["python3", "/scratch/train.py"],
        "qos": case.get("qos", "usual"),
        "account": "lab",
        "time": "1h",
        "restarts": case.get("restarts", 0),
        "variables": {"STEPS": str(case.get("steps", STEPS)), "PAUSE": str(SLICE_S)},
        "checkpoint": {"to": "scratch", "every": "3s", "notice": "30s"},
    }


@pytest.fixture(scope="module")
def lab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[Lab]:
    """A cluster of a controller and four nodes, with its storage."""
    workloads = {name: _workload(case) for name, case in CASES.items()} | {"copied": COPIED}
    files = [root / "examples" / "first-model" / "train.py"]
    with opened(request, tmp_path_factory.mktemp("training"), NODES + 1, workloads, files) as lab:
        yield lab


@pytest.fixture(scope="module")
def undisturbed(lab: Lab) -> dict[int, str]:
    """The curve of the run that nothing happens to."""
    began = time.monotonic()
    job = lab.submit("plain")
    assert lab.ends(job) == "COMPLETED"
    curve = lab.losses("plain", job)
    measured(f"undisturbed: {len(curve)} steps in {time.monotonic() - began:.0f} s")
    assert sorted(curve) == list(range(1, STEPS + 1))
    assert float(curve[STEPS]) < float(curve[1])
    return curve


LIMIT_S = 30
"""From a node's loss to the next step: a spare takes its place, or the job is queued again."""


def _loses(lab: Lab, case: str, which: int, undisturbed: dict[int, str]) -> float:
    """Kill a node of a training; return the seconds until its next step."""
    job = lab.submit(case)
    lab.reaches(case, job, 40)
    victim = lab.nodes(job)[which]
    lost_at = lab.last(case, job)
    began = time.monotonic()
    podman("kill", lab.container(victim))
    took = lab.resumed(case, job, 1) - began
    podman("start", lab.container(victim))
    assert lab.ends(job) == "COMPLETED"
    assert lab.losses(case, job) == undisturbed
    again = len(LOSS.findall(lab.log(case, job))) - STEPS
    measured(f"{case}: lost at step {lost_at}, next step after {took:.0f} s, {again} done again")
    for line in lab.log(case, job).splitlines():
        if "goodput" in line or "interruption" in line:
            measured(f"{case}: {line}")
    until(lambda: "idle" in lab.on("head", f"sinfo -h -n {victim} -o %T"), 120)
    return took


def test_a_spare_takes_the_place_of_a_lost_node_within_30_seconds(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    took = _loses(lab, "node", 1, undisturbed)
    assert took <= LIMIT_S


def test_a_job_without_spares_is_queued_again_and_goes_on_within_30_seconds(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    took = _loses(lab, "without-spares", NODES - 1, undisturbed)
    assert took <= LIMIT_S


def test_a_job_whose_script_is_lost_with_its_node_is_queued_again(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    _loses(lab, "script", 0, undisturbed)


def test_an_elastic_training_goes_on_with_three_of_four_nodes_and_then_with_four(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    """Sums over other parts are rounded in another order: losses are equal within 1e-9."""
    job = lab.submit("elastic")
    lab.reaches("elastic", job, 40)
    victim = lab.nodes(job)[1]
    began = time.monotonic()
    podman("kill", lab.container(victim))
    shrunk = lab.resumed("elastic", job, 1) - began
    assert f"on {NODES} of {NODES + 1} nodes" in lab.log("elastic", job)
    until(lambda: victim not in lab.nodes(job), 120)
    podman("start", lab.container(victim))
    began = time.monotonic()
    grown = lab.resumed("elastic", job, 2) - began
    assert "more nodes are there: saving" in lab.log("elastic", job)
    assert len(lab.nodes(job)) == NODES + 1
    assert lab.ends(job) == "COMPLETED"
    curve = lab.losses("elastic", job, within=1e-9)
    assert sorted(curve) == list(range(1, 600 + 1))
    assert max(abs(float(curve[step]) - float(undisturbed[step])) for step in undisturbed) <= 1e-9
    measured(
        f"elastic: on {NODES} nodes after {shrunk:.0f} s, on {NODES + 1} again after {grown:.0f} s"
    )
    until(lambda: "idle" in lab.on("head", f"sinfo -h -n {victim} -o %T"), 120)


def test_a_training_that_hangs_shows_where_and_resumes(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    job = lab.submit("hangs")
    lab.reaches("hangs", job, 40)
    node = lab.nodes(job)[1]
    lab.on(node, "pkill -STOP -f '^python3 /scratch/train.py'")
    lab.resumed("hangs", job, 1)
    assert lab.ends(job) == "COMPLETED"
    said = lab.log("hangs", job)
    assert "nothing was printed for 15 s; its processes are at" in said
    assert "Fatal Python error: Aborted" in said
    assert "in receive" in said, "where the others wait"
    assert lab.losses("hangs", job) == undisturbed
    measured("hang: " + next(line for line in said.splitlines() if "interruption" in line))


def test_the_gate_names_a_node_whose_network_is_slow_and_leaves_it_out(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    # Of idle nodes Slurm takes the first three: one that is still away would change that.
    until(lambda: len(set(lab.on("head", "sinfo -h -N -t idle -o %N").split())) == 4, 180)
    (slow,) = lab.on("head", "sinfo -h -N -o %N | sort -u | sed -n 2p").split()
    with lab.slowed(slow):
        job = lab.submit("gated")
        until(lambda: bool(lab.nodes(job)), 60)
        assert slow in lab.nodes(job)
        assert lab.ends(job) == "COMPLETED"
    said = lab.log("gated", job)
    assert f"gate: {slow} is slow" in said
    assert lab.losses("gated", job) == undisturbed
    measured(next(line for line in said.splitlines() if f"gate: {slow} is slow" in line))


def test_a_node_that_became_slow_in_a_job_is_named_after_it_and_drained(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    until(lambda: len(set(lab.on("head", "sinfo -h -N -t idle -o %N").split())) == 4, 180)
    job = lab.submit("gated-after")
    lab.reaches("gated-after", job, 20)
    slow = lab.nodes(job)[-1]
    with lab.slowed(slow):
        assert lab.ends(job) == "COMPLETED"
    said = lab.log("gated-after", job)
    assert f"gate: {slow} is slow" in said
    assert f"gate: {slow} is reported to its health check\n" in said
    assert lab.losses("gated-after", job) == undisturbed
    shown = lab.on("head", f"scontrol --oneliner show node {slow}")
    assert "DRAIN" in shown
    reason = re.search(r"Reason=(gcluster-health: network-slow: .* of job \d+)", shown)
    assert reason, shown
    assert f"gate-after={slow}" in lab.on("head", f"scontrol show job {job}")
    account = lab.live.gcluster("jobs", str(lab.live.spec), job).stdout
    assert f"gate     after the job: slow: {slow} (" in account
    lab.on(slow, "node-health acknowledge slow")
    lab.on("head", f"scontrol update NodeName={slow} State=RESUME")
    lab.on(slow, "node-health check --drain")
    until(lambda: "idle" in lab.on("head", f"sinfo -h -n {slow} -o %T"), 60)
    measured(f"gate after a job: {slow} drained: {reason[1]}")


def test_one_node_waits_for_the_last_copy_after_the_others_became_free(lab: Lab) -> None:
    job = lab.submit("copied")
    assert lab.ends(job) == "COMPLETED"
    said = lab.log("copied", job)
    kept = re.search(r"until the last checkpoint is copied the job keeps (\S+)\n", said)
    assert kept, said
    assert re.search(r"step-1 is copied to /second/checkpoints/copied in \d+ s\n", said)
    shown = lab.on("head", f"scontrol show job {job}")
    assert f"NodeList={kept[1]}\n" in shown
    assert not list(lab.scratch.glob("slurm_job_*_resize*"))
    measured(f"last copy: {kept[0].strip()}")


def test_a_training_goes_on_without_its_controller(lab: Lab, undisturbed: dict[int, str]) -> None:
    job = lab.submit("controller")
    lab.reaches("controller", job, 30)
    podman("kill", lab.container("head"))
    lost_at = lab.last("controller", job)
    until(lambda: lab.last("controller", job) >= lost_at + 20, 120)
    podman("start", lab.container("head"))
    until(lambda: "UP" in lab.on("head", "scontrol ping", expect=None), 240)
    assert lab.ends(job) == "COMPLETED"
    assert lab.losses("controller", job) == undisturbed
    done_again = len(LOSS.findall(lab.log("controller", job))) - STEPS
    measured(f"controller lost at step {lost_at}: {done_again} steps done again")


def test_a_full_disk_is_reported_and_training_saves_again_when_there_is_room(lab: Lab) -> None:
    job = lab.submit("full")
    until(lambda: lab.state(job) == "RUNNING" and bool(lab.log("full", job)), 120)
    node = lab.on("head", f"squeue --noheader --jobs={job} --format=%N")
    folder = "/scratch/checkpoints/full"
    process = podman("inspect", "--format", "{{.State.Pid}}", lab.container(node))
    small = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=1777", "small", folder]
    enter = ["nsenter", "--target", process, "--mount"]
    subprocess.run([*enter, *small], check=True)
    try:
        until(lambda: "saved" in lab.log("full", job).split("step 20 ")[-1], 120)
        lab.on(node, f"dd if=/dev/zero of={folder}/ballast bs=4k", expect=None)
        until(lambda: "NOT SAVED" in lab.log("full", job), 120)
        assert "No space left on device" in lab.log("full", job)
        newest = "/usr/local/libexec/gcluster/job-checkpoint.py newest"
        before = lab.on(node, f"{newest} {folder}")
        assert re.search(r"/step-\d+$", before)
        lab.on(node, f"rm {folder}/ballast")
        until(lambda: "saved" in lab.log("full", job).split("NOT SAVED")[-1], 120)
        assert lab.on(node, f"{newest} {folder}") != before
        assert lab.ends(job) == "COMPLETED"
    finally:
        subprocess.run([*enter, "umount", "--lazy", folder], check=False)
    measured(f"full disk: said so, {before.rpartition('/')[2]} held, and saved again")


def test_torn_checkpoints_are_skipped_and_a_second_job_is_refused(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    first = lab.submit("torn")
    lab.reaches("torn", first, 40)
    second = lab.submit("torn")
    # One node is left, so the second waits for the first; a command takes its place.
    refused = lab.on(
        "head",
        "su ada -s /bin/sh -c 'SLURM_JOB_ID=999999 /usr/local/libexec/gcluster/job-checkpoint.py "
        "open /scratch/checkpoints/torn 2>&1'",
        expect=1,
    )
    assert f"used by job {first}, which has not ended" in refused
    lab.on("head", f"scancel {second} {first}")
    assert lab.ends(first) == "CANCELLED"
    folder = lab.scratch / "checkpoints" / "torn"
    saved = sorted(folder.glob("step-*"), key=lambda each: int(each.name[5:]))
    (saved[-1] / "model.json").write_text("{")
    (folder / "step-9999").mkdir()
    (folder / "step-9999" / "model.json").write_text("{")
    third = lab.submit("torn")
    assert lab.ends(third) == "COMPLETED"
    said = lab.log("torn", third)
    assert "checkpoint step-9999 is skipped: it has no manifest" in said
    assert f"checkpoint {saved[-1].name} is skipped: model.json has 1 bytes of" in said
    assert f"resuming from /scratch/checkpoints/torn/{saved[-2].name}" in said
    start = int(saved[-2].name[5:]) + 1
    expected = {step: loss for step, loss in undisturbed.items() if step >= start}
    assert lab.losses("torn", third) == expected
    measured(f"two torn checkpoints skipped: resumed from {saved[-2].name}; second job refused")


def test_a_job_that_gives_way_saves_and_comes_back(lab: Lab, undisturbed: dict[int, str]) -> None:
    job = lab.submit("gives-way")
    lab.reaches("gives-way", job, 30)
    began = time.monotonic()
    lab.on(
        "head",
        f"cd /tmp && su ada -s /bin/sh -c 'sbatch --qos=urgent --account=lab --nodes={NODES + 1} "
        '--exclusive --output=/dev/null --wrap "sleep 3"\'',
    )
    until(lambda: "gcluster: queued again" in lab.log("gives-way", job), 120)
    gave_way = time.monotonic() - began
    back = lab.resumed("gives-way", job, 1) - began
    assert lab.ends(job) == "COMPLETED"
    assert lab.losses("gives-way", job) == undisturbed
    again = len(LOSS.findall(lab.log("gives-way", job))) - STEPS
    assert again == 0, "it did not save when it had to give way"
    assert lab.log("gives-way", job).count("gcluster: resuming from") == 1 + 1
    measured(f"gave way after {gave_way:.0f} s, back after {back:.0f} s, {again} steps done again")


def test_random_kills_never_keep_a_training_from_its_end(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    chosen = random.Random(29)  # noqa: S311  # the same kills each time
    job = lab.submit("killed")
    began = time.monotonic()
    for number in range(KILLS):
        lab.reaches("killed", job, 15 if not number else lab.last("killed", job) + 5)
        listed = f"scontrol show hostnames $(squeue --noheader --jobs={job} --format=%N)"
        node = chosen.choice(lab.on("head", listed).split())
        lab.on(node, "pkill -KILL -f '^python3 /scratch/train.py'")
        if number:
            time.sleep(chosen.uniform(0, 3))
        lab.resumed("killed", job, number + 1)
    assert lab.ends(job) == "COMPLETED"
    wall = time.monotonic() - began
    curve = lab.losses("killed", job)
    done = len(LOSS.findall(lab.log("killed", job)))
    steps = int(str(CASES["killed"].get("steps", STEPS)))
    assert sorted(curve) == list(range(1, steps + 1))
    assert {step: loss for step, loss in curve.items() if step <= STEPS} == undisturbed
    goodput = re.findall(r"^gcluster: goodput (\d+)%: .*$", lab.log("killed", job), re.MULTILINE)
    assert 0 < int(goodput[-1]) < 100
    measured(
        f"{KILLS} random kills: {steps} steps in {wall:.0f} s, {done - steps} done again, "
        f"goodput {goodput[-1]}%"
    )
