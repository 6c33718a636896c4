"""How long `gcluster validate` takes to show two mistakes in a spec of 10,000 hosts."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from ..timing import Result, arguments, cpu_seconds, fitted_exponent, interleaved, report
from . import generate

ROUNDS = 5
HOSTS = 10_000
FEWER = 2_500
SECONDS = 1.5
COUNT = "2 errors"


def main() -> int:
    """Write the spec and measure; the answer must be the two mistakes."""
    options = arguments(__doc__ or "").parse_args()
    gcluster = shutil.which("gcluster", path=str(Path(sys.executable).parent))
    if gcluster is None:
        sys.exit("gcluster is not installed beside this Python: run make setup")
    with tempfile.TemporaryDirectory() as folder:
        spec, smaller = Path(folder, "bench.yaml"), Path(folder, "smaller.yaml")
        spec.write_text(generate.two_mistakes(HOSTS), encoding="utf-8")
        smaller.write_text(generate.two_mistakes(FEWER), encoding="utf-8")
        megabytes = spec.stat().st_size / 1e6
        commands = {
            hosts: ["sh", "-c", f'"{gcluster}" validate "{at}" | tail -n 1 | grep -qx "{COUNT}"']
            for hosts, at in ((FEWER, smaller), (HOSTS, spec))
        }
        name = f"{megabytes:.1f} MB, {HOSTS:,} hosts, {COUNT} with their excerpts"
        medians = interleaved({name: commands[HOSTS]}, ROUNDS)
        on_core = {
            hosts: min(cpu_seconds(command) for _ in range(ROUNDS))
            for hosts, command in commands.items()
        }
    results = [
        Result(name=name, value=medians[name], unit="s", limit=SECONDS),
        Result(name="exponent over hosts", value=fitted_exponent(on_core), unit="", limit=1.15),
    ]
    return report(
        f"mistakes in a large spec, median of {ROUNDS}",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


if __name__ == "__main__":
    sys.exit(main())
