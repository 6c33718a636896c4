"""A node without a scheduler says at its logins that it is unfit, and when it is fit again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Check = Callable[..., tuple[int, str]]
HEAD = "This node is out of service: "


@pytest.fixture
def notice(tmp_path: Path) -> Path:
    return tmp_path / "root/etc/motd.d/gcluster"


def test_an_unfit_node_reports_it_with_its_reason(notice: Path, check: Check) -> None:
    code, line = check("gpu-missing", notice=True)
    assert (code, line) == (0, "gpu-count: 7 of 8 GPUs [out of service]")
    assert notice.read_text() == f"{HEAD}gcluster-health: gpu-count: 7 of 8 GPUs\n"


@pytest.mark.parametrize("resume", [True, False])
def test_its_own_notice_goes_only_where_the_cluster_reports_it(
    notice: Path, check: Check, *, resume: bool
) -> None:
    check("gpu-missing", notice=True)
    check(notice=True, resume=resume)
    assert notice.exists() is not resume


def test_a_drain_of_an_administrator_stays_as_it_is(notice: Path, check: Check) -> None:
    check(notice=True)
    notice.parent.mkdir(parents=True, exist_ok=True)
    notice.write_text(f"{HEAD}new cables\n")
    assert "was out of service already: new cables" in check("gpu-missing", notice=True)[1]
    check(notice=True, resume=True)
    assert notice.read_text() == f"{HEAD}new cables\n"


def test_a_notice_that_can_not_be_written_is_a_failure(notice: Path, check: Check) -> None:
    check(notice=True)
    notice.mkdir(parents=True)
    code, line = check("gpu-missing", notice=True)
    assert code == 1
    assert "not reported to logins" in line
