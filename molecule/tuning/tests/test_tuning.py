"""Registers and files are as wanted, after a restart too, and what can't be set is a failure."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host

GOVERNOR = "/srv/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"


def test_bridge_and_adapter_have_their_registers(host: Host) -> None:
    devices, words = "/srv/sys/bus/pci/devices", "od -A n -t x1 -N 2 -j"
    bridge = host.check_output(f"{words} 334 {devices}/0000:15:01.0/config")
    adapter = host.check_output(f"{words} 104 {devices}/0000:18:00.0/config")
    assert (bridge.split(), adapter.split()) == (["00", "00"], ["36", "59"])


def test_the_unit_tunes_the_machine_again_at_boot(host: Host) -> None:
    host.check_output(f"echo powersave > {GOVERNOR}")
    host.check_output("systemctl start gcluster-tuning")
    assert host.file(GOVERNOR).content_string.startswith("performance")
    assert host.service("gcluster-tuning").is_enabled


def test_what_differs_is_named_and_set_by_the_next_converge(host: Host, converge: Play) -> None:
    host.check_output("echo 1 > /srv/proc/sys/kernel/numa_balancing")
    run = converge(phases=["verify"])
    assert run.returncode != 0
    assert "not pages stay on their NUMA node" in run.printed
    assert converge().returncode == 0
