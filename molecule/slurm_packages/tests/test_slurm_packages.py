"""Packages that this node has built come from its own disk, and the build leaves nothing behind."""

from __future__ import annotations

from testinfra.host import Host

FOLDER = "/var/lib/gcluster/slurm-packages"
DEBIANS = 64030
"""Number that Debian gives to user slurm."""


def test_apt_has_the_version_from_the_node_s_own_disk(host: Host) -> None:
    offered = host.check_output("apt-cache policy slurm-smd-client")
    assert "Candidate: 99.11.1-1" in offered
    assert f"file:{FOLDER}" in offered


def test_the_packages_install(host: Host) -> None:
    simulated = host.check_output("apt-get install --simulate -q slurm-smd-client=99.11.1*")
    assert "Inst slurm-smd (99.11.1-1" in simulated


def test_slurm_s_users_and_folders_are_there(host: Host) -> None:
    assert host.user("slurm").uid == DEBIANS
    assert host.user("slurmrestd").exists
    assert host.file("/var/lib/slurm/slurmctld").user == "slurm"


def test_what_only_the_build_needed_is_gone(host: Host) -> None:
    assert host.run("dpkg-query --show debhelper devscripts equivs").rc != 0
    log = host.check_output("cat /srv/gcluster/package-mirror/slurm/*/debian-13-x86_64/log")
    assert "== built 2 packages" in log
    assert "not taken away" not in log
