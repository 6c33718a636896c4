"""Write what is said about the golden cases now, and print it for reading.

`python -m tests.schemas.write_cases [CODE...]` from the root of the checkout; no code: all cases.
A case is right when a person has read what it says, not when this was run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.schemas.test_cases import CASES, told


def write(spec: Path) -> bool:
    """Write one case's expected.json; say whether that changed it."""
    expected = spec.with_name("expected.json")
    lines = [f"  {json.dumps(entry, ensure_ascii=False)}" for entry in told(spec)]
    text = "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"
    before = expected.read_text(encoding="utf-8") if expected.exists() else ""
    same = bool(before) and json.loads(before) == json.loads(text)
    if not same:
        expected.write_text(text, encoding="utf-8")
    mark = "same" if same else "WRITTEN"
    sys.stdout.write(f"{mark} {spec.parent.relative_to(CASES)}\n")
    if not same or len(sys.argv) > 1:
        sys.stdout.write("".join(f"{line}\n" for line in lines) or "  (nothing is said)\n")
    return not same


def main(codes: list[str]) -> int:
    """Write the cases of these codes, or all; 1 when a code has no case."""
    missing = [code for code in codes if not (CASES / code).is_dir()]
    for code in missing:
        sys.stderr.write(f"no cases under {CASES.name}/{code}\n")
    folders = [CASES / code for code in codes if code not in missing] if codes else [CASES]
    specs = sorted(spec for folder in folders for spec in folder.rglob("spec.yaml"))
    changed = sum([write(spec) for spec in specs])
    sys.stdout.write(f"{len(specs)} cases, {changed} written\n")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
