"""A query of Lustre never waits longer than its limit, and reads NIDs as Lustre writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import module, module_util, put_program

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
def test_every_nid_of_a_device_is_queried(device: str, nids: list[str]) -> None:
    assert MOUNTS.nids_of(device) == nids


@pytest.mark.parametrize(
    ("version", "wanted", "same"),
    [("2.15.6", "2.15", True), ("2.15.6", "2.15.6", True), ("2.150.1", "2.15", False)],
)
def test_a_version_is_known_by_its_beginning(version: str, wanted: str, same: bool) -> None:
    assert MOUNTS.is_of(version, wanted) is same


def test_lnet_gets_each_network_over_its_interfaces() -> None:
    text, options = CONF.described([{"net": "o2ib", "interfaces": ["ib0", "ib1"]}], [])
    assert "    - net type: o2ib\n      local NI(s):\n" in text
    assert text.index("0: ib0") < text.index("0: ib1")
    assert (options, "route:" in text) == ("", False)


def test_a_network_behind_routers_is_written_with_each_of_them() -> None:
    routes = [{"net": "o2ib", "gateway": f"10.0.0.{n}@tcp"} for n in (7, 8)]
    text, _ = CONF.described([{"net": "tcp", "interfaces": ["eth0"]}], routes)
    assert text.endswith(
        "route:\n    - net: o2ib\n      gateway: 10.0.0.7@tcp\n"
        "    - net: o2ib\n      gateway: 10.0.0.8@tcp\nglobal:\n    discovery: 1\n"
    )


ROUTES = """route:
    - net: o2ib
      gateway: 10.0.0.7@tcp
      hop: -1
      priority: 0
      state: down
    - net: o2ib
      gateway: 10.0.0.8@tcp
      state: {state}"""


@pytest.mark.parametrize(
    ("state", "requested", "wrong"),
    [
        ("up", (7, 8), []),
        ("up", (7, 9), ["LNet has no route to o2ib by 10.0.0.9@tcp"]),
        ("down", (7, 8), ["no router to o2ib is up: 10.0.0.7@tcp, 10.0.0.8@tcp"]),
    ],
)
def test_one_router_that_is_up_is_enough_and_all_must_be_known(
    tools: Path, state: str, requested: tuple[int, ...], wrong: list[str]
) -> None:
    put_program(tools / "lnetctl", f"#!/bin/sh\necho '{ROUTES.format(state=state)}'\n")
    routes = [{"net": "o2ib", "gateway": f"10.0.0.{n}@tcp"} for n in requested]
    assert MOUNTS.route_differences(routes) == wrong


def test_a_parameter_is_set_where_some_target_has_it_otherwise(tools: Path) -> None:
    put_program(tools / "lctl", "#!/bin/sh\n[ $3 != osc.*.gone ] && printf '8\\n64\\n'\n")
    tunables = {"osc.*.max_rpcs_in_flight": "64", "osc.*.gone": "1"}
    assert list(MOUNTS.tunable_differences({"tunables": tunables})) == list(tunables.items())
    put_program(tools / "lctl", "#!/bin/sh\nprintf '64\\n64\\n'\n")
    due = MOUNTS.tunable_differences({"tunables": {"osc.*.max_rpcs_in_flight": "64"}})
    assert list(due) == []


def test_a_server_without_an_address_is_named() -> None:
    with pytest.raises(Failed, match=r"mgs\.invalid has no address"):
        CONF.address_of("mgs.invalid")
