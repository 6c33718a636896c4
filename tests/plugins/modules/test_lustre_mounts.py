"""What asks Lustre never waits longer than its limit, and reads NIDs as Lustre writes them."""

from __future__ import annotations

import pytest
from running import module, module_util

MOUNTS = module("lustre_mounts")
Failed = module_util("state").Failed
CONF = module("lnet_config")


def test_a_call_that_does_not_end_is_left_behind_after_its_limit() -> None:
    code, text = module_util("node").run_detached("sleep", "600", timeout_s=0.2)
    assert code == 124
    assert "no answer within 0.2 s" in text


@pytest.mark.parametrize(
    ("device", "nids"),
    [
        ("10.0.0.5@tcp:/scratch", ["10.0.0.5@tcp"]),
        ("10.0.0.1@o2ib:10.0.0.2@o2ib:/a", ["10.0.0.1@o2ib", "10.0.0.2@o2ib"]),
        ("1.0.0.1@tcp,1.1.0.1@o2ib:1.0.0.2@tcp:/a", ["1.0.0.1@tcp", "1.1.0.1@o2ib", "1.0.0.2@tcp"]),
    ],
)  # fmt: skip
def test_every_nid_of_a_device_is_asked(device: str, nids: list[str]) -> None:
    assert MOUNTS.nids_of(device) == nids


@pytest.mark.parametrize(
    ("version", "wanted", "same"),
    [("2.15.6", "2.15", True), ("2.15.6", "2.15.6", True), ("2.150.1", "2.15", False)],
)
def test_a_version_is_known_by_its_beginning(version: str, wanted: str, same: bool) -> None:
    assert MOUNTS.is_of(version, wanted) is same


def test_lnet_gets_each_network_over_its_interfaces() -> None:
    text, options = CONF.described([{"net": "o2ib", "interfaces": ["ib0", "ib1"]}])
    assert "    - net type: o2ib\n      local NI(s):\n" in text
    assert text.index("0: ib0") < text.index("0: ib1")
    assert options == ""


def test_a_server_without_an_address_is_named() -> None:
    with pytest.raises(Failed, match=r"mgs\.invalid has no address"):
        CONF.address_of("mgs.invalid")
