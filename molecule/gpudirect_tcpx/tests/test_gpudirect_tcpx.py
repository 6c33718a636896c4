"""The daemon as a unit that is ready when it is active, images by digest, and a verify of both."""

from __future__ import annotations

import pytest
from conftest import Play, Recorded, Verified
from testinfra.host import Host

UNIT = "/etc/systemd/system/gcluster-rxdm.service"
DIGEST = "sha256:8d9e10fd589a34ab8a0aa64f7e70ad075c8f1c69bea176350f8d211367697e3d"


def test_the_daemon_runs_from_its_digest_and_comes_back_at_boot(host: Host) -> None:
    assert host.service("gcluster-rxdm").is_running
    assert host.service("gcluster-rxdm").is_enabled
    unit = host.file(UNIT).content_string
    assert f"tcpgpudmarxd-dev@{DIGEST} --num_hops=2 --num_nics=8" in unit
    assert "--pull=never" in unit


def test_the_module_is_held_and_loaded_at_boot(host: Host) -> None:
    assert "dmabuf-import-helper" in host.check_output("apt-mark showhold").split()
    assert host.file("/etc/modules-load.d/gcluster-tcpxo.conf").contains("^import-helper$")


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("no-windows", "0 device windows are mounted, not 8"),
        ("small-mtu", "7 NICs are up with an MTU of 8244, not 8"),
        ("other-image", "the receive daemon runs from"),
        ("no-daemon", "no receive daemon runs"),
    ],
)
def test_verify_fails_on_a_machine_that_is_not_as_wanted(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.stdout


def test_an_image_without_a_digest_is_refused_with_the_line_to_write(converge: Play) -> None:
    run = converge(digest="", phases=["preflight"])
    assert run.returncode != 0
    assert "software.sources.google-gpudirect.checksums" in run.stdout


def test_an_image_that_can_t_be_fetched_is_reported_and_the_node_stays_as_it_was(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    with recorded("not-pulled"):
        run = converge(phases=["configure"])
    assert run.returncode != 0
    assert "can't be fetched: Error response from daemon: manifest unknown" in run.stdout
    assert host.service("gcluster-rxdm").is_running
    assert converge().returncode == 0
