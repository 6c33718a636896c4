"""Disables each check in turn and says which golden cases notice: `make mutate-checks`.

A check that can be taken out without any case failing is one that nothing proves.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from gcluster.schemas.checks import CHECKS

from .test_cases import CASES, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def disabled(code: str) -> Iterator[None]:
    """Take a check out of the register for a while."""
    kept = CHECKS.pop(code)
    try:
        yield
    finally:
        CHECKS[code] = kept


def cases_of(codes: set[str]) -> dict[str, list[Path]]:
    """Return the cases that expect each code: only these can notice that it is gone."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(CASES.glob("*/*/expected.json")):
        expected = msgspec.json.decode(path.read_bytes())
        for code in {entry["code"] for entry in expected} & codes:
            found[code].append(path.with_name("spec.yaml"))
    return found


def notices(code: str, cases: list[Path]) -> list[Path]:
    """Return the cases that fail without the check."""
    with disabled(code):
        return [
            case
            for case in cases
            if told(case) != msgspec.json.decode(case.with_name("expected.json").read_bytes())
        ]


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
