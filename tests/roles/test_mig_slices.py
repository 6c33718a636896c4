"""GPUs are cut into MIG slices on a node with a double of its tools, and slices have names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROLES = Path(__file__).parents[2] / "roles"
PROGRAM = ROLES / "nvidia_driver/files/libexec/mig-slices.py"
TASK_PROLOG = ROLES / "slurm/files/libexec/task-prolog.sh"
DOUBLE = Path(__file__).with_name("mig_double.py")


class Node:
    """A node with GPUs, of which tools say what the double keeps."""

    def __init__(self, root: Path, gpus: int) -> None:
        """Begin with whole GPUs that nothing uses."""
        self.root = root
        for tool in ("nvidia-smi", "nvidia-modprobe"):
            (root / "bin").mkdir(exist_ok=True)
            (root / "bin" / tool).write_text(f"#!{sys.executable}\n{DOUBLE.read_text()}")
            (root / "bin" / tool).chmod(0o755)
        systemctl = root / "bin/systemctl"
        systemctl.write_text(f'#!/bin/sh\necho "systemctl $*" >>{root}/calls\n')
        systemctl.chmod(0o755)
        whole = {"mig": False, "busy": False, "held": False, "stubborn": False, "slices": []}
        self.save([dict(whole) for _ in range(gpus)])
        self.environment = {
            "PATH": f"{root}/bin:{os.environ['PATH']}",
            "MIG_DOUBLE": str(root),
            "GCLUSTER_MIG_ROOT": str(root),
        }
        # The table of minor numbers is the driver's: it is there before anything is cut.
        code = "import mig_double as double; double.save(double.read())"
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            cwd=DOUBLE.parent,
            env=os.environ | self.environment,
        )

    def write_slices(self, gpus: int, **slices: int) -> None:
        """Write what the role writes."""
        path = self.root / "etc/gcluster/mig-slices.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        named = {name.replace("_", "."): count for name, count in slices.items()}
        path.write_text(json.dumps({"gpus": gpus, "slices": named}))

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run the program."""
        return subprocess.run(
            [sys.executable, str(PROGRAM), command],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | self.environment,
        )

    def calls(self, word: str) -> list[str]:
        """Return the calls with this word, and clear all."""
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line for line in lines if word in line]

    def state(self) -> list[dict[str, Any]]:
        """Return the GPUs."""
        found: list[dict[str, Any]] = json.loads((self.root / "state.json").read_text())
        return found

    def save(self, gpus: list[dict[str, Any]]) -> None:
        """Change the GPUs behind the program's back."""
        (self.root / "state.json").write_text(json.dumps(gpus))

    def change(self, gpu: int, **values: Any) -> None:
        """Change values of one GPU."""
        gpus = self.state()
        gpus[gpu] |= values
        self.save(gpus)

    def links(self) -> dict[str, str]:
        """Return the links -> names of the device files that they lead to."""
        return {
            link.name: link.readlink().name for link in (self.root / "dev/gcluster/mig").iterdir()
        }


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, 2)


def cut(node: Node) -> list[list[str]]:
    """Return the profiles of each GPU's slices."""
    return [sorted(one["profile"] for one in gpu["slices"]) for gpu in node.state()]


