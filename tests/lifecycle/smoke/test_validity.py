"""What distinguishes one boot of a node from another, read from this machine's own kernel."""

from __future__ import annotations

import re
import subprocess

import pytest

from gcluster.lifecycle.smoke.validity import READ, drift_reasons, members


def test_a_machine_has_the_same_start_until_it_is_started_again() -> None:
    one, other = (
        subprocess.run(["sh", "-c", READ], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert one == other
    assert re.fullmatch(r"[0-9a-f-]{36}:[0-9]+\n", one)


def test_a_member_that_has_no_start_is_kept_as_unknown() -> None:
    assert members(("gpu[001-002]", "cpu001"), {"gpu001": "b:7"}) == {
        "gpu001": "b:7",
        "gpu002": "",
        "cpu001": "",
    }


SYSCTL, DRIVER = "sysctl vm.swappiness: 1", "package nvidia-driver: 580.95"


@pytest.mark.parametrize(
    ("then", "now", "reasons"),
    [
        ({}, {"gpu001": (), "gpu002": ()}, []),
        ({}, {"head": (DRIVER,)}, []),
        ({}, {}, []),
        ({"gpu001": [SYSCTL]}, {"gpu001": (SYSCTL,)}, []),
        ({"gpu001": [SYSCTL]}, {"gpu002": ()}, []),
        (
            {},
            {"gpu001": (DRIVER,), "gpu002": (DRIVER,)},
            [f"gpu[001-002]: drifted since ({DRIVER})"],
        ),
        (
            {"gpu001": [DRIVER]},
            {"gpu001": ()},
            [f"gpu001: drifted since (no longer {DRIVER})"],
        ),
        (
            {},
            {"gpu002": tuple("abcde")},
            [*(f"gpu002: drifted since ({one})" for one in "abc"), "and 2 more"],
        ),
    ],
    ids=[
        "all as it was",
        "of no member",
        "no question was asked",
        "as it deviated when it was tested",
        "it gave no answer",
        "of two members",
        "fixed since: another than was tested",
        "many",
    ],
)
def test_a_member_that_is_otherwise_than_when_it_was_tested_is_named(
    then: dict[str, list[str]], now: dict[str, tuple[str, ...]], reasons: list[str]
) -> None:
    certificate = {"members": {"gpu001": "", "gpu002": ""}, "deviations": then}
    assert drift_reasons(certificate, now) == reasons
