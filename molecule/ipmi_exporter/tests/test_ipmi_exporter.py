"""What a BMC says of its power lies where node exporter reads; the BMC is a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from conftest import Play
from testinfra.host import Host

FILE = "/var/lib/prometheus/node-exporter/gcluster-ipmi.prom"
PLAYER = "/usr/local/bin/ipmi-dcmi"


def written(host: Host) -> list[str]:
    host.check_output("systemctl start gcluster-ipmi-metrics.service")
    return str(host.file(FILE).content_string).splitlines()


@pytest.fixture
def case(host: Host) -> Iterator[Callable[[str], None]]:
    def play(name: str) -> None:
        host.check_output(f"echo {name} > /usr/local/lib/recordings/case")

    yield play
    play("good")


def test_the_timer_runs_now_and_after_a_reboot(host: Host) -> None:
    timer = host.service("gcluster-ipmi-metrics.timer")
    assert timer.is_running
    assert timer.is_enabled


def test_the_power_that_the_bmc_measures_is_written(host: Host) -> None:
    assert written(host) == [
        'ipmi_up{collector="dcmi"} 1',
        "ipmi_dcmi_power_consumption_watts 4821",
    ]
    assert oct(host.file(FILE).mode) == "0o644"


def test_a_bmc_that_measures_no_power_has_no_figure_of_it(
    host: Host, case: Callable[[str], None]
) -> None:
    case("not-measured")
    assert written(host) == ['ipmi_up{collector="dcmi"} 1']


def test_a_bmc_without_dcmi_is_reported(host: Host, case: Callable[[str], None]) -> None:
    case("no-dcmi")
    assert written(host) == ['ipmi_up{collector="dcmi"} 0']


def test_freeipmi_itself_finds_no_bmc_here_and_that_is_reported(host: Host) -> None:
    host.check_output(f"mv {PLAYER} {PLAYER}.away")
    try:
        assert host.run("ipmi-dcmi --driver-type=OPENIPMI --get-system-power-statistics").rc == 1
        assert written(host) == ['ipmi_up{collector="dcmi"} 0']
    finally:
        host.check_output(f"mv {PLAYER}.away {PLAYER}")


def test_freeipmi_brings_no_service(host: Host) -> None:
    units = host.check_output("systemctl list-unit-files --no-legend '*ipmi*' '*bmc*'").splitlines()
    assert {line.split()[0] for line in units} == {
        "gcluster-ipmi-metrics.service",
        "gcluster-ipmi-metrics.timer",
    }


def test_remove_stops_the_timer_and_deletes_what_it_wrote(host: Host, converge: Play) -> None:
    try:
        assert converge(phases=["remove"]).returncode == 0
        assert not host.file(FILE).exists
        assert not host.file("/etc/systemd/system/gcluster-ipmi-metrics.timer").exists
    finally:
        again = converge()
    assert again.returncode == 0, again.printed
