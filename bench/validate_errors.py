"""How long `gcluster validate` takes to show two mistakes in a spec of 10,000 hosts."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import generate
from timing import Result, arguments, interleaved, report

ROUNDS = 5
HOSTS = 10_000
SECONDS = 1.5
COUNT = "2 errors"


def main() -> int:
    """Write the spec and measure; the answer must be the two mistakes."""
    options = arguments(__doc__ or "").parse_args()
    gcluster = shutil.which("gcluster", path=str(Path(sys.executable).parent))
    if gcluster is None:
        sys.exit("gcluster is not installed beside this Python: run make setup")
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, "bench.yaml")
        spec.write_text(generate.two_mistakes(HOSTS), encoding="utf-8")
        megabytes = spec.stat().st_size / 1e6
        shown = f'"{gcluster}" validate "{spec}" | tail -n 1 | grep -qx "{COUNT}"'
        name = f"{megabytes:.1f} MB, {HOSTS:,} hosts, {COUNT} with their excerpts"
        medians = interleaved({name: ["sh", "-c", shown]}, ROUNDS)
    result = Result(name=name, value=medians[name], unit="s", limit=SECONDS)
    return report(f"mistakes in a large spec, median of {ROUNDS}", [result], as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
