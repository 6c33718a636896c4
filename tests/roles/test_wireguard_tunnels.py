"""What a gateway takes for its own part of the firewall; nft is played by what it was given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/wireguard/files/libexec/wireguard-tunnels.py"
HALL, ROOM = "10.20.0.0/16", "10.21.0.0/16"


class Firewall:
    """The program with an nft that lists what it has: networks side by side as one."""

    def __init__(self) -> None:
        """Begin without any rules."""
        text, _, last = PROGRAM.read_text().rpartition("\nmain()")
        assert last == "\n"
        self.program: dict[str, Any] = {}
        exec(compile(text, PROGRAM, "exec"), self.program)  # noqa: S102  # it acts on import
        self.listed = ""
        self.program["run"] = lambda *_, **__: (0 if self.listed else 1, self.listed)

    def take(self, *networks: str) -> None:
        """Write the rules for these networks, and list them as nft 1.0 does."""
        rules = self.program["rules"]({"networks": list(networks)})
        self.listed = rules.partition("{")[2].replace(f"{HALL}, {ROOM}", "10.20.0.0/15")

    def holds(self, *networks: str) -> bool:
        """Say whether the program is content with what is listed."""
        found: bool = self.program["is_filtered"]({"networks": list(networks)})
        return found


@pytest.fixture
def firewall() -> Firewall:
    return Firewall()


def test_without_rules_nothing_holds(firewall: Firewall) -> None:
    assert not firewall.holds(HALL)


def test_networks_that_nft_lists_as_one_hold(firewall: Firewall) -> None:
    firewall.take(HALL, ROOM)
    assert firewall.holds(HALL, ROOM)


def test_a_network_that_is_the_site_s_no_longer_does_not_continue_passing(
    firewall: Firewall,
) -> None:
    firewall.take("10.99.0.0/16", HALL)
    assert not firewall.holds(HALL)


def test_rules_that_was_taken_out_by_hand_are_missed(firewall: Firewall) -> None:
    firewall.take(HALL)
    firewall.listed = re.sub(r".* saddr .*\n", "", firewall.listed)
    assert not firewall.holds(HALL)
