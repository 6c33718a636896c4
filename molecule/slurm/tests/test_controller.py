"""The controller runs jobs on a node that claims the machine it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testinfra.host import Host

testinfra_hosts = ["ansible://head01"]


def test_the_node_is_idle_with_the_cpus_and_gpus_claimed_for_it(host: Host) -> None:
    line = host.check_output("sinfo --noheader --Node --format '%N %T %c %G'")
    assert line.split() == ["gpu001", "idle", "192", "gpu:h100:8"]


def test_a_job_sees_exactly_the_gpus_it_asked_for(host: Host) -> None:
    seen = host.check_output(
        "srun --chdir=/ --gres=gpu:h100:3 sh -c 'hostname; echo $CUDA_VISIBLE_DEVICES'"
    )
    assert seen.split() == ["gpu001", "0,1,2"]


def test_a_job_for_more_gpus_than_there_are_is_refused(host: Host) -> None:
    assert host.run("srun --chdir=/ --gres=gpu:h100:9 true").rc != 0


def test_the_daemon_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("slurmctld")
    assert service.is_running
    assert service.is_enabled
