"""How long a person waits for `gcluster validate` on a small spec, against a bare typer hello."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ..timing import Result, arguments, cpu_seconds, interleaved, report

ROUNDS = 21
SECONDS = 0.25
RATIO = 2.0
"""A process makes every type of the spec before it reads one, so this grows with the language."""
HERE = Path(__file__).parent


def main() -> int:
    """Measure both in turn and compare the medians."""
    options = arguments(__doc__ or "").parse_args()
    gcluster = shutil.which("gcluster", path=str(Path(sys.executable).parent))
    if gcluster is None:
        sys.exit("gcluster is not installed for this Python: run make setup")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "typer hello": [sys.executable, str(HERE / "hello.py"), "world"],
        "gcluster validate": [gcluster, "validate", str(HERE.parents[1] / "examples/local.yaml")],
    }
    medians = interleaved(commands, ROUNDS)
    del commands["python -c pass"]
    on_core = interleaved(commands, ROUNDS, cpu_seconds)
    results = [
        Result(name="python -c pass", value=medians["python -c pass"], unit="s"),
        Result(name="typer hello", value=medians["typer hello"], unit="s"),
        Result(
            name="gcluster validate examples/local.yaml",
            value=medians["gcluster validate"],
            unit="s",
            limit=SECONDS,
        ),
        Result(
            name="validate / hello",
            value=on_core["gcluster validate"] / on_core["typer hello"],
            unit="x",
            limit=RATIO,
        ),
    ]
    return report(
        f"cold start, median of {ROUNDS}", results, as_json=options.json, ratios=options.ratios
    )


if __name__ == "__main__":
    sys.exit(main())
