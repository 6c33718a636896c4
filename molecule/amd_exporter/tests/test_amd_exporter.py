"""AMD's exporter listens on the loopback address; its figures lie where node exporter reads."""

from __future__ import annotations

from testinfra.host import Host

FILE = "/var/lib/prometheus/node-exporter/gcluster-amd.prom"


def written(host: Host) -> list[str]:
    host.run("systemctl start gcluster-amd-metrics.service")
    return str(host.file(FILE).content_string).splitlines()


def test_all_of_it_runs_now_and_after_a_reboot(host: Host) -> None:
    for unit in ("gpuagent", "amd-metrics-exporter", "gcluster-amd-metrics.timer"):
        assert host.service(unit).is_running
        assert host.service(unit).is_enabled


def test_the_exporter_listens_on_the_loopback_address_alone(host: Host) -> None:
    listening = [line.split()[3] for line in host.check_output("ss -Hltn").splitlines()]
    assert [one for one in listening if one.endswith(":9402")] == ["127.0.0.1:9402"]


def test_figures_are_written_with_the_job_of_a_gpu(host: Host) -> None:
    lines = written(host)
    assert "gcluster_amd_exporter_up 1" in lines
    assert 'gpu_gfx_activity{gpu="2",hpc_job="7"} 20' in lines
    assert 'gpu_gfx_activity{gpu="3"} 30' in lines
    assert 'gpu_junction_temperature{gpu="2"} 20' in lines


def test_a_stopped_exporter_is_a_figure_too(host: Host) -> None:
    host.check_output("systemctl stop amd-metrics-exporter")
    assert written(host) == ["gcluster_amd_exporter_up 0"]
    host.check_output("systemctl start amd-metrics-exporter")
