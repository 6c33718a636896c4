"""Add up what the pytest stages counted: the plain closing line "N passed, N failed"."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def main(folder: str) -> int:
    """Print the sum over the JUnit reports in `folder`; return 1 when nothing ran or failed."""
    tests = failures = skipped = 0
    for report in sorted(Path(folder).glob("*.xml")):
        for suite in ET.parse(report).iter("testsuite"):  # noqa: S314  # the reports are our own
            tests += int(suite.get("tests", 0))
            failures += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped += int(suite.get("skipped", 0))
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{tests - failures - skipped} passed, {failures} failed{tail}")
    return 1 if failures or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
