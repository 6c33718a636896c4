"""What a node does with its disks: which it takes, which it leaves alone, and after each start.

The disks, blkid, mdadm, mkfs and mount are doubles that keep their state in a file; the role's
scenario formats real loop devices.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/disks/files/libexec/node-disks.py"
LOCAL, EBS = "Amazon EC2 NVMe Instance Storage", "Amazon Elastic Block Store"
DOUBLE = """#!{python}
import json, os, sys
from pathlib import Path
home = Path({home!r})
state = json.loads((home / "state.json").read_text())
tool, args = Path(sys.argv[0]).name, sys.argv[1:]
state["calls"].append([tool, *args])
code, dev = 0, args[-1] if args else ""
if tool == "blkid":
    found = state["disks"].get(Path(dev).name, {{}})
    print("\\n".join(f"{{k}}={{v}}" for k, v in found.items()))
    code = 0 if found else 2
elif tool == "mdadm" and args[0] in ("--create", "--assemble"):
    name = Path(args[1]).name
    members = [Path(a).name for a in args[2:] if not a.startswith("--")]
    if args[0] == "--assemble" and len(members) != state["disks"].get("md127.size", 0):
        code = 1
    else:
        for member in members:
            if args[0] == "--create":
                label = {{"TYPE": "linux_raid_member", "LABEL": f"any:{{name}}"}}
                state["disks"][member] = label
            folder = home / "sys/class/block" / member / "holders/md127"
            folder.mkdir(parents=True, exist_ok=True)
        state["disks"]["md127.size"] = len(members)
elif tool == "mdadm":
    state["disks"].pop(Path(dev).name, None)
elif tool.startswith("mkfs."):
    state["disks"][Path(dev).name] = {{"TYPE": tool[5:], "LABEL": args[args.index("-L") + 1]}}
elif tool == "mount" and args[0] == "-o":
    with open(home / "mounts", "a") as file:
        file.write(f"{{args[-2]}} {{args[-1]}} xfs rw 0 0\\n")
