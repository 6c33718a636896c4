"""The controller runs jobs on a node that claims another machine's resources."""

from __future__ import annotations

from testinfra.host import Host

testinfra_hosts = ["ansible://head01"]


def test_the_node_is_idle_with_the_cpus_and_gpus_claimed_for_it(host: Host) -> None:
    line = host.check_output("sinfo --noheader --Node --format '%N %T %c %G'")
    node, state, cpus, gpus = line.split()
    assert (node, state, cpus) == ("gpu001", "idle", "192")
    # "(S:0-1)" follows once slurmctld has the GPUs' sockets.
    assert gpus.removesuffix("(S:0-1)") == "gpu:h100:8"


def test_a_job_has_exactly_the_gpus_it_requested(host: Host) -> None:
    seen = host.check_output(
        "srun --chdir=/ --gres=gpu:h100:3 sh -c 'hostname; echo $CUDA_VISIBLE_DEVICES'"
    )
    assert seen.split() == ["gpu001", "0,1,2"]


def test_jobs_that_are_bound_to_their_gpus_get_cores_of_their_socket(host: Host) -> None:
    """GPUs 0 to 3 hang on the first socket, 4 to 7 on the second, whose CPUs begin with 96."""
    bound = "--chdir=/ --output=/dev/null --gres=gpu:h100:4 --gres-flags=enforce-binding"
    submit = f"sbatch --parsable {bound} --cpus-per-task=8 --mem=1G --wrap='sleep 300'"
    jobs = [host.check_output(submit) for _ in range(2)]
    try:
        running = f"squeue --noheader --states=running --jobs={','.join(jobs)} | wc -l"
        host.check_output(f"timeout 60 sh -c 'until [ $({running}) = 2 ]; do sleep 0.2; done'")
        got = {}
        for job in jobs:
            details = host.check_output(f"scontrol --details show job {job} | grep CPU_IDs=")
            gpus = details.split("IDX:")[1].split(")")[0]
            got[gpus] = int(details.split("CPU_IDs=")[1].split("-")[0])
        assert got == {"0-3": 0, "4-7": 96}
    finally:
        host.check_output(f"scancel {' '.join(jobs)}")


def test_a_job_for_more_gpus_than_there_are_is_refused(host: Host) -> None:
    assert host.run("srun --chdir=/ --gres=gpu:h100:9 true").rc != 0


def test_the_daemon_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("slurmctld")
    assert service.is_running
    assert service.is_enabled
