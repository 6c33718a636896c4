"""Recorded tool outputs of the role scenarios: their heads, and the table that counts them.

Run as a script it writes the table of docs/testing-roles.md again (`make docs` does).
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/testing-roles.md"
BEGIN, END = "<!-- recordings: written by `make docs` -->\n", "<!-- end of recordings -->\n"
_HEAD = re.compile(r"# (\w+): (.+)")


def recordings(root: Path = ROOT) -> list[Path]:
    """Return every recording, in order."""
    return sorted(path for path in root.glob("molecule/*/recordings/**/*") if path.is_file())


def head(path: Path) -> dict[str, str]:
    """Return the "# key: value" lines that a recording begins with."""
    said = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _HEAD.fullmatch(line)
        if match is None:
            break
        said[match[1]] = match[2]
    return said


def is_synthetic(path: Path) -> bool:
    """Say whether somebody wrote it after the tool's form, and no machine did."""
    return head(path).get("synthetic") == "true"


def table(root: Path = ROOT) -> str:
    """Return the counts by role as the page holds them."""
    counts: dict[str, Counter[bool]] = {}
    for path in recordings(root):
        role = path.relative_to(root).parts[1]
        counts.setdefault(role, Counter())[is_synthetic(path)] += 1
    rows = "".join(f"| {role} | {n[False]} | {n[True]} |\n" for role, n in counts.items())
    total = sum(counts.values(), Counter())
    last = f"| all | {total[False]} | {total[True]} |\n"
    return (
        f"{BEGIN}\n| role | from a machine | synthetic |\n| --- | --- | --- |\n{rows}{last}\n{END}"
    )


def with_table(text: str, root: Path = ROOT) -> str:
    """Return the page with the table of now."""
    before, _, rest = text.partition(BEGIN)
    return before + table(root) + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
