"""The node is configless: its configuration comes from the controller."""

from __future__ import annotations

from testinfra.host import Host

testinfra_hosts = ["ansible://gpu001"]


def test_the_node_holds_no_configuration_of_its_own(host: Host) -> None:
    assert not host.file("/etc/slurm/slurm.conf").exists
    assert host.file("/run/slurm/conf/slurm.conf").contains("^ClusterName=molecule$")


def test_the_simulated_gpus_are_character_devices(host: Host) -> None:
    assert (
        host.check_output("stat --format %F /dev/nvidia[0-7]").splitlines()
        == ["character special file"] * 8
    )


def test_the_daemon_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("slurmd")
    assert service.is_running
    assert service.is_enabled
