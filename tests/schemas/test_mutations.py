"""Each check is proven by a golden case: without the check, one fails."""

from __future__ import annotations

import pytest

from gcluster.schemas.checks import CHECKS

from .mutate_checks import cases_of, notices

_CASES_OF = cases_of(set(CHECKS))


@pytest.mark.parametrize("code", sorted(CHECKS))
def test_without_the_check_a_golden_case_fails(code: str) -> None:
    assert notices(code, _CASES_OF[code])
