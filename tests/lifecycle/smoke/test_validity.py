"""What tells one start of a node from another, asked of this machine's own kernel."""

from __future__ import annotations

import re
import subprocess

from gcluster.lifecycle.smoke.validity import READ, members


def test_a_machine_says_the_same_start_until_it_is_started_again() -> None:
    one, other = (
        subprocess.run(["sh", "-c", READ], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert one == other
    assert re.fullmatch(r"[0-9a-f-]{36}:[0-9]+\n", one)


def test_a_member_that_said_no_start_is_kept_as_unknown() -> None:
    assert members(("gpu[001-002]", "cpu001"), {"gpu001": "b:7"}) == {
        "gpu001": "b:7",
        "gpu002": "",
        "cpu001": "",
    }
