"""What a machine lacks, and the one line that installs it."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gcluster.lifecycle.planning.preflight import doctor
from gcluster.lifecycle.planning.preflight.doctor import (
    DEBIAN_12,
    DEBIAN_13,
    KNOWN,
    PROGRAMS,
    UBUNTU_24,
    Machine,
    install_command,
    missing,
    needs,
    packages_for,
    this_machine,
)

COMPLETE = Machine(
    distribution=DEBIAN_12,
    programs=frozenset(PROGRAMS),
    docker_answers=False,
    debian_keys=True,
    root=True,
    pure_cgroup_v2=False,
    inotify_instances=1024,
    free_disk_gib=50.0,
    free_memory_gib=16.0,
    python=(3, 11),
    is_installed=True,
)
BARE = replace(COMPLETE, programs=frozenset(), debian_keys=False, is_installed=False)


def _without(*programs: str) -> Machine:
    return replace(COMPLETE, programs=COMPLETE.programs - set(programs))


def _names(machine: Machine) -> list[str]:
    return [need.name for need in missing(machine)]


def test_a_complete_machine_lacks_nothing() -> None:
    assert missing(COMPLETE) == []


@pytest.mark.parametrize("name", sorted({n.name for n in needs(COMPLETE)} & set(PROGRAMS)))
def test_each_program_that_is_needed_is_missed_by_its_name(name: str) -> None:
    assert name in _names(_without(name))


@pytest.mark.parametrize("distribution", KNOWN)
def test_what_a_bare_machine_lacks_can_all_be_installed(distribution: str) -> None:
    machine = replace(BARE, distribution=distribution)
    assert all(need.packages[distribution] for need in missing(machine))


def test_a_bare_debian_12_gets_everything_in_one_line() -> None:
    packages = packages_for(missing(BARE), DEBIAN_12)
    assert packages == (
        "podman",
        "netavark",
        "aardvark-dns",
        "iptables",
        "runc",
        "mmdebstrap",
        "gpg",
        "debian-archive-keyring",
        "openssh-client",
    )
    assert install_command(packages, root=True) == (
        "apt-get update && apt-get install -y --no-install-recommends " + " ".join(packages)
    )


def test_who_is_not_root_gets_sudo_in_front_of_both_commands() -> None:
    command = install_command(("podman",), root=False)
    assert command.startswith("sudo apt-get update && sudo apt-get install ")


def test_nothing_missing_is_no_command() -> None:
    assert install_command((), root=True) == ""


def test_runc_is_needed_only_where_cgroups_are_not_pure_v2() -> None:
    assert _names(_without("runc")) == ["runc"]
    assert _names(replace(_without("runc"), pure_cgroup_v2=True)) == []
    assert _names(replace(_without("runc", "crun"), pure_cgroup_v2=True)) == ["crun"]


def test_docker_serves_where_podman_is_absent_and_docker_can() -> None:
    podman = ("podman", "netavark", "aardvark-dns", "iptables", "crun", "runc")
    machine = replace(_without(*podman), docker_answers=True, pure_cgroup_v2=True, root=False)
    assert missing(machine) == []
    assert "podman" in _names(replace(machine, docker_answers=False))
    assert "podman" in _names(replace(machine, pure_cgroup_v2=False))


def test_newer_netavark_needs_nftables_too() -> None:
    assert _names(replace(_without("nft"), distribution=DEBIAN_13)) == ["nft"]
    assert _names(replace(_without("nft"), distribution=UBUNTU_24)) == []


def test_few_inotify_instances_and_little_memory_are_reported_but_block_nothing() -> None:
    machine = replace(COMPLETE, inotify_instances=128, free_memory_gib=0.2)
    found = missing(machine)
    assert [(need.name, need.required) for need in found] == [("memory", False), ("inotify", False)]
    assert packages_for(found, machine.distribution) == ()


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (replace(COMPLETE, free_disk_gib=0.5), "disk"),
        (replace(COMPLETE, root=False), "root"),
        (replace(COMPLETE, python=(3, 10)), "python"),
        (replace(COMPLETE, debian_keys=False), "debian-archive-keyring"),
    ],
)
def test_what_up_cannot_do_without_is_required(machine: Machine, name: str) -> None:
    assert [(need.name, need.required) for need in missing(machine)] == [(name, True)]


def test_an_unknown_distribution_gets_the_names_of_debian() -> None:
    found = missing(replace(BARE, distribution="fedora-43"))
    assert packages_for(found, "fedora-43")[0] == "podman"


def test_this_machine_can_be_inspected() -> None:
    machine = this_machine()
    assert machine.python == sys.version_info[:2]
    assert machine.is_installed
    assert machine.free_disk_gib > 0
    assert machine.free_memory_gib > 0
    assert machine.programs <= set(PROGRAMS)


def test_the_file_imports_only_the_standard_library() -> None:
    tree = ast.parse(Path(doctor.__file__).read_text(encoding="utf-8"))
    imported = {
        (node.module or "" if isinstance(node, ast.ImportFrom) else alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported <= sys.stdlib_module_names


def test_a_script_can_run_the_file_before_anything_is_installed(tmp_path: Path) -> None:
    """PATH is empty, site packages are off: what `.ci/machine` meets on a fresh machine."""
    done = subprocess.run(
        [sys.executable, "-S", "-I", doctor.__file__, "--packages"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stderr == ""
    for line in done.stdout.splitlines():
        package, why = line.split(maxsplit=1)
        assert package.isascii()
        assert why
