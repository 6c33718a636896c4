"""Status as text."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from tests.cli.render.conftest import Check, Read

from gcluster.cli.render.inspect.status import age, status_text
from gcluster.lifecycle.status.conditions import ClusterStatus

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)


def test_a_case_is_rendered_as_its_golden_text(
    read: Read, check_text: Check, status_case: str
) -> None:
    console, values = read("status", status_case)
    status = msgspec.convert(values["status"], ClusterStatus)
    check_text("status", status_case, status_text(status, console, now=NOW) + "\n")


@pytest.mark.parametrize(
    ("stamp", "says"),
    [
        ("2026-11-21T08:18:00Z", "12 min"),
        ("2026-11-21T09:18:00+01:00", "12 min"),
        ("2026-11-21T08:18:00", "12 min"),
        ("2026-11-21T08:31:00Z", "0.0 s"),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_age_takes_any_stamp_and_ignores_what_is_none(stamp: str, says: str) -> None:
    assert age(stamp, NOW) == says