(home / "state.json").write_text(json.dumps(state))
sys.exit(code)
"""


class Node:
    """A node whose disks are files and whose tools are doubles."""

    def __init__(self, home: Path, **disks: str) -> None:
        """Have these disks: name -> model; all are blank."""
        self.home = home
        (home / "bin").mkdir()
        for tool in ("blkid", "mdadm", "mkfs.xfs", "mount", "umount", "udevadm", "xfs_growfs"):
            path = home / "bin" / tool
            path.write_text(DOUBLE.format(python=sys.executable, home=str(home)))
            path.chmod(0o755)
        (home / "dev").mkdir()
        for name, model in disks.items():
            block = home / "sys/class/block" / name
            (block / "device").mkdir(parents=True)
            (block / "device/model").write_text(f"{model}          \n")
            (home / "dev" / name).touch()
        self.write({}, [])
        (home / "mounts").touch()

    def write(self, disks: dict[str, Any], calls: list[list[str]]) -> None:
        text = json.dumps({"disks": disks, "calls": calls})
        (self.home / "state.json").write_text(text)

    @property
    def disks(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / "state.json").read_text())["disks"]
        return found

    def called(self, tool: str) -> list[list[str]]:
        calls = json.loads((self.home / "state.json").read_text())["calls"]
        return [call for call in calls if call[0] == tool]

    def starts(self, *, empty: bool) -> None:
        """Boot: nothing is mounted or assembled; `empty` after the machine was stopped."""
        (self.home / "mounts").write_text("")
        for held in self.home.glob("sys/class/block/*/holders/*"):
            held.rmdir()
        self.write({} if empty else self.disks, [])

    def run(self, verb: str, **more: Any) -> subprocess.CompletedProcess[str]:
        scratch = {
            "name": "scratch",
            "path": str(self.home / "scratch"),
            "kind": "scratch",
            "label": "gc-scratch",
            "filesystem": "xfs",
            "models": [LOCAL],
            "devices": [],
            "options": ["noatime"],
            "format": True,
            "grows": False,
        }
        settings = self.home / "disks.json"
        settings.write_text(json.dumps({"file_systems": [{**scratch, **more}]}))
        return subprocess.run(
            [sys.executable, str(PROGRAM), verb, str(settings)],
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
                "GCLUSTER_SYS": str(self.home / "sys"),
                "GCLUSTER_DEV": str(self.home / "dev"),
                "GCLUSTER_RUN": str(self.home / "run"),
                "GCLUSTER_MOUNTS": str(self.home / "mounts"),
                "GCLUSTER_DISK_WAIT": "0",
            },
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, nvme0n1=EBS, nvme1n1=LOCAL, nvme2n1=LOCAL)


def test_local_disks_are_known_by_their_model_and_striped(node: Node) -> None:
    planned = node.run("plan")
    assert planned.returncode == 0, planned.stderr
    assert "array gc-scratch of 2 disks is made" in planned.stdout
    assert not node.called("mkfs.xfs")
    done = node.run("up")
    assert done.returncode == 0, done.stderr
    (created,) = [call for call in node.called("mdadm") if "--create" in call]
    assert created[-2:] == [str(node.home / "dev/nvme1n1"), str(node.home / "dev/nvme2n1")]
    assert "--level=0" in created
    assert [call[-1] for call in node.called("mkfs.xfs")] == [str(node.home / "dev/md127")]
    assert (node.home / "scratch").stat().st_mode & 0o1777 == 0o1777
    assert node.run("verify").returncode == 0


def test_a_second_run_changes_nothing(node: Node) -> None:
    node.run("up")
    again = node.run("up")
    assert (again.returncode, again.stdout) == (0, "")


def test_one_disk_needs_no_array(tmp_path: Path) -> None:
    node = Node(tmp_path, nvme0n1=EBS, nvme1n1=LOCAL)
    assert node.run("up").returncode == 0
    assert not node.called("mdadm")
    assert node.disks["nvme1n1"] == {"TYPE": "xfs", "LABEL": "gc-scratch"}


def test_after_a_restart_it_is_mounted_again_with_what_is_on_it(node: Node) -> None:
    node.run("up")
    node.starts(empty=False)
    done = node.run("up")
    assert done.returncode == 0, done.stderr
    assert "is assembled" in done.stdout
    assert not node.called("mkfs.xfs")


def test_after_a_stop_the_empty_disks_are_recreated(node: Node) -> None:
    node.run("up")
    node.starts(empty=True)
    assert node.run("verify").returncode == 1
    assert node.run("up").returncode == 0
    assert node.called("mkfs.xfs")


def test_an_array_that_lost_a_disk_is_recreated(node: Node) -> None:
    node.run("up")
    node.starts(empty=False)
    state = node.disks
    del state["nvme2n1"]
    node.write(state, [])
    assert node.run("up").returncode == 0
    assert [c for c in node.called("mdadm") if "--create" in c]


@pytest.mark.parametrize(
    "found", [{"TYPE": "ext4", "LABEL": "results"}, {"TYPE": "LVM2_member"}, {"PTTYPE": "gpt"}]
)
def test_a_disk_with_something_on_it_is_left_alone_and_named(
    node: Node, found: dict[str, str]
) -> None:
    node.write({"nvme2n1": found}, [])
    done = node.run("up")
    assert done.returncode == 1
    assert "nvme2n1 holds" in done.stderr
    assert not node.called("mkfs.xfs")
    assert node.disks["nvme2n1"] == found


def test_a_disk_with_partitions_is_left_alone(node: Node) -> None:
    (node.home / "sys/class/block/nvme2n1/nvme2n1p1").mkdir()
    done = node.run("up")
    assert done.returncode == 1
    assert "has partitions (nvme2n1p1)" in done.stderr


def test_nothing_is_formatted_without_the_word(node: Node) -> None:
    done = node.run("up", format=False)
    assert done.returncode == 1
    assert "doesn't allow it" in done.stderr
    assert not node.called("mkfs.xfs")


def test_without_a_cloud_s_rule_the_free_disks_are_taken_and_no_others(node: Node) -> None:
    node.write({"nvme0n1": {"PTTYPE": "gpt"}}, [])
    assert node.run("up", models=[]).returncode == 0
    (created,) = [call for call in node.called("mdadm") if "--create" in call]
    assert "nvme0n1" not in " ".join(created)


def test_a_data_disk_is_formatted_once_and_a_foreign_one_never(node: Node) -> None:
    data = {
        "kind": "data",
        "name": "home",
        "label": "gc-home",
        "path": str(node.home / "home"),
        "devices": [str(node.home / "dev/gone"), str(node.home / "dev/nvme0n1")],
    }
    assert node.run("up", **data).returncode == 0
    node.starts(empty=False)
    assert node.run("up", **data, grows=True).returncode == 0
    assert not node.called("mkfs.xfs")
    assert node.called("xfs_growfs")
    node.starts(empty=False)
    node.write({"nvme0n1": {"TYPE": "xfs", "LABEL": "gc-other"}}, [])
    assert node.run("up", **data).returncode == 1
    missing = node.run("up", **{**data, "devices": ["/nowhere"]})
    assert "no disk appeared at /nowhere" in missing.stderr


def test_homes_that_were_made_before_the_disk_was_there_go_onto_it(node: Node) -> None:
    home = node.home / "home"
    (home / "ada").mkdir(parents=True)
    (home / "ada/.bashrc").write_text("new")
    (home / "bob").mkdir()
    on_disk = node.home / "run/gc-home"
    (on_disk / "ada").mkdir(parents=True)
    (on_disk / "ada/.bashrc").write_text("hers")
    data = {"kind": "data", "name": "home", "label": "gc-home", "path": str(home)}
    done = node.run("up", **data, devices=[str(node.home / "dev/nvme0n1")])
    assert done.returncode == 0, done.stderr
    assert (on_disk / "ada/.bashrc").read_text() == "hers"
    assert (on_disk / "bob").is_dir()
