"""containerd runs with what the role wrote, and takes up what changed."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host


def test_the_daemon_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("containerd")
    assert service.is_running
    assert service.is_enabled


def test_the_running_daemon_has_the_cgroup_driver_of_this_host(host: Host) -> None:
    is_unified = host.file("/sys/fs/cgroup/cgroup.controllers").exists
    merged = host.check_output("containerd config dump | grep SystemdCgroup")
    assert merged.split()[-1] == ("true" if is_unified else "false")


def test_pods_may_pin_memory_as_rdma_does(host: Host) -> None:
    shown = host.check_output("systemctl show --property=LimitMEMLOCK --value containerd")
    assert shown == "infinity"


def test_a_registry_is_queried_at_its_mirror(host: Host) -> None:
    hosts = host.file("/etc/containerd/certs.d/registry.example.com/hosts.toml").content_string
    assert '[host."https://mirror.example.com"]' in hosts


def test_the_running_daemon_has_the_runtime_that_was_requested(host: Host) -> None:
    merged = host.check_output("containerd config dump")
    at = merged.index(".containerd.runtimes.plain]")
    assert 'runtime_type = "io.containerd.runc.v2"' in merged[at : at + 900]


def test_a_runtime_without_its_program_is_named(converge: Play) -> None:
    requested = {"containerd_runtimes": {"kata": "io.containerd.kata.v2"}}
    answer = converge(phases=["verify"], **requested)
    assert answer.returncode != 0
    assert "there is no containerd-shim-kata-v2 in the PATH" in answer.stdout


def test_a_daemon_that_is_older_than_its_file_is_started_again(host: Host, converge: Play) -> None:
    before = host.check_output("systemctl show --property=MainPID --value containerd")
    host.check_output("touch /etc/containerd/config.toml")  # as where a run was killed in between
    assert converge(phases=["configure"]).returncode == 0
    assert host.check_output("systemctl show --property=MainPID --value containerd") != before
