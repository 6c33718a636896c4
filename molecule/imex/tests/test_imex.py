"""A node has its own NVLink domain, and IMEX restarts when that changes, not under a job."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host

NODES = "/etc/nvidia-imex/nodes_config.cfg"


def started(host: Host) -> str:
    return host.check_output("systemctl show --property=MainPID --value nvidia-imex")


def test_the_list_has_the_nodes_of_its_own_domain_alone(host: Host) -> None:
    assert host.file(NODES).content_string == "10.0.0.1\n10.0.0.2\n"
    assert host.service("nvidia-imex").is_running
    assert host.service("nvidia-imex").is_enabled
    assert host.file("/etc/modprobe.d/gcluster-imex.conf").contains("NVreg_CreateImexChannel0=1")


def test_another_list_restarts_it_but_never_under_a_job(host: Host, converge: Play) -> None:
    before = started(host)
    job = "cp /bin/sleep /opt/slurmstepd && systemd-run --unit=job /opt/slurmstepd infinity"
    host.check_output(job)
    host.check_output(f"sleep 1; touch {NODES}")
    try:
        refused = converge(phases=["join"])
    finally:
        host.check_output("systemctl stop job")
    assert refused.returncode != 0
    assert "a job runs here: not changed: nvidia-imex knows its nodes" in refused.printed
    assert started(host) == before
    assert converge().returncode == 0
    assert started(host) != before
