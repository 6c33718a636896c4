"""How long `gcluster validate` takes to show two mistakes among 10,000 hosts, or in a long line."""

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
KEYS = 100_000
"""Keys that may hold secrets in the one line with the mistake: 2.5 MB."""
FEWER_KEYS = 25_000


def main() -> int:
    """Write the spec and measure; the answers must be the mistakes."""
    options = arguments(__doc__ or "").parse_args()
    gcluster = shutil.which("gcluster", path=str(Path(sys.executable).parent))
    if gcluster is None:
        sys.exit("gcluster is not installed for this Python: run make setup")
    hosts = {n: (generate.two_mistakes(n), "2 errors") for n in (FEWER, HOSTS)}
    keys = {n: (generate.long_line(n), "1 error") for n in (FEWER_KEYS, KEYS)}
    with tempfile.TemporaryDirectory() as folder:
        by_hosts, by_keys = (
            {n: _command(gcluster, Path(folder, f"{n}.yaml"), *each) for n, each in specs.items()}
            for specs in (hosts, keys)
        )
        many_hosts = f"{_megabytes(hosts[HOSTS][0])}, {HOSTS:,} hosts, 2 errors with their excerpts"
        many_keys = f"{_megabytes(keys[KEYS][0])}, {KEYS:,} keys in the line of the one error"
        medians = interleaved({many_hosts: by_hosts[HOSTS], many_keys: by_keys[KEYS]}, ROUNDS)
        exponents = {"hosts": _exponent(by_hosts), "keys of a line": _exponent(by_keys)}
    results = [
        Result(name=many_hosts, value=medians[many_hosts], unit="s", limit=SECONDS),
        Result(name=many_keys, value=medians[many_keys], unit="s"),
        *(
            Result(name=f"exponent over {what}", value=exponent, unit="", limit=1.15)
            for what, exponent in exponents.items()
        ),
    ]
    return report(
        f"mistakes in large specs, median of {ROUNDS}",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


def _command(gcluster: str, at: Path, text: str, count: str) -> list[str]:
    """Write a spec; return the command that validates it and expects so many errors."""
    at.write_text(text, encoding="utf-8")
    return ["sh", "-c", f'"{gcluster}" validate "{at}" | tail -n 1 | grep -qx "{count}"']


def _exponent(commands: dict[int, list[str]]) -> float:
    """Return the exponent of the seconds on a core over the sizes."""
    return fitted_exponent(
        {n: min(cpu_seconds(command) for _ in range(ROUNDS)) for n, command in commands.items()}
    )


def _megabytes(text: str) -> str:
    return f"{len(text) / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
