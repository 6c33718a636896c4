"""The whole stack on machines that exist, through `up`: drivers and jobs, upgrade and way back.

The spec is that of HGX H100 servers. Its machines are containers; vendors are signed repositories
of empty packages, hardware is recorded (`vendor.py`), and the AllReduce runs over Ethernet, as the
spec says. Ansible, apt, systemd, Slurm and its jobs are real. The tests run in order.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.stacks.local.image.base_image import node_reference

from .conftest import LiveCluster, until
from .room import Room, podman
from .vendor import Vendors, devices

pytestmark = [pytest.mark.local, pytest.mark.stack]

FIRST, SECOND = "595.58.03", "595.112.07"
GPUS = ("gpu01", "gpu02", "gpu03")
DRIVER = "dpkg-query --show --showformat '${source:Upstream-Version}' nvidia-kernel-open-dkms"


class Stack:
    """The cluster of the room, and the spec that is changed from test to test."""

    def __init__(self, live: LiveCluster, room: Room, folder: Path) -> None:
        """Write the first spec and give the machines their vendors and their hardware."""
        self.live, self.room = live, room
        hosts = {
            name: {"name": name, "address": room.address(name), "host_key": room.host_key(name)}
            for name in ("head01", *GPUS)
        }
        self.spec: dict[str, Any] = {
            "apiVersion": "gcluster/v1",
            "name": live.name,
            "sites": {
                "room": {
                    "provider": "bare-metal",
                    "ssh": {"user": "root", "key": str(room.key)},
                },
                # Slurm is configured for containers when a site of the spec makes its nodes.
                "containers": {"provider": "local"},
            },
            "pools": {
                "head": {"site": "room", "role": "controller", "hosts": [hosts["head01"]]},
                "gpu": {
                    "site": "room",
                    "machine": "hgx-h100-8",
                    "fabric": "ethernet",
                    "cpu": {"sockets": 1, "cores": 16},
                    "memory": "4 GiB",
                    "quorum": 2,
                    "update": {"max_unavailable": 1},
                    "hosts": [hosts[name] for name in GPUS],
                },
            },
            "software": {
                "distribution": "debian-13",
                "driver": FIRST,
                "cuda": "preinstalled",
                "nccl": "preinstalled",
                "slurm": "distribution",
            },
            "scheduler": {"type": "slurm"},
            "users": [{"name": "ada", "uid": 2001}],
            "smoke": {"allreduce": {"sizes": "8B..64KiB", "iterations": 1}},
        }
        self.write()
        roles = self._roles(folder / "compiled")
        vendors = Vendors(room, "vendors")
        self.spec["software"]["sources"] = vendors.serve(roles)
        self.write()
        vendors.equip(GPUS, roles)

    def write(self) -> None:
        """Write the spec as it is now."""
        self.live.spec.write_text(yaml.safe_dump(self.spec, sort_keys=False))

    def set_driver(self, driver: str) -> None:
        """Set a driver's version in the spec."""
        self.spec["software"]["driver"] = driver
        self.write()

    def up(self, *more: str, expect: int = 0) -> Any:
        """Run `up` to its end."""
        return self.live.json("up", str(self.live.spec), "--yes", *more, expect=expect)

    def drivers(self) -> list[str]:
        """Return the driver of each GPU node, as its packages say."""
        return [self.on(name, DRIVER) for name in GPUS]

    def running_drivers(self) -> list[str]:
        """Return the driver of each GPU node, as its (recorded) GPUs say."""
        ask = (
            "nvidia-smi --query-gpu=index,driver_version,persistence_mode,"
            "ecc.mode.current,ecc.mode.pending,mig.mode.current,mig.mode.pending"
            " --format=csv,noheader | head -1 | cut -d, -f2"
        )
        return [self.on(name, ask).strip() for name in GPUS]

    def on(self, host: str, command: str) -> str:
        """Run a shell command on a machine, past gcluster."""
        return podman("exec", f"{self.room.name}-{host}", "sh", "-c", command)

    def states(self) -> dict[str, str]:
        """Return node -> Slurm's state, with the reason of nodes that are out, or will be.

        Slurm 24.11 keeps the last reason of a node that has been resumed.
        """
        output = self.on("head01", "sinfo --noheader --Node --format='%N|%T %E' | sort -u")
        lines = dict(line.split("|", 1) for line in output.splitlines())
        return {
            name: output if "drain" in output.split()[0] else output.split()[0]
            for name, output in lines.items()
        }

    def submit(self, node: str) -> str:
        """Start a job of a user that holds all GPUs of a node until /tmp/end is there."""
        wait = "until [ -e /tmp/end ]; do sleep 0.2; done; date > /tmp/ended"
        job = self.on(
            "head01",
            f'cd /tmp && su ada -c "sbatch --parsable --nodelist={node} --gres=gpu:8 --requeue'
            f" --output=/dev/null --wrap '{wait}'\"",
        )
        until(lambda: self.job(job)["JobState"] == "RUNNING")
        return job

    def job(self, job: str) -> dict[str, str]:
        """Return what the controller says of a job."""
        output = self.on("head01", f"scontrol --oneliner show job {job}")
        return dict(word.split("=", 1) for word in output.split() if "=" in word)

    def begin_up(self) -> subprocess.Popen[str]:
        """Start `up` in its own process; its progress is read from stderr, a JSON object a line."""
        command = [str(Path(sys.executable).with_name("gcluster")), "up", str(self.live.spec)]
        return subprocess.Popen(
            [*command, "--yes", "--format", "json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.live.environment,
        )

    def _roles(self, folder: Path) -> list[str]:
        self.live.gcluster("compile", str(self.live.spec), "--out", str(folder))
        group = json.loads((folder / "groups/gpu.json").read_text())
        return list(dict.fromkeys(step["role"] for step in group["steps"]))


@pytest.fixture(scope="module")
def stack(live: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The machines, and the cluster that is to be made of them.

    They start from the image of local nodes, as servers do from one of their site's: Slurm and
    what else is alike everywhere is in it, and `up` finds the stamps.
    """
    folder = tmp_path_factory.mktemp("stack")
    room = Room(folder, ("vendors", "head01", *GPUS))
    (baked,) = live.json("image", str(live.spec))["sites"]
    try:
        room.start(node_reference(baked["key"]), mounts=devices(folder / "machine"))
        yield Stack(live, room, folder)
    finally:
        room.stop()


def test_up_brings_servers_to_a_passed_allreduce(stack: Stack) -> None:
    result = stack.up()
    assert result["failed_hosts"] == {}
    assert (result["verdict"]["verdict"], result["verdict"]["ranks"]) == ("pass", 24)
    assert result["verdict"]["transport"] == "NET/Socket"
    assert stack.drivers() == stack.running_drivers() == [FIRST] * 3
    held = stack.on("gpu01", "apt-mark showhold")
    assert {"nvidia-kernel-open-dkms", "nvidia-fabricmanager"} <= set(held.split())


def test_the_verdict_reports_that_the_gpus_are_not_those_of_the_spec(stack: Stack) -> None:
    certificate = json.loads(next(stack.live.spec.parent.rglob("certificate.json")).read_text())
    warnings = {warning["code"] for warning in certificate["verdict"]["warnings"]}
    assert {"other-gpu", "no-floor"} <= warnings


def test_a_second_up_changes_nothing(stack: Stack) -> None:
    before = stack.live.stamp_times()
    assert stack.up()["changed"] is False
    assert stack.live.stamp_times() == before


def test_the_plan_of_an_upgrade_names_waves_and_the_jobs_it_waits_for(stack: Stack) -> None:
    stack.on("head01", "rm -f /tmp/end")
    for name in GPUS:
        stack.on(name, "rm -f /tmp/end /tmp/ended")
    stack.submit("gpu01")
    stack.set_driver(SECOND)
    plan = stack.live.json("plan", str(stack.live.spec), expect=None)
    steps = {step["step"]: step for step in plan["steps"]}
    install = steps["nvidia_driver.install"]
    assert (install["hosts"], install["disruption"]) == ("gpu[01-03]", "rolling")
    assert (install["at_once"], install["jobs"]) == (1, 1)
    assert {step.split(".")[0] for step in steps} == {"nvidia_driver"}


def test_an_upgrade_waits_for_the_running_job_and_does_not_end_it(stack: Stack) -> None:
    job = stack.on("head01", "squeue --noheader --format=%A")
    running = stack.begin_up()
    assert running.stderr is not None
    most_out = 0
    for line in running.stderr:
        out = [name for name, state in stack.states().items() if "gcluster up" in state]
        most_out = max(most_out, len(out))
        if f"waiting for gpu01 (job {job})" in json.loads(line).get("detail", ""):
            break
    else:
        pytest.fail("it never waited for the job")
    assert stack.drivers() == [FIRST, SECOND, SECOND]
    assert stack.job(job)["JobState"] == "RUNNING"
    assert most_out == 1
    stack.on("gpu01", "touch /tmp/end")
    output, _ = running.communicate(timeout=400)
    assert running.returncode == 0, output
    assert stack.drivers() == stack.running_drivers() == [SECOND] * 3
    after = stack.job(job)
    assert (after["JobState"], after["ExitCode"], after["Restarts"]) == ("COMPLETED", "0:0", "0")
    assert stack.on("gpu01", "cat /tmp/ended")
    assert stack.states() == dict.fromkeys(GPUS, "idle")


def test_the_way_back_stops_at_the_first_node_that_fails(stack: Stack) -> None:
    stack.on("gpu01", "echo nonsense > /etc/apt/sources.list.d/broken.sources")
    stack.set_driver(FIRST)
    result = stack.up(expect=3)
    assert "nvidia_driver.install" in result["failed_hosts"]["gpu01"]
    assert any("broken.sources" in str(found) for found in result["diagnostics"])
    assert stack.drivers() == [SECOND] * 3
    states = stack.states()
    assert "gcluster up" in states["gpu01"]
    assert "failed" in states["gpu01"]
    assert {states["gpu02"], states["gpu03"]} == {"idle"}


def test_status_reports_which_node_is_out_and_why(stack: Stack) -> None:
    status = stack.live.json("status", str(stack.live.spec), expect=None)
    gpu01 = next(node for node in status["nodes"] if node["name"] == "gpu01")
    assert "drain" in gpu01["scheduler_state"]
    assert "gcluster up" in gpu01["reason"]


def test_the_fixed_node_comes_first_and_jobs_go_back_in_line_when_reported(stack: Stack) -> None:
    stack.on("gpu01", "rm /etc/apt/sources.list.d/broken.sources; rm -f /tmp/end /tmp/ended")
    job = stack.submit("gpu02")
    result = stack.up("--requeue-jobs")
    assert result["failed_hosts"] == {}
    assert stack.drivers() == stack.running_drivers() == [FIRST] * 3
    after = stack.job(job)
    assert int(after["Restarts"]) == 1
    # Slurm lets a requeued job wait for two minutes; they may be over.
    stack.on("head01", f"scontrol update JobId={job} StartTime=now || true")
    stack.on("gpu02", "touch /tmp/end")
    until(lambda: stack.job(job)["JobState"] == "COMPLETED")
    until(lambda: stack.states() == dict.fromkeys(GPUS, "idle"))


def test_nodes_that_converge_themselves_wait_for_jobs_too(stack: Stack) -> None:
    stack.on("gpu01", "rm -f /tmp/end /tmp/ended")
    stack.spec["converge"] = "pull"
    stack.write()
    assert stack.up()["failed_hosts"] == {}
    job = stack.submit("gpu01")
    stack.set_driver(SECOND)
    running = stack.begin_up()
    assert running.stderr is not None
    for line in running.stderr:
        if "gpu01 (jobs run here" in json.loads(line).get("detail", ""):
            break
    else:
        pytest.fail("it never waited for the job")
    until(lambda: stack.drivers() == [FIRST, SECOND, SECOND], seconds=600)
    assert stack.job(job)["JobState"] == "RUNNING"
    stack.on("gpu01", "touch /tmp/end")
    output, _ = running.communicate(timeout=900)
    assert running.returncode == 0, output
    assert stack.drivers() == stack.running_drivers() == [SECOND] * 3
    after = stack.job(job)
    assert (after["JobState"], after["Restarts"]) == ("COMPLETED", "0")
    until(lambda: stack.states() == dict.fromkeys(GPUS, "idle"))


def test_down_leaves_the_servers_as_they_are(stack: Stack) -> None:
    stack.live.gcluster("down", str(stack.live.spec), "--yes")
    assert stack.drivers() == [SECOND] * 3
