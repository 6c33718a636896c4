"""Queries of Slurm's controller by modules."""

from __future__ import annotations

import time

from .node import run
from .state import Failed

POLL_INTERVAL_S = 0.5


def controller_problem() -> str:
    """Return why slurmctld doesn't respond; "" where it does.

    Old clients exit with 0 even without a response, so the output is checked.
    """
    code, answer = run("scontrol", "ping")
    return "" if code == 0 and "is UP" in answer else f"the controller doesn't answer: {answer}"


def wait_for_controller(wait_s: float) -> None:
    """Wait until slurmctld answers, here or on another controller.

    One that has just started isn't listening yet.

    Raises:
        Failed: it doesn't within that time.
    """
    until = time.monotonic() + wait_s
    while "is UP" not in run("scontrol", "ping")[1]:
        if time.monotonic() >= until:
            raise Failed("slurmctld doesn't answer; journalctl -u slurmctld says why")
        time.sleep(POLL_INTERVAL_S)
