"""Firmware is read, compared and updated; whatever isn't as it must be is refused in words."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gcluster_firmware.compare import differences, firmware_of
from gcluster_firmware.redfish import Redfish, RedfishError
from gcluster_firmware.update import update

PROGRAM = Path(__file__).parents[3] / "roles/firmware/files/gcluster_firmware"
BASEBOARD = "HGX_FW_BMC_0"
NEW = "HGX-23.11-1-rc1"


@pytest.fixture
def wanted(tmp_path: Path) -> dict[str, Any]:
    """Return what is wanted of the baseboard, with its image."""
    image = tmp_path / "hgx.fwpkg"
    image.write_bytes(f"version={NEW} \n".encode())
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    return {"version": NEW, "image": str(image), "sha256": digest}


def test_all_pages_of_the_inventory_are_read(machine: Any) -> None:
    assert sorted(firmware_of(machine.bmc())) == ["BMC", BASEBOARD, "NIC_0", "Root_of_Trust"]


def test_what_differs_is_reported_as_text_and_a_part_that_is_missing_too(machine: Any) -> None:
    found = firmware_of(machine.bmc())
    answer = differences(found, {"BMC": {"version": "24.01.05"}, "NIC_9": {"version": "1"}})
    assert list(map(str, answer)) == ["NIC_9: has nothing, wanted 1"]


def test_an_image_is_pushed_and_the_new_version_read_back(
    machine: Any, wanted: dict[str, Any]
) -> None:
    outcome = update(machine.bmc(), BASEBOARD, wanted, poll_s=0.01)
    assert (outcome.version, outcome.staged, outcome.changed) == (NEW, False, True)
    assert not update(machine.bmc(), BASEBOARD, wanted, poll_s=0.01).changed


def test_an_image_that_the_bmc_fetches_needs_no_file_here(machine: Any) -> None:
    wanted = {"version": "28.43.1014", "image": "https://firmware.example/nic-28.43.1014.bin"}
    assert update(machine.bmc(), "NIC_0", wanted, poll_s=0.01).version == "28.43.1014"


def test_firmware_that_waits_for_a_reset_is_staged(machine: Any, wanted: dict[str, Any]) -> None:
    machine.plays(task="staged")
    outcome = update(machine.bmc(), BASEBOARD, wanted, poll_s=0.01)
    assert (outcome.staged, outcome.version) == (True, "HGX-22.10-1-rc67")


@pytest.mark.parametrize(
    ("plays", "changes", "why"),
    [
        ({}, {"sha256": "0" * 64}, "SHA-256 is"),
        ({}, {"sha256": ""}, "not given"),
        ({}, {"image": "/nowhere/hgx.fwpkg"}, "No such file"),
        ({"power": "Off"}, {}, "HGX_Baseboard_0 is Off; the update needs it On"),
        ({"task": "Exception"}, {}, "failed (Exception): The image's signature is not ours."),
        ({"service": False}, {}, "update service is off"),
        ({"elsewhere": True}, {}, "sends us to another host: 192.0.2.66"),
    ],
)
def test_what_can_not_be_right_is_refused_and_nothing_changes(
    machine: Any, wanted: dict[str, Any], plays: dict[str, Any], changes: dict[str, Any], why: str
) -> None:
    machine.plays(**plays)
    with pytest.raises(RedfishError, match=r".") as refused:
        update(machine.bmc(), BASEBOARD, wanted | changes, poll_s=0.01)
    assert why in str(refused.value)
    machine.plays()
    assert firmware_of(machine.bmc())[BASEBOARD].version == "HGX-22.10-1-rc67"


def test_a_part_that_can_not_be_updated_is_refused(machine: Any, wanted: dict[str, Any]) -> None:
    with pytest.raises(RedfishError, match="Root_of_Trust can't be updated"):
        update(machine.bmc(), "Root_of_Trust", wanted)


def test_a_wrong_password_is_reported_and_not_repeated(machine: Any) -> None:
    with pytest.raises(RedfishError, match="401 Who are you") as refused:
        firmware_of(machine.bmc("wrong-word"))
    assert "wrong-word" not in str(refused.value)


def test_a_bmc_that_is_not_trusted_gets_no_password(machine: Any) -> None:
    with pytest.raises(RedfishError, match="CERTIFICATE_VERIFY_FAILED"):
        firmware_of(Redfish(machine.url, "root", "x"))


def test_a_bmc_without_tls_is_refused() -> None:
    with pytest.raises(RedfishError, match="https"):
        Redfish("http://192.0.2.1", "root", "x")


def test_the_program_ends_with_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "bmc", "--bmc", "https://127.0.0.1:9", "--credentials"]
    ended = subprocess.run(
        [*command, str(tmp_path / "none")], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    (tmp_path / "two-lines").write_text("root\nsecret-word\n")
    ended = subprocess.run(
        [*command, str(tmp_path / "two-lines")], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, "refused" in ended.stderr) == (1, True)
    assert "secret-word" not in ended.stderr
