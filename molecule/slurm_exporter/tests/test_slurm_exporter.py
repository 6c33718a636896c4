"""The timers write Slurm's figures, and nothing where another controller is active."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from conftest import Play
from testinfra.host import Host

FOLDER = "/var/lib/prometheus/node-exporter"
PARTS = ("jobs", "nodes")


def written(host: Host, part: str) -> str:
    host.check_output(f"systemctl start gcluster-slurm-metrics@{part}.service")
    file = host.file(f"{FOLDER}/gcluster-slurm-{part}.prom")
    return str(file.content_string) if file.exists else ""


@pytest.fixture
def case(host: Host) -> Iterator[Callable[[str], None]]:
    def play(name: str) -> None:
        host.check_output(f"echo {name} > /usr/local/lib/recordings/case")

    yield play
    play("good")


def test_the_timers_run_now_and_after_a_reboot(host: Host) -> None:
    for part in PARTS:
        timer = host.service(f"gcluster-slurm-metrics@{part}.timer")
        assert timer.is_running
        assert timer.is_enabled


def test_nodes_and_jobs_are_written_for_node_exporter(host: Host) -> None:
    assert 'slurm_node_gpus{node="gpu001"} 8\n' in written(host, "nodes")
    assert 'gcluster_slurm_gpus{account="nlp",user="ada"' in written(host, "jobs")


def test_they_are_written_again_by_themselves(host: Host) -> None:
    host.check_output(f"rm -f {FOLDER}/gcluster-slurm-nodes.prom")
    end = time.monotonic() + 40
    while not host.file(f"{FOLDER}/gcluster-slurm-nodes.prom").exists:
        assert time.monotonic() < end
        time.sleep(1)


def test_a_controller_that_is_away_is_reported(host: Host, case: Callable[[str], None]) -> None:
    case("away")
    assert "gcluster_slurm_up 0\n" in written(host, "nodes")
    assert "gcluster_slurm_dbd_up 0\n" in written(host, "nodes")
    assert written(host, "jobs") == ""


def test_where_another_controller_works_nothing_is_reported(
    host: Host, case: Callable[[str], None]
) -> None:
    case("other")
    assert [written(host, part) for part in PARTS] == ["", ""]


def test_what_the_role_leaves_is_gone_when_the_spec_drops_it(host: Host, converge: Play) -> None:
    try:
        assert converge(phases=["remove"]).returncode == 0
        assert not host.file("/etc/gcluster/slurm_exporter").exists
        assert not host.file(f"{FOLDER}/gcluster-slurm-nodes.prom").exists
        assert not host.service("gcluster-slurm-metrics@nodes.timer").is_running
    finally:
        again = converge()
    assert again.returncode == 0, again.printed
