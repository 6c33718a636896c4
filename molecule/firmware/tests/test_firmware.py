"""Firmware is reported, and updated only when named, on a drained node, with the right image."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Play
from testinfra.host import Host

IMAGE = b"a double's image\nversion=HGX-23.11-1-rc1 \n"
SHA256 = hashlib.sha256(IMAGE).hexdigest()
BASEBOARD = "HGX_FW_BMC_0"


@pytest.fixture
def update(converge: Play, host: Host) -> Callable[..., str]:
    """Return a function that names a target and returns what Ansible printed; good state after."""
    image = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "hgx.fwpkg"
    image.write_bytes(IMAGE)

    def run(target: str, *, bmc: dict[str, object] | None = None, **variables: object) -> str:
        host.check_output("printf %%s %s >/opt/bmc/state.json", json.dumps(bmc or {}))
        played = converge(phases=["update"], targets=[target], **{"sha256": SHA256, **variables})
        host.check_output("echo '{}' >/opt/bmc/state.json")
        return played.printed

    return run


def report(host: Host) -> dict[str, object]:
    return json.loads(host.file("/run/gcluster-firmware.json").content_string)


def test_the_report_reports_what_the_bmc_lists_and_what_differs(host: Host) -> None:
    printed = report(host)
    assert printed["bmc"]["NIC_0"] == "28.39.1002"
    assert printed["differs"][0] == "HGX_FW_BMC_0: has HGX-22.10-1-rc67, wanted HGX-23.11-1-rc1"


def test_nothing_is_updated_that_is_not_named(converge: Play, host: Host) -> None:
    played = converge(phases=["update", "verify"])
    assert played.returncode == 0
    assert "changed=0" in played.stdout
    assert report(host)["bmc"][BASEBOARD] == "HGX-22.10-1-rc67"


@pytest.mark.parametrize(
    ("bmc", "variables", "why"),
    [
        ({}, {"sha256": "0" * 64}, "SHA-256 is"),
        ({"power": "Off"}, {}, "HGX_Baseboard_0 is Off; the update needs it On"),
        ({"task": "Exception"}, {}, "the update failed (Exception): The image's signature"),
        ({"service": False}, {}, "the BMC's update service is off"),
        ({"elsewhere": True}, {}, "sends us to another host: 192.0.2.66"),
        ({}, {"credentials": "/etc/hostname"}, "the BMC's credentials can't be read"),
    ],
)
def test_an_update_that_can_not_be_right_is_refused_and_leaves_what_was_there(
    update: Callable[..., str],
    host: Host,
    bmc: dict[str, object],
    variables: dict[str, object],
    why: str,
) -> None:
    assert why in update(BASEBOARD, bmc=bmc, **variables)
    assert report(host)["bmc"][BASEBOARD] == "HGX-22.10-1-rc67"


def test_a_part_that_must_not_be_updated_is_refused(update: Callable[..., str]) -> None:
    assert "no version is wanted for Root_of_Trust" in update("Root_of_Trust")


@pytest.mark.parametrize("state", ["IDLE", "MIXED+DRAIN"])
def test_a_node_that_is_not_drained_is_left_alone(
    update: Callable[..., str], host: Host, state: str
) -> None:
    host.check_output("echo %s >/opt/bmc/slurm-state", state)
    printed = update(BASEBOARD)
    host.check_output("echo IDLE+DRAIN >/opt/bmc/slurm-state")
    assert f"node01 is not drained: State={state}; nothing was updated" in printed


def test_staged_firmware_is_reported_and_no_reset_is_made(update: Callable[..., str]) -> None:
    printed = update(BASEBOARD, bmc={"task": "staged"})
    assert "staged until the machine is reset: HGX_FW_BMC_0" in printed


def test_named_targets_are_updated_pushed_and_fetched_and_the_second_time_changes_nothing(
    update: Callable[..., str], converge: Play, host: Host
) -> None:
    assert "changed=1" in update(BASEBOARD)
    assert "changed=1" in update("NIC_0")
    assert "changed=0" in update(BASEBOARD)
    converge(phases=["verify"])
    assert report(host)["differs"] == []


def test_no_password_is_on_the_node(host: Host) -> None:
    found = host.run("grep -rl only-for-the-double /etc /run /var /usr/libexec /root 2>/dev/null")
    assert found.stdout == ""