def test_whole_gpus_are_cut_and_a_second_run_changes_nothing(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 2, "2g_20gb": 1, "3g_40gb": 1})

    first = node.run("apply")

    assert (first.returncode, first.stderr) == (0, "")
    assert cut(node) == [["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]] * 2
    assert node.run("check").returncode == 0
    node.calls("")
    again = node.run("apply")
    assert (again.returncode, again.stdout) == (0, "")
    assert node.calls("-cgi") == []


def test_places_are_counted_from_the_largest_and_lead_to_the_drivers_files(tmp_path: Path) -> None:
    node = Node(tmp_path, 5)
    node.write_slices(5, **{"1g_10gb": 3, "3g_40gb": 1})
    assert node.run("apply").returncode == 0

    links = node.links()

    assert len(links) == 5 * 4 * 2
    # gpu4/gi7/access 606, gpu4/gi7/ci0/access 607 of a real node: place 0 is the 3g, its GI 1.
    assert links["gpu4-1-instance"] == "nvidia-cap606"
    assert links["gpu4-1-compute"] == "nvidia-cap607"
    # 66 and 67, 75 and 76, 84 and 85 of another one's gres.conf.
    names = [links[f"gpu0-{n}-{what}"] for n in (1, 2, 3) for what in ("instance", "compute")]
    assert names == [f"nvidia-cap{n}" for n in (66, 67, 75, 76, 84, 85)]
    lines = (node.root / "run/gcluster/mig-slices").read_text().splitlines()
    assert lines[:2] == ["gpu0-0 MIG-0-1", "gpu0-1 MIG-0-7"]
    assert len(lines) == 5 * 4


def test_an_order_is_found_in_which_all_fit(node: Node) -> None:
    # The 3g made first lies at 0, and of two 2g (0, 2, 4) only one fits behind it.
    node.write_slices(2, **{"2g_20gb": 2, "3g_40gb": 1})

    assert node.run("apply").returncode == 0

    assert cut(node) == [["2g.20gb", "2g.20gb", "3g.40gb"]] * 2
    assert len(node.calls("-cgi")) > 2


def test_what_never_fits_is_refused_with_the_drivers_words(node: Node) -> None:
    node.write_slices(2, **{"3g_40gb": 3})

    failed = node.run("apply")

    assert failed.returncode == 1
    assert "GPU 0 can't be cut into 3g.40gb: 3: " in failed.stderr
    assert "Insufficient Resources" in failed.stderr


@pytest.mark.parametrize("how", ["busy", "held"])
def test_a_gpu_in_use_is_not_cut_again(node: Node, how: str) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    assert node.run("apply").returncode == 0
    before = node.state()[1]["slices"]
    node.write_slices(2, **{"3g_40gb": 2})
    node.change(0, **{how: True})

    failed = node.run("apply")

    assert failed.returncode == 1
    assert "use" in failed.stderr
    assert node.state()[0]["slices"] == before
    assert len(before) == 7


def test_a_gpu_that_is_cut_as_wanted_stays_while_it_is_used(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    assert node.run("apply").returncode == 0
    node.change(0, busy=True)
    node.change(1, slices=[])
    node.calls("")

    assert node.run("apply").returncode == 0

    assert len(node.calls("-cgi")) == 1
    assert cut(node) == [["1g.10gb"] * 7] * 2


def test_daemons_that_hold_gpus_stop_for_it_and_start_again(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    node.run("apply")
    assert [line for line in node.calls("systemctl") if "nvsm" not in line] == [
        "systemctl is-active --quiet nvidia-dcgm.service",
        "systemctl stop nvidia-dcgm.service",
        "systemctl start nvidia-dcgm.service",
        "systemctl --no-block start nvidia-cdi-refresh.service",
    ]


def test_a_gpu_that_does_not_enter_the_mode_is_reported(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    node.change(0, stubborn=True)

    failed = node.run("apply")

    assert failed.returncode == 1
    assert failed.stderr == "GPU 0 isn't in MIG mode: reset it, or restart the node\n"


def test_check_lists_everything_that_differs_and_changes_nothing(node: Node) -> None:
    node.write_slices(3, **{"1g_10gb": 7})
    before = node.state()

    failed = node.run("check")

    assert failed.returncode == 1
    assert failed.stderr == (
        "2 GPUs answer, not 3; GPU 0 is whole, not 1g.10gb: 7; GPU 1 is whole, not 1g.10gb: 7\n"
    )
    assert node.state() == before


def test_check_misses_names_that_went(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    assert node.run("apply").returncode == 0
    (node.root / "run/gcluster/mig-slices").unlink()

    failed = node.run("check")

    assert failed.returncode == 1
    assert "don't name the slices" in failed.stderr
    assert node.run("apply").stdout == "slices are named\n"
    assert node.run("check").returncode == 0


def test_gpus_become_whole_again_slices_before_the_mode(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    assert node.run("apply").returncode == 0

    ended = node.run("end")

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "GPU 0 is whole\nGPU 1 is whole\n"
    assert [(gpu["mig"], gpu["slices"]) for gpu in node.state()] == [(False, [])] * 2
    assert node.links() == {}
    assert node.run("end").stdout == ""


def test_no_gpu_becomes_whole_while_one_is_in_use(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    assert node.run("apply").returncode == 0
    node.change(1, busy=True)

    failed = node.run("end")

    assert failed.stderr == "GPU 1 is in use and stays as it is: drain the node first\n"
    assert cut(node) == [["1g.10gb"] * 7] * 2


def prolog(node: Node, gpus: str) -> str:
    """Return what the task prolog prints of a task with so many GPUs."""
    return subprocess.run(
        ["sh", str(TASK_PROLOG)],
        check=True,
        capture_output=True,
        text=True,
        env={
            "PATH": os.environ["PATH"],
            "SLURM_GPUS_ON_NODE": gpus,
            "GCLUSTER_MIG_SLICES": str(node.root / "run/gcluster/mig-slices"),
            "GCLUSTER_MIG_DEVICES": str(node.root / "dev/gcluster/mig"),
            "GCLUSTER_JOB_SCRATCH": str(node.root / "none"),
        },
    ).stdout


def test_a_task_sees_the_slices_whose_devices_it_may_open(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    assert node.run("apply").returncode == 0
    # The cgroup refuses the others; here they are gone, for root may open everything.
    kept = {"nvidia-cap67", "nvidia-cap211"}
    for device in (node.root / "dev/nvidia-caps").iterdir():
        if device.name not in kept:
            device.unlink()

    assert prolog(node, "2") == "export CUDA_VISIBLE_DEVICES=MIG-0-7,MIG-1-8\n"


def test_where_nothing_keeps_slices_apart_the_prolog_leaves_what_slurm_has_set(node: Node) -> None:
    node.write_slices(2, **{"1g_10gb": 7})
    assert node.run("apply").returncode == 0
    assert prolog(node, "1") == ""


def test_whole_gpus_are_left_to_slurm(node: Node) -> None:
    shutil.rmtree(node.root / "run", ignore_errors=True)
    assert prolog(node, "1") == ""
