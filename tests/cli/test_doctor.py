"""`gcluster doctor`: what is missing, the command, and the exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gcluster.cli.inspect import doctor
from gcluster.lifecycle.planning.preflight.doctor import DEBIAN_12, PROGRAMS, Machine

WELL = Machine(
    distribution=DEBIAN_12,
    programs=frozenset(PROGRAMS),
    docker_answers=False,
    debian_keys=True,
    root=False,
    pure_cgroup_v2=True,
    inotify_instances=1024,
    free_disk_gib=50.0,
    free_memory_gib=16.0,
    python=(3, 11),
    is_installed=True,
)
ROOT = replace(WELL, root=True)
BARE = replace(WELL, programs=frozenset({"ansible-playbook"}))


@pytest.fixture
def on(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the verb on a described machine."""

    def invoke(machine: Machine, *words: str) -> Any:
        monkeypatch.setattr(doctor, "this_machine", lambda: machine)
        return run("doctor", *words)

    return invoke


def test_a_machine_that_has_everything_is_well(on: Callable[..., Any]) -> None:
    done = on(ROOT)
    assert done.exit_code == 0
    assert done.stdout.endswith("\nlocal clusters can be brought up here\n")
    assert "install:" not in done.stdout


def test_what_is_missing_is_installed_by_one_line(on: Callable[..., Any]) -> None:
    done = on(BARE)
    assert done.exit_code == 1
    assert done.stdout.count("apt-get install") == 1
    assert "sudo apt-get install -y --no-install-recommends podman netavark" in done.stdout
    assert "can't be brought up here: podman, netavark" in done.stdout


def test_another_distribution_gets_names_and_no_command(on: Callable[..., Any]) -> None:
    done = on(replace(BARE, distribution="fedora-43"))
    assert "apt-get" not in done.stdout
    assert "install these (Debian's names; this is fedora-43): podman" in done.stdout


def test_notes_block_nothing(on: Callable[..., Any]) -> None:
    done = on(replace(ROOT, inotify_instances=128))
    assert done.exit_code == 0
    assert "worth a look: inotify" in done.stdout
    assert "sudo sysctl fs.inotify.max_user_instances=1024" in done.stdout


def test_go_is_named_with_what_it_is_for_and_how_long_that_takes(on: Callable[..., Any]) -> None:
    """The first `up` with Kubernetes may compile for minutes: doctor says so before it does."""
    for machine, mark in ((ROOT, "✔"), (replace(ROOT, programs=ROOT.programs - {"go"}), "?")):
        done = on(machine)
        told = " ".join(done.stdout.split())
        (row,) = re.findall(rf"{re.escape(mark)} go (.*?) [✔✘?] ", told)
        assert done.exit_code == 0
        assert "compiles what local nodes need of Kubernetes" in row
        assert re.search(r"once, in 1 to \d+ min on 2 cores", row)
        assert ("worth a look: go" in told) == (mark == "?")


def test_a_go_that_is_missing_blocks_nothing_since_a_container_compiles_then(
    on: Callable[..., Any],
) -> None:
    done = on(replace(ROOT, programs=ROOT.programs - {"go"}), "--format", "json")
    (go,) = [need for need in json.loads(done.stdout)["needs"] if need["name"] == "go"]
    assert (done.exit_code, go["present"], go["required"]) == (0, False, False)
    assert "else a container does" in go["why"]


def test_json_has_the_same(on: Callable[..., Any]) -> None:
    done = on(BARE, "--format", "json")
    answer = json.loads(done.stdout)
    assert done.exit_code == 1
    assert answer["ok"] is False
    assert answer["packages"][0] == "podman"
    assert answer["install"].startswith("sudo apt-get update")
    assert {need["name"] for need in answer["needs"] if not need["present"]} >= {"podman", "root"}
