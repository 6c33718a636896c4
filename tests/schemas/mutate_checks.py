"""Disables each check in turn and says which golden cases notice: `make mutate-checks`.

A check that can be taken out without any case failing is one that nothing proves.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from gcluster.schemas.checks import CHECKS

from .validate_cases import Case, all_cases


@contextmanager
def disabled(code: str) -> Iterator[None]:
    """Take a check out of the register for a while."""
    kept = CHECKS.pop(code)
    try:
        yield
    finally:
        CHECKS[code] = kept


def cases_of(codes: set[str]) -> dict[str, list[Case]]:
    """Return the cases that expect each code: only these can notice that it is gone."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in all_cases():
        for code in {entry["code"] for entry in case.expected} & codes:
            found[code].append(case)
    return found


def notices(code: str, cases: list[Case]) -> list[Case]:
    """Return the cases that fail without the check."""
    with disabled(code):
        return [case for case in cases if case.findings() != case.expected]


def main() -> int:
    """Print a line a check; exit non-zero when one could go unnoticed."""
    cases = cases_of(set(CHECKS))
    unnoticed = []
    for code in sorted(CHECKS):
        failed = notices(code, cases[code])
        sys.stdout.write(f"{code}  {len(failed):3} of {len(cases[code]):3} cases fail without it\n")
        if not failed:
            unnoticed.append(code)
    sys.stdout.write(
        f"{len(CHECKS)} checks, {len(unnoticed)} of them could go unnoticed {unnoticed or ''}\n"
    )
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
